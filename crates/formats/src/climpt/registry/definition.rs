//! A registry file as written.

use std::collections::HashSet;

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::step_definition::{StepDefinition, read_step};
use crate::climpt::agent::definition::check_version;
use crate::climpt::agent::entries::{COMPLETION_TYPES, completion_type, read_mapping};
use crate::climpt::generation::Generation;
use crate::climpt::registry::completion_steps::read_completion;
use crate::climpt::registry::validation_definition::{FailurePattern, ValidationStep, ValidatorDefinition};
use crate::codes;
use crate::findings::Findings;
use crate::suggest::find_nearest_name;
use crate::values::json::{Entry, Fields, Json, Kind, Text};

/// A registry as written. Entries that failed to parse are absent, and findings report them.
#[derive(Debug, Default)]
pub(crate) struct RegistryDefinition<'j> {
    /// The generation it is written in.
    pub(crate) generation: Generation,
    /// The place where it begins.
    pub(crate) span: Span,
    /// The agent it belongs to.
    pub(crate) agent_id: Option<Text<'j>>,
    /// First part of prompt paths.
    pub(crate) c1: Option<Text<'j>>,
    pub(crate) prompts_base: Option<Text<'j>>,
    pub(crate) schemas_base: Option<Text<'j>>,
    /// Path template of a prompt with an adaptation.
    pub(crate) path_template: Option<Text<'j>>,
    /// Path template of a prompt without one.
    pub(crate) path_template_plain: Option<Text<'j>>,
    /// The verdict type that a registry of the "complete" generation declares for its runs, with its place.
    pub(crate) completion_type: Option<(&'static str, Span)>,
    /// The entry for every verdict type that the mapping does not name.
    pub(crate) entry_step: Option<Text<'j>>,
    /// The entry by verdict type.
    pub(crate) entry_mapping: Vec<(&'j str, Text<'j>)>,
    /// Whether an entry setting is present but unreadable.
    pub(crate) entry_misread: bool,
    /// The failure patterns, which select a prompt for each failure.
    pub(crate) patterns: Vec<FailurePattern<'j>>,
    /// The validators: commands that check the working tree.
    pub(crate) validators: Vec<ValidatorDefinition<'j>>,
    /// The validators to run before each closure step completes the run.
    pub(crate) validations: Vec<ValidationStep<'j>>,
    pub(crate) steps: Vec<StepDefinition<'j>>,
    /// Whether an unreadable part may contain entries that seem to be missing.
    pub(crate) misread: bool,
    /// Validators, failure patterns and steps of which only the names could be read.
    pub(crate) unread: Vec<&'j str>,
}

pub(crate) fn read_registry<'j>(
    json: &'j Json,
    generation: Generation,
    found: &Findings,
) -> Option<RegistryDefinition<'j>> {
    let fields = Fields::of(json, "the registry", None, found)?;
    fields.text("$schema");
    let complete = generation == Generation::Complete;
    // The "Step Flow Design" shows a registry that consists only of steps.
    let named = |key| if complete { fields.filled(key) } else { fields.required(key) };
    if let Some(version) = named("version") {
        check_version(version, &fields);
    }
    if fields.entry("steps").is_none() {
        fields.missing("steps");
    }
    let pattern_key = generation.patterns_key();
    let (entry_step, entry_mapping) = (fields.filled("entryStep"), read_mapping(&fields, generation));
    let entry_misread = ["entryStep", "entryStepMapping"].iter().any(|key| fields.is_poisoned(key));
    let mut registry = RegistryDefinition {
        generation,
        span: Span::start_of(json.span.file),
        agent_id: named("agentId"),
        c1: named("c1"),
        prompts_base: fields.filled("userPromptsBase"),
        schemas_base: fields.filled("schemasBase"),
        path_template: fields.filled("pathTemplate"),
        path_template_plain: fields.filled("pathTemplateNoAdaptation"),
        entry_step,
        entry_mapping,
        entry_misread,
        completion_type: if complete { read_completion_type(&fields) } else { None },
        patterns: fields
            .names(pattern_key)
            .into_iter()
            .filter_map(|e| FailurePattern::read(pattern_key, e, found))
            .collect(),
        validators: fields
            .names("validators")
            .into_iter()
            .filter_map(|e| ValidatorDefinition::read(e, found))
            .collect(),
        validations: if complete { Vec::new() } else { read_validations(&fields) },
        steps: read_steps(&fields, generation),
        misread: false,
        unread: find_unreadable_entries(json, &[pattern_key, "validators", "steps", "completionSteps"]),
    };
    if complete {
        read_completions(&fields, &mut registry);
        report_incomplete(&fields, &registry.steps);
    }
    let is_strange = fields.has_strange_key();
    let no_entry = registry.entry_step.is_none() && registry.entry_mapping.is_empty();
    registry.entry_misread |= is_strange && no_entry;
    registry.misread = is_strange || is_unreadable(json, &[pattern_key, "validators", "validationSteps"]);
    fields.finish();
    Some(registry)
}

/// Whether one of the maps, or an entry of one, is not an object, which is reported.
fn is_unreadable(registry: &Json, keys: &[&str]) -> bool {
    let is_object = |json: &Json| matches!(json.kind, Kind::Object(_));
    let maps = keys.iter().filter_map(|key| registry.get(key));
    maps.into_iter().any(|map| !is_object(map) || !map.pairs().iter().all(|entry| is_object(&entry.value)))
}

/// The names of map entries that are not objects. They are reported, and the names still count as defined.
fn find_unreadable_entries<'j>(registry: &'j Json, keys: &[&str]) -> Vec<&'j str> {
    let maps = keys.iter().filter_map(|key| registry.get(key));
    let faulty = maps.flat_map(Json::pairs).filter(|entry| !matches!(entry.value.kind, Kind::Object(_)));
    faulty.map(|entry| &*entry.key).collect()
}

fn read_validations<'j>(fields: &Fields<'j, '_>) -> Vec<ValidationStep<'j>> {
    let entries = fields.names("validationSteps");
    entries.into_iter().filter_map(|entry| ValidationStep::read(entry, fields.found)).collect()
}

fn read_completion_type(fields: &Fields<'_, '_>) -> Option<(&'static str, Span)> {
    let written = fields.filled("completionType")?;
    let kind = completion_type(written.text);
    if kind.is_none() {
        let message = format!("unknown `completionType` `{}`", written.text);
        fields.no_such_word(written, message, &COMPLETION_TYPES);
    }
    Some((kind?, written.span))
}

/// Adds the steps that only `completionSteps` define, and the validations of all of them.
fn read_completions<'j>(fields: &Fields<'j, '_>, registry: &mut RegistryDefinition<'j>) {
    let entries = fields.names("completionSteps");
    let meant = guess_meant_steps(&entries, &registry.steps);
    for (entry, meant) in entries.into_iter().zip(meant) {
        let id: &str = &entry.key;
        let known = meant.is_some() || registry.steps.iter().any(|step| step.id == id);
        if let Some(meant) = meant {
            let message =
                format!("`completionSteps` names the undefined step `{id}`, to which nothing leads");
            let finding = Diagnostic::error(codes::UNKNOWN_TARGET, entry.key_span, message).step(id);
            // Only the name is wrong: the entry is not read again under the intended name.
            fields.push(finding.hint(format!("did you mean `{meant}`?")));
        }
        let Some(completion) = read_completion(entry, known, fields.found) else { continue };
        registry.validations.extend(completion.validation);
        if !known {
            registry.steps.push(completion.step);
        }
    }
}

/// For entries of `completionSteps` without a step: the step that each was meant for. That is a step with a similar
/// name, if no step has the entry's own name and no transition leads to it.
fn guess_meant_steps<'j>(entries: &[&'j Entry], steps: &[StepDefinition<'j>]) -> Vec<Option<&'j str>> {
    let rules = steps.iter().flat_map(|step| step.transitions.iter().flatten());
    let targets = rules.flat_map(|transition| transition.rule.targets());
    let known: HashSet<&str> =
        steps.iter().map(|step| step.id).chain(targets.map(|target| target.text)).collect();
    let keys: HashSet<&str> = entries.iter().map(|entry| &*entry.key).collect();
    let without = steps.iter().map(|step| step.id).filter(|id| !keys.contains(id));
    // A prefix common to all names does not make them similar.
    let without: Vec<(&'j str, &'j str)> =
        without.filter_map(|id| Some((id.strip_prefix("complete.")?, id))).collect();
    let meant = |entry: &&Entry| match known.contains(&*entry.key) {
        true => None,
        false => {
            let near = find_nearest_name(
                entry.key.strip_prefix("complete.")?,
                without.iter().map(|(part, _)| *part),
            )?;
            without.iter().find(|(part, _)| *part == near).map(|(_, id)| *id)
        }
    };
    entries.iter().map(meant).collect()
}

/// Reports together all steps of the flow that lack a gate or transitions, in the words of "Step Flow Design",
/// "Load-time validation".
fn report_incomplete(fields: &Fields<'_, '_>, steps: &[StepDefinition<'_>]) {
    let written = fields.entry("steps").map(|entry| &entry.value);
    // An unreadable gate or transition has been reported.
    let is_there =
        |id, key| written.and_then(|steps| steps.get(id)).is_some_and(|step| step.get(key).is_some());
    let lacking = |key, lacks: fn(&StepDefinition<'_>) -> bool| {
        let lacking = steps.iter().filter(|step| !step.section && lacks(step) && !is_there(step.id, key));
        lacking.map(|step| step.id).collect::<Vec<&str>>().join(", ")
    };
    let [gate, transitions] = ["structuredGate", "transitions"];
    let parts = [
        (gate, lacking(gate, |step| step.gate.is_none())),
        (transitions, lacking(transitions, |step| step.transitions.is_none())),
    ];
    if parts.iter().all(|(_, ids)| ids.is_empty()) {
        return;
    }
    let mut message =
        "[StepFlow] Flow validation failed. All Flow steps must define structuredGate and transitions."
            .to_owned();
    for (key, ids) in parts.iter().filter(|(_, ids)| !ids.is_empty()) {
        message.push_str(&format!("\nSteps missing {key}: {ids}"));
    }
    let span = fields.entry("steps").map_or(fields.opening(), |entry| entry.key_span);
    let finding = Diagnostic::error(codes::MISSING_KEY, span, message)
        .hint("add them; if a step is only included in other prompts, rename it to `section.*`");
    let mut all = parts.iter().filter(|(_, ids)| !ids.is_empty()).map(|(_, ids)| ids.as_str());
    // The finding is about the steps; it can name only one of them.
    let only = all.next().filter(|ids| !ids.contains(", ") && all.all(|other| other == *ids));
    fields.push(match only {
        Some(step) => finding.step(step),
        None => finding,
    });
}

fn read_steps<'j>(fields: &Fields<'j, '_>, generation: Generation) -> Vec<StepDefinition<'j>> {
    let written = fields.names("steps");
    let steps: Vec<StepDefinition<'j>> =
        written.iter().filter_map(|entry| read_step(entry, generation, fields.found)).collect();
    // An entry that is not an object, or not a step, has been reported.
    if let Some(entry) = fields.entry("steps")
        && matches!(entry.value.kind, Kind::Object(_))
        && steps.len() == written.len()
        && steps.iter().all(|step| step.section)
    {
        let hint = "add a step with `structuredGate`, `transitions` and `outputSchemaRef`";
        fields.invalid(entry.key_span, "`steps` hold no step that could be run", hint);
    }
    steps
}
