//! Reads a workflow: its own keys, its steps and its monitors.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
};

use super::monitors::{self, MonitorDefinition};
use super::step::{StepReader, WorkflowStep};
use crate::codes;
use crate::takt::compose::{ComposedWorkflow, items_of_list};
use crate::takt::spellings::find_renamed_entry;
use crate::values::json::{Fields, Json, Kind, Text};

/// The default limit of visits of steps. A finding asks the author to set one.
const STEPS_MAX: u32 = 10;

/// A parsed workflow.
pub(crate) struct WorkflowDefinition<'j> {
    pub(crate) name: &'j str,
    pub(crate) description: Option<&'j str>,
    /// The most visits of steps.
    pub(crate) steps_max: u32,
    /// Whether it sets no iteration limit: `max_steps: infinite`.
    pub(crate) is_endless: bool,
    /// The name of the key of that limit, and where its value is.
    pub(crate) limit_key: (&'static str, Option<Span>),
    /// The name of the key of the first step.
    pub(crate) first_key: &'static str,
    pub(crate) first: Option<Text<'j>>,
    pub(crate) steps: Vec<WorkflowStep<'j>>,
    pub(crate) monitors: Vec<MonitorDefinition<'j>>,
    /// Whether some step has no usable name. An unknown target may then refer to it.
    pub(crate) nameless: bool,
}

/// Keys about options of providers, or how TAKT asks for the task.
const WITHOUT_EFFECT: [&str; 5] =
    ["provider_options", "auto_routing", "rate_limit_fallback", "interactive_mode", "tags"];

/// Keys that are the default of its steps.
const OF_STEPS: [&str; 2] = ["provider", "model"];

/// Keys that composition reads.
const COMPOSED: [&str; 6] = ["schemas", "subworkflow", "facet_pools", "all_steps", "capabilities", "vars"];

/// Keys with settings of TAKT's own runtime.
const CONFIG: [&str; 2] = ["workflow_config", "piece_config"];

/// The keys of a workflow that have no effect, or that composition reads.
pub(super) fn list_workflow_keys() -> impl Iterator<Item = &'static str> {
    WITHOUT_EFFECT.into_iter().chain(OF_STEPS).chain(COMPOSED).chain(CONFIG)
}

/// The names of the keys that an older generation spelled in another way.
struct KeySpelling {
    steps: &'static str,
    first: &'static str,
    limit: &'static str,
}

const TODAY: KeySpelling = KeySpelling { steps: "steps", first: "initial_step", limit: "max_steps" };
const OLDER: KeySpelling =
    KeySpelling { steps: "movements", first: "initial_movement", limit: "max_iterations" };

impl StepReader<'_, '_, '_> {
    /// Reads a workflow that was composed.
    pub(crate) fn read_workflow<'j>(
        &self,
        fields: Fields<'j, '_>,
        composed: &'j ComposedWorkflow,
    ) -> WorkflowDefinition<'j> {
        let name = fields.required("name").map_or("workflow", |name| name.text.trim());
        let description = fields.text("description").map(|text| text.text);
        self.read_keys_without_effect(&fields);
        let has = |key: &'static str| fields.nullable(key).is_some();
        // What is missing is named as the rest of the file is written.
        let is_older = has(OLDER.steps) || (!has(TODAY.steps) && (has(OLDER.first) || has(OLDER.limit)));
        let spelling = if is_older { &OLDER } else { &TODAY };
        let is_endless = ["max_steps", "max_movements", "max_iterations"]
            .iter()
            .any(|key| fields.nullable(key).is_some_and(|entry| entry.value.as_text() == Some("infinite")));
        let (steps_max, limit_key) = read_steps_max(&fields, spelling, self.iterations_max);
        let (first_key, first) = read_first_step(&fields, spelling, composed);
        let (steps_key, entry) = find_renamed_entry(&fields, TODAY.steps, &[OLDER.steps]);
        fields.need(steps_key);
        let is_empty = fields.items(steps_key).is_empty();
        match entry {
            None => fields.missing(spelling.steps),
            Some(entry) if is_empty && matches!(entry.value.kind, Kind::List(_)) => {
                fields.invalid(entry.value.span, format!("`{steps_key}` is empty"), "add a step");
            }
            Some(_) => {}
        }
        let read = |step| self.read_step(step, &fields);
        let mut steps: Vec<WorkflowStep<'j>> = composed.steps.iter().filter_map(read).collect();
        for key in OF_STEPS {
            fields.shunned(key);
        }
        let agent = fields.filled("provider").map(|provider| Str::from(provider.text));
        let model = fields.filled("model").map(|model| model.text);
        steps.iter_mut().for_each(|step| step.default_agent(agent.as_ref(), model));
        let monitors = monitors::read_monitors(&composed.monitors, &fields, self.sections, self.interactive);
        fields.stray("answer_agent", "nothing reads it");
        fields.finish();
        let nameless = steps.len() < composed.steps.len();
        WorkflowDefinition {
            name,
            description,
            steps_max,
            is_endless,
            limit_key,
            first_key,
            first,
            steps,
            monitors,
            nameless,
        }
    }

    /// Notes the keys of a workflow without effect.
    fn read_keys_without_effect(&self, fields: &Fields<'_, '_>) {
        self.ignore_keys(fields, &WITHOUT_EFFECT);
        for key in COMPOSED {
            fields.shunned(key);
        }
        for key in CONFIG {
            let Some(config) = fields.shunned(key) else { continue };
            self.notes.ignore_key(config);
            self.report_prepare_scripts(&config.value);
        }
    }

    /// Reports scripts that TAKT runs before a workflow.
    fn report_prepare_scripts(&self, config: &Json) {
        let scripts = config.get("runtime").and_then(|runtime| runtime.get("prepare"));
        for script in scripts.map(items_of_list).unwrap_or_default() {
            let Some(text) = script.as_text().filter(|text| !matches!(*text, "node" | "gradle")) else {
                continue;
            };
            self.files.loader.found.left_out(
                script.span,
                format!("`{text}` is not run before the workflow"),
                "prepare worktrees with `setup` in `[worktree]` of cuegate.toml",
            );
        }
    }
}

/// Reads the most visits of steps, and the key that says it with the place of its value.
fn read_steps_max(
    fields: &Fields<'_, '_>,
    spelling: &KeySpelling,
    bound: Option<u32>,
) -> (u32, (&'static str, Option<Span>)) {
    let (key, entry) = find_renamed_entry(fields, TODAY.limit, &["max_movements", OLDER.limit]);
    fields.need(key);
    let is_called = fields.nullable("subworkflow").is_some();
    let Some(entry) = entry else {
        if is_called {
            // The caller of a workflow limits it; alone it has the default limit.
        } else if fields.nullable(TODAY.steps).is_some() {
            let message = format!("`max_steps` is missing; a run ends after {STEPS_MAX} steps");
            let finding = Diagnostic::warning(codes::MISSING_KEY, fields.opening(), message);
            fields.push(finding.hint("say how many steps a run may take"));
        } else {
            fields.missing(spelling.limit);
        }
        return (STEPS_MAX, (spelling.limit, None));
    };
    let span = entry.value.span;
    if entry.value.as_text() == Some("infinite") {
        if bound.is_none() {
            let message = format!("`{key}: infinite` needs a bound from outside of the workflow");
            let finding = Diagnostic::error(codes::MISSING_KEY, span, message);
            fields.push(finding.hint(
                "set `max_iterations` in `[run]` of cuegate.toml, or start it with `--max-iterations N`: the most that a run \
                 can cost follows from it",
            ));
        }
        return (bound.unwrap_or(STEPS_MAX), (key, Some(span)));
    }
    (fields.count(key, 1).map_or(STEPS_MAX, |(value, _)| value), (key, Some(span)))
}

/// Reads the first step, and the key that names it: the step that the name stands for, or the first one if there is no
/// name.
fn read_first_step<'j>(
    fields: &Fields<'j, '_>,
    spelling: &KeySpelling,
    composed: &'j ComposedWorkflow,
) -> (&'static str, Option<Text<'j>>) {
    let (key, entry) = find_renamed_entry(fields, TODAY.first, &[OLDER.first]);
    fields.need(key);
    match (entry, composed.first.as_deref()) {
        (Some(entry), Some(first)) => (key, Some(Text { text: first, span: entry.value.span })),
        (Some(_), None) => (key, fields.filled(key).map(|text| Text { text: text.text.trim(), ..text })),
        (None, None) => {
            // Steps that were left out have their own findings.
            if fields.nullable(TODAY.steps).or(fields.nullable(OLDER.steps)).is_none() {
                fields.missing(spelling.first);
            }
            (spelling.first, None)
        }
        (None, Some(first)) => {
            // The document of pieces requires the key; TAKT and its later documents do not.
            if fields.nullable(OLDER.steps).is_some() {
                let key = OLDER.first;
                let message = format!("`{key}` is missing; a run starts with the first step, `{first}`");
                let finding = Diagnostic::warning(codes::MISSING_KEY, fields.span, message);
                fields.push(finding.hint(format!("write `{key}: {first}`")));
            }
            (spelling.first, Some(Text { text: first, span: fields.span }))
        }
    }
}
