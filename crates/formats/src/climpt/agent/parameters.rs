//! Reads the parameters of an agent, and compares variable names.

use std::borrow::Cow;
use std::collections::HashMap;

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::{Param, ParamRule, ParamType},
};

use super::parameter_rules::read_rule;
use crate::codes;
use crate::values::json::{Entry, Fields, Json, Kind};

/// Flags of `cuegate run` itself. A parameter with such a flag is given with `--set`.
pub const OWN_FLAGS: [&str; 40] = [
    "--journal",
    "--once",
    "--agent",
    "--cd",
    "--set",
    "--input",
    "--provider",
    "--script",
    "--model",
    "--worktree",
    "--wait",
    "--no-baseline",
    "--no-sandbox",
    "--max-iterations",
    "--released-by",
    "--repairs",
    "--phases",
    "--durability",
    "--unlimited",
    "--json",
    "--budget-usd",
    "--budget-tokens",
    "--budget-calls",
    "--budget-minutes",
    "--call-usd",
    "--call-tokens",
    "--merge",
    "--push",
    "--pull-request",
    "--no-github",
    "--detach",
    "--run-id",
    "--builtins",
    "--claim",
    "--batch-process",
    "--watch",
    "--color",
    "--quiet",
    "--no-progress",
    "--help",
];

/// Flags of `cuegate run` that also set the parameter that declares them.
pub const SHARED_FLAGS: [&str; 2] = ["--issue", "--pr"];

/// A flag that does not affect runs but exists on every command.
const VERSION_FLAG: &str = "--version";

pub(crate) fn read_parameters(agent: &Fields<'_, '_>) -> Vec<Param> {
    let mut params: Vec<Param> = Vec::new();
    let (mut by_name, mut by_flag) = (HashMap::<String, usize>::new(), HashMap::<Str, usize>::new());
    for entry in agent.names("parameters") {
        let param = read_parameter(entry, agent).unwrap_or_else(|| stand_in(entry));
        if let Some(twin) = by_name.get(&*normalize_variable_name(&param.name)).map(|at| &params[*at]) {
            let message = format!("`{}` and `{}` are the same variable", twin.name, param.name);
            agent.push(
                Diagnostic::error(codes::DUPLICATE_KEY, param.span, message)
                    .hint("rename one: `camelCase` and `kebab-case` of a name mean the same"),
            );
            continue;
        }
        if let Some(twin) = by_flag.get(&param.flag).map(|at| &params[*at]) {
            let message = format!("`{}` is the flag of `{}` and of `{}`", param.flag, twin.name, param.name);
            agent.push(
                Diagnostic::error(codes::DUPLICATE_KEY, param.span, message)
                    .hint("give one of them another `cli`"),
            );
        }
        by_name.insert(normalize_variable_name(&param.name).into_owned(), params.len());
        if !param.flag.is_empty() {
            by_flag.entry(param.flag.clone()).or_insert(params.len());
        }
        params.push(param);
    }
    params
}

fn read_parameter(entry: &Entry, agent: &Fields<'_, '_>) -> Option<Param> {
    let name = &entry.key;
    let fields = Fields::of(&entry.value, &format!("`parameters.{name}`"), None, agent.found)?;
    if fields.entry("type").is_none() {
        fields.missing("type");
    }
    let kind = fields.one_of("type", &["string", "number", "boolean", "array"]).map(|(word, _)| word);
    let description = fields.text("description").map_or("", |description| description.text);
    let required = fields.boolean("required").is_some_and(|(required, _)| required);
    let default = fields.entry("default").map(|default| &default.value);
    if let (Some(default), Some(kind)) = (default, kind) {
        check_default(name, default, kind, &fields);
    }
    if let Some(default) = default.filter(|_| required) {
        let message = format!("`{name}` is required, so its default is never used");
        fields.push(
            Diagnostic::warning(codes::UNUSED_KEY, default.span, message)
                .hint("remove `required`, or the default"),
        );
    }
    report_shadowed(name, entry, &fields);
    let rule = match fields.object("validation") {
        Some(validation) => read_rule(validation, kind),
        None => ParamRule::default(),
    };
    // A default of the wrong type, or one checked against an unreadable constraint, has been reported.
    if !fields.is_poisoned("default") && !fields.is_poisoned("validation") {
        check_default_by_rule(name, default, &rule, &fields);
    }
    let flag = read_flag(name, &fields);
    // The unreadable value may be its default.
    let is_unclear = fields.has_strange_key() || is_misread(&fields);
    fields.finish();
    Some(Param {
        name: name.clone(),
        flag,
        kind: match kind {
            Some("number") => ParamType::Number,
            Some("boolean") => ParamType::Boolean,
            Some("array") => ParamType::List,
            _ => ParamType::Text,
        },
        rule,
        required: required || is_unclear,
        default: default.and_then(default_text),
        description: description.into(),
        span: entry.key_span,
    })
}

/// Whether `required` or `default` is present but unreadable, which is reported.
fn is_misread(fields: &Fields<'_, '_>) -> bool {
    let is = |key, fits: fn(&Kind) -> bool| fields.nullable(key).is_some_and(|entry| fits(&entry.value.kind));
    is("required", |kind| !matches!(kind, Kind::Boolean(_)))
        || is("default", |kind| matches!(kind, Kind::Null | Kind::Object(_)))
}

/// The variables that prompts can read without any parameter, besides those that the definition provides.
const BUILT_IN: [&str; 7] = [
    "iteration",
    "completed_iterations",
    "max_iterations",
    "remaining",
    "previous_summary",
    "task",
    "check_count",
];

/// The built-in variable of a name, in any spelling.
pub fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN.into_iter().find(|known| same_name(known, name))
}

/// A declared variable hides the built-in one of the same name.
fn report_shadowed(name: &str, entry: &Entry, fields: &Fields<'_, '_>) {
    if let Some(hidden) = built_in(name) {
        let message = format!("the parameter `{name}` hides the built-in variable `{hidden}`");
        fields.push(
            Diagnostic::warning(codes::SHADOWED_VARIABLE, entry.key_span, message)
                .hint("give it another name, or remove it where the built-in one is meant"),
        );
    }
}

/// Reads a default, which must be a valid value.
fn check_default_by_rule(name: &str, default: Option<&Json>, rule: &ParamRule, fields: &Fields<'_, '_>) {
    let complaint = default.and_then(default_text).and_then(|text| rule.complaint(&text));
    if let (Some(default), Some(complaint)) = (default, complaint) {
        let message = format!("the default of `{name}` {complaint}");
        fields.invalid(default.span, message, "correct the default, or `validation`");
    }
}

/// The flag of a parameter; empty when only `--set` can give it.
fn read_flag(name: &str, fields: &Fields<'_, '_>) -> Str {
    let Some(flag) = fields.required("cli") else { return "".into() };
    let good = flag.text.strip_prefix("--").is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_alphanumeric())
            && rest.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    });
    if !good {
        let message = format!("`{}` is not a flag", flag.text);
        fields.invalid(flag.span, message, "write it like `--issue`");
        return "".into();
    }
    if OWN_FLAGS.contains(&flag.text) || flag.text == VERSION_FLAG {
        let message = format!("`{}` is a flag of Cuegate itself", flag.text);
        fields.push(
            Diagnostic::warning(codes::RESERVED_FLAG, flag.span, message)
                .hint(format!("give it with `--set {name}=VALUE`, or give the parameter another `cli`")),
        );
        return "".into();
    }
    flag.text.into()
}

fn check_default(name: &str, default: &Json, kind: &str, fields: &Fields<'_, '_>) {
    let fits = match &default.kind {
        Kind::Text(_) => kind == "string",
        Kind::Number(_) => kind == "number",
        Kind::Boolean(_) => kind == "boolean",
        Kind::List(_) => kind == "array",
        Kind::Null | Kind::Object(_) => false,
    };
    if !fits {
        let message = format!("the default of `{name}` is no {kind}");
        fields.push(
            Diagnostic::error(codes::WRONG_TYPE, default.span, message).hint("correct `default` or `type`"),
        );
    }
    if let (true, Kind::List(items)) = (fits, &default.kind) {
        check_items(name, items, fields);
    }
}

/// Prompts see a list as one text, with items separated by commas. Items that this would corrupt are reported.
fn check_items(name: &str, items: &[Json], fields: &Fields<'_, '_>) {
    for item in items {
        match item.scalar_text() {
            None => {
                let message =
                    format!("the default of `{name}` must hold texts, numbers, `true` or `false` only");
                let hint = "give a list of texts: it stands in prompts as its items, separated by commas";
                fields.push(Diagnostic::error(codes::WRONG_TYPE, item.span, message).hint(hint));
            }
            Some(text) if text.contains(',') => {
                let message =
                    format!("`{text}` in the default of `{name}` holds a comma, which separates items");
                fields.push(
                    Diagnostic::warning(codes::INVALID_VALUE, item.span, message)
                        .hint("write it without a comma, or make the parameter a `string`"),
                );
            }
            Some(_) => {}
        }
    }
}

/// A default as text: lists are comma-separated, as on the command line.
fn default_text(default: &Json) -> Option<Str> {
    match &default.kind {
        Kind::List(items) => {
            let items: Vec<Str> = items.iter().filter_map(Json::scalar_text).collect();
            Some(items.join(",").into())
        }
        _ => default.scalar_text(),
    }
}

/// A parameter of which only the name could be read. It counts as declared and given.
fn stand_in(entry: &Entry) -> Param {
    Param { required: true, description: "".into(), span: entry.key_span, ..set_parameter(&entry.key) }
}

/// A value that only `--set` declares.
pub(crate) fn set_parameter(name: &str) -> Param {
    Param {
        name: name.into(),
        flag: "".into(),
        kind: ParamType::Text,
        rule: ParamRule::default(),
        required: false,
        default: None,
        description: "given with `--set`".into(),
        span: Span::default(),
    }
}

/// Whether two names mean the same variable: `iterateMax` is `iterate-max`.
pub fn same_name(a: &str, b: &str) -> bool {
    a == b || normalize_variable_name(a) == normalize_variable_name(b)
}

/// The normalized spelling of a variable name, as a lookup key: two names are the [`same_name`] exactly when it is
/// equal.
pub(crate) fn normalize_variable_name(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => to_kebab_case(name).into(),
        false => name.into(),
    }
}

fn to_kebab_case(name: &str) -> String {
    let mut kebab = String::with_capacity(name.len() + 4);
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() {
            if at > 0 && !kebab.ends_with('-') {
                kebab.push('-');
            }
            kebab.push(c.to_ascii_lowercase());
        } else {
            kebab.push(c);
        }
    }
    kebab
}

#[cfg(test)]
mod tests {
    use super::same_name;

    #[test]
    fn camel_and_kebab_are_the_same_name() {
        assert!(same_name("iterateMax", "iterate-max") && same_name("issue", "issue"));
        assert!(!same_name("iterate_max", "iterate-max") && !same_name("a", "b"));
    }
}
