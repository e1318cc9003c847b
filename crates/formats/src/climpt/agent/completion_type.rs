//! Reads the verdict of an agent: its type (one of eight) and the `config` keys that the type requires.
//! [`crate::climpt::completion_lowering`] lowers it.

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::{Field, PollState, Resource, Signal},
};
use serde_json::Value;

use crate::codes;
use crate::source::files::{join_path, lies_in};
use crate::values::json::{Fields, Json, Kind, Text};

/// The verdict types of the runner reference.
pub(crate) const VERDICT_TYPES: [&str; 8] = [
    "count:iteration",
    "count:check",
    "poll:state",
    "detect:keyword",
    "detect:structured",
    "detect:graph",
    "meta:composite",
    "meta:custom",
];

/// The default iterations of `count:iteration` (`DEFAULT_MAX_ITERATIONS` of the runner reference).
const COUNT_DEFAULT: u32 = 10;

/// The default iteration limit of every other verdict (`FALLBACK_MAX_ITERATIONS` of the runner reference).
pub(crate) const SAFETY_DEFAULT: u32 = 20;

/// A verdict as written.
#[derive(Debug)]
pub(crate) struct VerdictSettings<'j> {
    /// Its type.
    pub(crate) kind: &'static str,
    /// The place of the type, if it is written.
    pub(crate) span: Option<Span>,
    /// The completion condition, besides reaching an end.
    pub(crate) rule: CompletionRule<'j>,
    /// The iteration limit.
    pub(crate) iterations_max: u32,
    /// The place of the iteration limit, if it is written.
    pub(crate) iterations_span: Option<Span>,
    /// Whether a type is written, and whether a limit is.
    pub(crate) written: (bool, bool),
    /// The registry that `detect:graph` names instead of the agent's.
    pub(crate) registry: Option<Text<'j>>,
    /// The entry that `detect:graph` names instead of the registry's.
    pub(crate) entry: Option<Text<'j>>,
}

/// The completion condition of a run, besides reaching an end, as the agent alone defines it.
#[derive(Debug, Clone)]
pub(crate) enum CompletionRule<'j> {
    /// `detect:graph`: only at an end.
    Graph,
    /// A condition that cannot be evaluated; a finding has been reported.
    Never,
    /// After this many iterations, with the place of the condition. The iteration limit of the verdict itself is the
    /// limit of the run.
    Iterations(u32, Option<Span>),
    /// After this many answers of verification and closure steps, with the place of the condition.
    Checks(u32, Span),
    /// When an answer contains this text.
    Keyword(&'j str),
    /// When an answer gives this signal.
    Signal(Signal),
    /// When a resource has this state.
    Poll(Resource, PollState, Span),
    /// When a program reports completion: its file and its settings.
    Handler(Text<'j>, Value),
    /// `and`, `or` or `first`, with the combined conditions.
    Composite(&'static str, Vec<CompletionRule<'j>>),
}

impl Default for VerdictSettings<'_> {
    fn default() -> Self {
        VerdictSettings {
            kind: "count:iteration",
            span: None,
            rule: CompletionRule::Iterations(COUNT_DEFAULT, None),
            iterations_max: COUNT_DEFAULT,
            iterations_span: None,
            written: (false, false),
            registry: None,
            entry: None,
        }
    }
}

impl VerdictSettings<'_> {
    /// The completion of a verdict that failed to parse: nothing follows from it.
    pub(crate) fn unreadable() -> Self {
        VerdictSettings {
            rule: CompletionRule::Never,
            iterations_max: SAFETY_DEFAULT,
            written: (true, false),
            ..VerdictSettings::default()
        }
    }

    /// Whether even its type is unknown.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.kind == VerdictSettings::default().kind && matches!(self.rule, CompletionRule::Never)
    }
}

/// The settings outside the verdict that reading it needs.
struct VerdictContext<'a> {
    agent_dir: &'a str,
    /// The fence word of action blocks.
    marker: &'a str,
}

/// The fence word of action blocks: `actions.outputFormat`. Errors in it are reported where the actions are read.
pub(crate) fn fence_word_of_actions<'j>(runner: &Fields<'j, '_>) -> &'j str {
    let actions = runner.entry("actions").and_then(|actions| actions.value.get("outputFormat"));
    actions.and_then(Json::as_text).map(str::trim).filter(|marker| !marker.is_empty()).unwrap_or("json")
}

/// Reads `runner.verdict`.
pub(crate) fn read_verdict<'j>(fields: Fields<'j, '_>, agent_dir: &str, marker: &str) -> VerdictSettings<'j> {
    let kind = fields.one_of("type", &VERDICT_TYPES);
    let unknown = kind.is_none() && fields.nullable("type").is_some();
    let (kind, span) = kind.unwrap_or(("count:iteration", fields.span));
    let settings = if unknown {
        // The type is unknown, so its keys cannot be checked.
        fields.object("config");
        VerdictSettings::unreadable()
    } else {
        read_settings(kind, span, &fields, agent_dir, marker)
    };
    fields.finish();
    settings
}

fn read_settings<'j>(
    kind: &'static str,
    span: Span,
    verdict: &Fields<'j, '_>,
    agent_dir: &str,
    marker: &str,
) -> VerdictSettings<'j> {
    let written = verdict.entry("config").map(|config| config.value.to_value()).unwrap_or_default();
    let config = verdict.object("config");
    let counted = config.as_ref().and_then(|config| config.count("maxIterations", 1));
    let max = counted.map(|(max, _)| max);
    let iterations_max =
        max.unwrap_or(if kind == "count:iteration" { COUNT_DEFAULT } else { SAFETY_DEFAULT });
    let around = VerdictContext { agent_dir, marker };
    let mut settings = VerdictSettings {
        kind,
        span: Some(span),
        rule: CompletionRule::Never,
        iterations_max,
        iterations_span: counted.map(|(_, span)| span),
        written: (true, max.is_some()),
        registry: None,
        entry: None,
    };
    match config {
        Some(config) => {
            if kind == "count:iteration" && config.entry("maxIterations").is_none() {
                config.missing("maxIterations");
            }
            if kind == "detect:graph" {
                settings.registry = config.filled("registryPath");
                settings.entry = config.filled("entryStep");
            }
            settings.rule = read_rule((kind, span), &config, written, (iterations_max, None), &around);
            finish_config(kind, config);
        }
        None => {
            settings.rule = match kind {
                "count:iteration" => CompletionRule::Iterations(iterations_max, None),
                "detect:graph" => CompletionRule::Graph,
                "poll:state" => CompletionRule::Poll(Resource::Issue, build_closed_state(), span),
                _ => CompletionRule::Never,
            };
            for key in required_keys_of_type(kind).iter().filter(|_| kind != "count:iteration") {
                let config = verdict.found.name("config");
                let message = format!("the verdict `{kind}` needs `{config}.{key}`");
                let finding = Diagnostic::error(codes::MISSING_KEY, span, message);
                verdict.push(finding.hint(format!("add `{config}` with `{key}`")));
            }
        }
    }
    settings
}

/// The keys that the runner reference's table requires for a type.
fn required_keys_of_type(kind: &str) -> &'static [&'static str] {
    match kind {
        "count:iteration" => &["maxIterations"],
        "count:check" => &["maxChecks"],
        "detect:keyword" => &["verdictKeyword"],
        "detect:structured" => &["signalType"],
        "meta:composite" => &["operator", "conditions"],
        "meta:custom" => &["handlerPath"],
        _ => &[],
    }
}

/// Reads the keys that belong to a type. A condition with an error is reported here and never holds.
fn read_rule<'j>(
    (kind, span): (&'static str, Span),
    config: &Fields<'j, '_>,
    written: Value,
    (iterations, counted): (u32, Option<Span>),
    around: &VerdictContext<'_>,
) -> CompletionRule<'j> {
    let rule = match kind {
        "count:iteration" => Some(CompletionRule::Iterations(iterations, counted)),
        "count:check" => config.count("maxChecks", 1).map(|(max, span)| CompletionRule::Checks(max, span)),
        "detect:keyword" => {
            config.filled("verdictKeyword").map(|keyword| CompletionRule::Keyword(keyword.text))
        }
        "detect:structured" => {
            let required = required_fields(config);
            config.filled("signalType").map(|kind| {
                CompletionRule::Signal(Signal {
                    kind: kind.text.into(),
                    marker: around.marker.into(),
                    required,
                })
            })
        }
        "poll:state" => read_poll(span, config),
        "detect:graph" => {
            check_agent_path(config.filled("registryPath"), around.agent_dir, config);
            config.filled("entryStep");
            Some(CompletionRule::Graph)
        }
        "meta:composite" => {
            let operator = config.one_of("operator", &["and", "or", "first"]);
            let conditions = read_conditions(config, around);
            operator.map(|(operator, _)| CompletionRule::Composite(operator, conditions))
        }
        "meta:custom" => {
            let path = check_agent_path(config.filled("handlerPath"), around.agent_dir, config);
            path.map(|path| CompletionRule::Handler(path, written))
        }
        _ => None,
    };
    for key in required_keys_of_type(kind)
        .iter()
        .filter(|key| **key != "maxIterations" && config.entry(key).is_none())
    {
        config.missing(key);
    }
    rule.unwrap_or(CompletionRule::Never)
}

/// Reads what a signal must contain: field names, or fields with required values.
fn required_fields(config: &Fields<'_, '_>) -> Vec<Field> {
    let Some(entry) = config.entry("requiredFields") else { return Vec::new() };
    match &entry.value.kind {
        Kind::Object(entries) => entries.iter().map(field_of_entry).collect(),
        Kind::List(_) => {
            let names = config.texts("requiredFields").unwrap_or_default();
            names.iter().map(|name| Field { name: name.text.into(), value: None }).collect()
        }
        _ => {
            config.wrong_type("requiredFields", &entry.value, "an object or a list");
            Vec::new()
        }
    }
}

fn field_of_entry(entry: &crate::values::json::Entry) -> Field {
    Field { name: entry.key.clone(), value: Some(entry.value.to_value()) }
}

fn read_poll<'j>(span: Span, config: &Fields<'j, '_>) -> Option<CompletionRule<'j>> {
    let resource = config.one_of("resourceType", &["github-issue", "github-project", "file", "api"]);
    if resource.is_none() && config.entry("resourceType").is_some() {
        config.entry("targetState");
        return None;
    }
    let target = config.entry("targetState").map(|entry| &entry.value);
    let (resource, state) = match resource.map_or("github-issue", |(resource, _)| resource) {
        "file" => {
            (Resource::File, target.map_or(Some(PollState::Exists), |target| state_of_file(target, config))?)
        }
        "api" => (Resource::Api, state_of_answer(target, PollState::Exists, config)?),
        "github-project" => (Resource::Project, state_of_answer(target, build_closed_state(), config)?),
        _ => (Resource::Issue, state_of_answer(target, build_closed_state(), config)?),
    };
    Some(CompletionRule::Poll(resource, state, span))
}

/// The state of an issue or a project whose work is done.
fn build_closed_state() -> PollState {
    PollState::Equals("closed".into())
}

/// The requirements on a service, an issue or a project: a text for its state, or an object of values.
fn state_of_answer(target: Option<&Json>, default: PollState, config: &Fields<'_, '_>) -> Option<PollState> {
    let Some(target) = target else { return Some(default) };
    match &target.kind {
        Kind::Text(text) => Some(PollState::Equals(text.trim().into())),
        Kind::Object(entries) if entries.is_empty() => {
            config.invalid(target.span, "`targetState` is empty", "name the values that it has to have");
            None
        }
        Kind::Object(entries) => Some(PollState::Fields(entries.iter().map(field_of_entry).collect())),
        _ => {
            config.wrong_type("targetState", target, "a text or an object");
            None
        }
    }
}

/// The requirements on a file.
fn state_of_file(target: &Json, config: &Fields<'_, '_>) -> Option<PollState> {
    let hint = "write `exists`, `absent`, `{\"contains\": TEXT}` or `{\"equals\": TEXT}`";
    match &target.kind {
        Kind::Text(text) => match text.trim() {
            "exists" => Some(PollState::Exists),
            "absent" => Some(PollState::Absent),
            other => {
                config.invalid(target.span, format!("unknown file state `{other}`"), hint);
                None
            }
        },
        Kind::Object(entries) => match &entries[..] {
            [entry] if matches!(&*entry.key, "contains" | "equals") => match entry.value.as_text() {
                Some(text) if &*entry.key == "equals" => Some(PollState::Equals(text.trim().into())),
                Some(text) if !text.is_empty() => Some(PollState::Contains(text.into())),
                Some(_) => {
                    config.invalid(entry.value.span, "every file contains nothing", hint);
                    None
                }
                None => {
                    config.wrong_type(&entry.key, &entry.value, "a text");
                    None
                }
            },
            _ => {
                config.invalid(target.span, "this is not the state of a file", hint);
                None
            }
        },
        _ => {
            config.wrong_type("targetState", target, "a text or an object");
            None
        }
    }
}

fn read_conditions<'j>(config: &Fields<'j, '_>, around: &VerdictContext<'_>) -> Vec<CompletionRule<'j>> {
    let conditions: &'j [Json] = config.items("conditions");
    if conditions.is_empty() && config.entry("conditions").is_some() {
        config.invalid(config.opening(), "`conditions` is empty", "name the verdicts that are combined");
    }
    conditions.iter().map(|condition| read_condition(condition, config, around)).collect()
}

fn read_condition<'j>(
    condition: &'j Json,
    config: &Fields<'j, '_>,
    around: &VerdictContext<'_>,
) -> CompletionRule<'j> {
    let Some(fields) = Fields::of(condition, "a condition", None, config.found) else {
        return CompletionRule::Never;
    };
    if fields.entry("type").is_none() {
        fields.missing("type");
    }
    let kind = fields.one_of("type", &VERDICT_TYPES);
    let written = fields.entry("config").map(|config| config.value.to_value()).unwrap_or_default();
    let rule = match (kind, fields.object("config")) {
        (Some((kind, span)), Some(inner)) => {
            let max = if kind == "count:iteration" {
                if inner.entry("maxIterations").is_none() {
                    inner.missing("maxIterations");
                }
                inner.count("maxIterations", 1)
            } else {
                inner.stray("maxIterations", "the limit of the whole verdict holds; remove it");
                None
            };
            for key in ["registryPath", "entryStep"].iter().filter(|_| kind == "detect:graph") {
                inner.stray(key, "only the verdict itself names the registry and its entry; remove it");
            }
            let counted = max.map_or((COUNT_DEFAULT, None), |(max, span)| (max, Some(span)));
            let rule = read_rule((kind, span), &inner, written, counted, around);
            finish_config(kind, inner);
            rule
        }
        (Some(("detect:graph", _)), None) if fields.entry("config").is_none() => CompletionRule::Graph,
        (_, None) if fields.entry("config").is_none() => {
            fields.missing("config");
            CompletionRule::Never
        }
        _ => CompletionRule::Never,
    };
    fields.finish();
    rule
}

/// Reports keys that belong to other types: they are known but have no effect here.
fn finish_config(kind: &str, config: Fields<'_, '_>) {
    // The whole configuration is passed to the handler.
    if kind == "meta:custom" {
        config.allow_others();
        return;
    }
    const KEYS: [(&str, &str); 13] = [
        ("count:check", "maxChecks"),
        ("detect:keyword", "verdictKeyword"),
        ("detect:structured", "signalType"),
        ("detect:structured", "requiredFields"),
        ("poll:state", "resourceType"),
        ("poll:state", "targetState"),
        ("detect:graph", "registryPath"),
        ("detect:graph", "entryStep"),
        ("meta:composite", "operator"),
        ("meta:composite", "conditions"),
        ("meta:custom", "handlerPath"),
        // Existing agents carry these keys over from an older generation.
        ("", "type"),
        ("", "issueParam"),
    ];
    for (owner, key) in KEYS.into_iter().filter(|(owner, _)| *owner != kind) {
        let why = if owner.is_empty() {
            "older definitions carry it; remove it".to_owned()
        } else {
            format!("it belongs to the verdict `{owner}`; remove it")
        };
        config.stray(key, &why);
    }
    config.finish();
}

/// Reads a path that must stay inside the agent's folder.
fn check_agent_path<'j>(
    path: Option<Text<'j>>,
    agent_dir: &str,
    fields: &Fields<'_, '_>,
) -> Option<Text<'j>> {
    let path = path?;
    if join_path(agent_dir, path.text).is_some_and(|joined| lies_in(&joined, agent_dir)) {
        return Some(path);
    }
    let message = format!("`{}` leads out of the agent's folder", path.text);
    fields.push(
        Diagnostic::error(codes::ESCAPES_ROOT, path.span, message).hint("keep it in the agent's folder"),
    );
    None
}
