//! Texts of the definition itself that prompts can read: `{uv-completion_keyword}`, `{uv-max_checks}` and the like from
//! `runner` settings, `{uv-validators}` from the registry.

use cuegate_flow::Str;

use crate::climpt::registry::validation_definition::ValidatorDefinition;
use crate::values::json::{Json, Kind};

/// Texts by the variable that reads them.
pub(crate) type VerdictVariables = Vec<(&'static str, Str)>;

/// The texts of a verdict. For combined verdicts, the first one with a value counts.
pub(crate) fn told_by_verdict(verdict: &Json) -> VerdictVariables {
    let mut told = VerdictVariables::new();
    collect_verdict_variables(verdict, &mut told);
    told
}

/// The commands of the validators as `validators`, each in a code block. A definition without validators has no such
/// variable.
pub(crate) fn told_by_validators(validators: &[ValidatorDefinition<'_>]) -> VerdictVariables {
    let commands = validators.iter().filter_map(|validator| validator.command);
    let blocks: Vec<String> = commands.map(|command| code_block(command.text)).collect();
    if blocks.is_empty() { VerdictVariables::new() } else { vec![("validators", blocks.join("\n\n").into())] }
}

/// A Markdown code block with a command; the fence is longer than any in the command.
fn code_block(command: &str) -> String {
    let mut fence = "```".to_owned();
    while command.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}sh\n{command}\n{fence}")
}

fn collect_verdict_variables(verdict: &Json, told: &mut VerdictVariables) {
    let kind = verdict.entry("type").and_then(|kind| kind.value.as_text()).unwrap_or_default();
    if kind == "poll:state" {
        // A poll without a repository uses the repository of the folder.
        add_variable(told, "repository", Some("".into()));
    }
    let Some(config) = verdict.entry("config").map(|config| &config.value) else { return };
    let value = |key: &str| config.entry(key).map(|entry| &entry.value);
    match kind {
        "detect:keyword" => {
            add_variable(told, "completion_keyword", value("verdictKeyword").and_then(Json::scalar_text));
        }
        "count:check" => add_variable(told, "max_checks", value("maxChecks").and_then(Json::scalar_text)),
        "detect:structured" => {
            add_variable(told, "signal_type", value("signalType").and_then(Json::scalar_text));
            add_variable(told, "signal_fields", value("requiredFields").and_then(describe_signal_fields));
        }
        "meta:composite" => {
            if let Some(Kind::List(conditions)) = value("conditions").map(|conditions| &conditions.kind) {
                conditions.iter().for_each(|condition| collect_verdict_variables(condition, told));
            }
        }
        _ => {}
    }
}

fn add_variable(told: &mut VerdictVariables, name: &'static str, text: Option<Str>) {
    if let Some(text) = text.filter(|_| !told.iter().any(|(known, _)| *known == name)) {
        told.push((name, text));
    }
}

/// Describes the fields of a signal: names, or names with their required values.
fn describe_signal_fields(required: &Json) -> Option<Str> {
    let fields: Vec<String> = match &required.kind {
        Kind::List(names) => names.iter().filter_map(Json::as_text).map(|name| format!("`{name}`")).collect(),
        Kind::Object(entries) => entries
            .iter()
            .map(|entry| match entry.value.scalar_text() {
                Some(value) => format!("`{}` (`{value}`)", entry.key),
                None => format!("`{}`", entry.key),
            })
            .collect(),
        _ => return None,
    };
    (!fields.is_empty()).then(|| fields.join(", ").into())
}
