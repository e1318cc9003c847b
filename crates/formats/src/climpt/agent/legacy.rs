//! Reads `agent.json` of the generations before `runner`: the same settings, under `behavior` and at the top of the
//! file.
//!
//! They are converted to the layout of the runner reference, with all places kept, so that each setting has one reader.

use std::sync::Arc;

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::completion_type::VERDICT_TYPES;
use crate::codes;
use crate::findings::Findings;
use crate::values::json::{Entry, Fields, Json, Kind};

/// An agent in the layout of the runner reference.
pub(crate) struct ModernAgent {
    /// The agent.
    pub(crate) json: Arc<Json>,
    /// The place of `completionType` when it selects a check flow.
    pub(crate) step_flow: Option<Span>,
}

/// The names of the verdict types in the older generations.
pub(crate) const OLDER_TYPES: [(&str, &str); 8] = [
    ("externalState", "poll:state"),
    ("iterationBudget", "count:iteration"),
    ("checkBudget", "count:check"),
    ("keywordSignal", "detect:keyword"),
    ("structuredSignal", "detect:structured"),
    ("stepMachine", "detect:graph"),
    ("composite", "meta:composite"),
    ("custom", "meta:custom"),
];

/// The `completionType` of an agent whose registry is a check flow ("Step Flow Design"). Such a run is complete where
/// its flow ends.
const STEP_FLOW: (&str, &str) = ("stepFlow", "detect:graph");

/// Top-level keys that only older generations have.
const OLDER_KEYS: [&str; 6] = ["behavior", "prompts", "logging", "github", "worktree", "actions"];

/// Top-level keys of all generations.
const SHARED_KEYS: [&str; 6] = ["$schema", "version", "name", "displayName", "description", "parameters"];

/// The older names of places in messages.
const NAMES: [(&str, &str); 10] = [
    ("runner.flow", "behavior"),
    ("behavior.prompts", "prompts"),
    ("runner.verdict", "behavior"),
    ("behavior.config", "behavior.completionConfig"),
    ("runner.boundaries", "behavior"),
    ("runner.integrations.github", "github"),
    ("runner.execution.worktree", "worktree"),
    ("runner.logging", "logging"),
    ("runner.actions", "actions"),
    ("config", "completionConfig"),
];

/// Keys under `behavior`.
const OF_BEHAVIOR: [&str; 6] = [
    "systemPromptPath",
    "completionType",
    "completionConfig",
    "allowedTools",
    "permissionMode",
    "preCloseValidation",
];

/// Converts an agent to the layout of the runner reference. `None` when it mixes the generations, which is reported.
pub(crate) fn modernize_agent(json: Arc<Json>, found: &Findings) -> Option<ModernAgent> {
    let Some(older) = OLDER_KEYS.iter().find_map(|key| json.entry(key)) else {
        return Some(ModernAgent { json, step_flow: None });
    };
    if json.entry("runner").is_some() {
        let message = format!("`{}` and `runner` belong to different generations of agents", older.key);
        let hint = match &*older.key {
            "behavior" => "keep one of `behavior` and `runner`, and everything in its place there".to_owned(),
            key => format!("move `{key}` into `runner`, or keep it with `behavior` and remove `runner`"),
        };
        found.push(Diagnostic::error(codes::MIXED_GENERATIONS, older.key_span, message).hint(hint));
        return None;
    }
    found.rename(&NAMES);
    let fields = Fields::of(&json, "the agent", None, found)?;
    let mut entries: Vec<Entry> =
        SHARED_KEYS.iter().filter_map(|key| fields.nullable(key)).cloned().collect();
    let (runner, step_flow) = build_runner_entry(&fields);
    entries.push(runner);
    fields.misplaced(&OF_BEHAVIOR, "behavior");
    fields.finish();
    let json = Arc::new(Json { span: json.span, kind: Kind::Object(entries) });
    Some(ModernAgent { json, step_flow })
}

/// An object that is not in the file, placed at `span`.
fn build_object_entry(key: &str, span: Span, entries: impl IntoIterator<Item = Entry>) -> Entry {
    let value = Json { span, kind: Kind::Object(entries.into_iter().collect()) };
    Entry { key: key.into(), key_span: span, value }
}

fn clone_with_key(entry: &Entry, key: &str) -> Entry {
    Entry { key: key.into(), ..entry.clone() }
}

/// The equivalent `runner` object.
fn build_runner_entry(agent: &Fields<'_, '_>) -> (Entry, Option<Span>) {
    if agent.entry("behavior").is_none() {
        agent.missing("behavior");
    }
    let behavior = agent.object("behavior");
    let span = behavior.as_ref().map_or(agent.opening(), |behavior| behavior.opening());
    if behavior.is_none() {
        // The whole section is missing then, which has been reported.
        agent.found.unreadable(span);
    }
    let moved = |from: &Fields<'_, '_>, key| from.nullable(key).cloned();
    let of = |key| behavior.as_ref().and_then(|behavior| moved(behavior, key));
    let flow =
        build_object_entry("flow", span, of("systemPromptPath").into_iter().chain(moved(agent, "prompts")));
    let boundaries =
        build_object_entry("boundaries", span, of("allowedTools").into_iter().chain(of("permissionMode")));
    let integrations =
        moved(agent, "github").map(|github| build_object_entry("integrations", span, [github]));
    let execution =
        moved(agent, "worktree").map(|worktree| build_object_entry("execution", span, [worktree]));
    let (verdict, step_flow) = behavior.as_ref().map(build_verdict_entry).unwrap_or_default();
    if let Some(behavior) = behavior {
        read_before_close(&behavior);
        behavior.finish();
    }
    let parts = [Some(flow), verdict, Some(boundaries), integrations, execution];
    let apart = [moved(agent, "actions"), moved(agent, "logging")];
    (build_object_entry("runner", span, parts.into_iter().chain(apart).flatten()), step_flow)
}

/// The verdict that `completionType` and `completionConfig` define, and the place where they select a check flow.
fn build_verdict_entry(behavior: &Fields<'_, '_>) -> (Option<Entry>, Option<Span>) {
    let config = behavior.nullable("completionConfig");
    if let (Some(_), None) = (config, behavior.entry("completionType")) {
        behavior.missing("completionType");
        return (Some(graph_verdict(behavior.opening())), None);
    }
    let Some(written) = behavior.filled("completionType") else { return (None, None) };
    let Some(kind) = kind_of(written.text) else {
        let mut known: Vec<&str> = OLDER_TYPES.iter().map(|(older, _)| *older).collect();
        known.push(STEP_FLOW.0);
        let message = format!("unknown `completionType` `{}`", written.text);
        behavior.no_such_word(written, message, &known);
        return (Some(graph_verdict(written.span)), None);
    };
    let text = Json { span: written.span, kind: Kind::Text(kind.into()) };
    let kind = Entry { key: "type".into(), key_span: written.span, value: text };
    // Their document names no key for an iteration budget: with an empty configuration the limit is unset.
    let config = config.filter(|entry| kind.value.as_text() != Some("count:iteration") || !is_empty(entry));
    let config = config.map(|entry| Entry { key: "config".into(), ..entry.clone() }).map(modern_config);
    let step_flow = (written.text == STEP_FLOW.0).then_some(written.span);
    (Some(build_object_entry("verdict", written.span, std::iter::once(kind).chain(config))), step_flow)
}

fn is_empty(object: &Entry) -> bool {
    matches!(&object.value.kind, Kind::Object(entries) if entries.is_empty())
}

/// A verdict without errors, used when the written one has been reported.
fn graph_verdict(span: Span) -> Entry {
    let text = Json { span, kind: Kind::Text(STEP_FLOW.1.into()) };
    build_object_entry("verdict", span, [Entry { key: "type".into(), key_span: span, value: text }])
}

/// The verdict type that a word of either generation names.
fn kind_of(word: &str) -> Option<&'static str> {
    let older = OLDER_TYPES.iter().chain([&STEP_FLOW]).find(|(older, _)| *older == word);
    let newer = || VERDICT_TYPES.into_iter().find(|newer| *newer == word);
    older.map(|(_, newer)| *newer).or_else(newer)
}

/// Converts a `completionConfig`, including combined conditions, to the words of the runner reference.
fn modern_config(mut config: Entry) -> Entry {
    let Kind::Object(entries) = &mut config.value.kind else { return config };
    for entry in entries {
        match (&*entry.key, &mut entry.value.kind) {
            ("completionKeyword", _) => *entry = clone_with_key(entry, "verdictKeyword"),
            ("conditions", Kind::List(conditions)) => conditions.iter_mut().for_each(modern_condition),
            _ => {}
        }
    }
    config
}

fn modern_condition(condition: &mut Json) {
    let Kind::Object(entries) = &mut condition.kind else { return };
    for entry in entries {
        match &*entry.key {
            "type" => {
                // A check flow is not a condition: the word stays as written, and its reader rejects it.
                let kind = entry.value.as_text().filter(|word| *word != STEP_FLOW.0).and_then(kind_of);
                if let Some(kind) = kind {
                    entry.value.kind = Kind::Text(kind.into());
                }
            }
            // The JSON reader limits the nesting depth.
            "config" => *entry = modern_config(entry.clone()),
            _ => {}
        }
    }
}

/// Reads the older validators that ran before the agent closed an issue itself.
fn read_before_close(behavior: &Fields<'_, '_>) {
    let Some(before) = behavior.object("preCloseValidation") else { return };
    let enabled = before.boolean("enabled");
    before.texts("validators");
    before.one_of("onFailure", &["block", "warn"]);
    if let Some((true, span)) = enabled {
        let statement =
            "`preCloseValidation` has no effect: nothing but the registry guards the end of a run";
        before.found.left_out(span, statement, "name the validators in `validationSteps` of the registry");
    }
    before.finish();
}
