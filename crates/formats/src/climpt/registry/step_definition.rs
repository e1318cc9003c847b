//! A step of a registry as written.

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::{FieldPath, Permission},
};

use super::transition::{Transition, read_transitions};
use crate::climpt::agent::model_names::model_of;
use crate::climpt::agent::permission_mode::permission_of;
use crate::climpt::generation::Generation;
use crate::climpt::kinds::{Intent, StepKind};
use crate::codes;
use crate::findings::Findings;
use crate::suggest::{find_nearest_name, quote_names};
use crate::values::json::{Entry, Fields, Text};

/// A step as written. Settings that failed to parse are absent, and findings report them.
#[derive(Debug)]
pub(crate) struct StepDefinition<'j> {
    /// The generation of its registry.
    pub(crate) generation: Generation,
    /// Its key, which is its name.
    pub(crate) id: &'j str,
    /// The place of the key.
    pub(crate) span: Span,
    /// Its display name.
    pub(crate) name: Option<&'j str>,
    pub(crate) kind: Option<StepKind>,
    /// Whether it is a section: text that other prompts include.
    pub(crate) section: bool,
    /// Second part of its prompt's path.
    pub(crate) c2: Option<Text<'j>>,
    /// Third part of its prompt's path.
    pub(crate) c3: Option<Text<'j>>,
    /// Edition of its prompt.
    pub(crate) edition: Option<Text<'j>>,
    /// Adaptation of its prompt.
    pub(crate) adaptation: Option<Text<'j>>,
    /// The built-in prompt to use when there is no file.
    pub(crate) fallback_key: Option<Text<'j>>,
    /// The variables it declares for its prompt.
    pub(crate) variables: Option<Vec<Text<'j>>>,
    /// Whether it declares that its prompt needs the task text.
    pub(crate) uses_stdin: Option<(bool, Span)>,
    /// The schema of its answer.
    pub(crate) schema: Option<SchemaReference<'j>>,
    /// Its gate, which maps an answer to an intent.
    pub(crate) gate: Option<GateDefinition<'j>>,
    /// The targets of its intents.
    pub(crate) transitions: Option<Vec<Transition<'j>>>,
    /// Whether some transitions could not be read, because their keys are not intents.
    pub(crate) transitions_misread: bool,
    /// The model it requests.
    pub(crate) model: Option<&'j str>,
    /// Its permission, with its place.
    pub(crate) permission: Option<(Permission, Span)>,
    /// Its inputs: values of other steps, by name.
    pub(crate) inputs: Vec<&'j Entry>,
    /// Whether its inputs are unknown.
    pub(crate) inputs_misread: bool,
}

/// The default edition of prompts.
pub(crate) const EDITION: &str = "default";

impl<'j> StepDefinition<'j> {
    /// The edition of its prompt.
    pub(crate) fn edition(&self) -> &'j str {
        self.edition.map_or(EDITION, |edition| edition.text)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaReference<'j> {
    /// The file, relative to the schema base.
    pub(crate) file: Text<'j>,
    /// The schema in it.
    pub(crate) schema: Text<'j>,
}

/// A `structuredGate` as written.
#[derive(Debug)]
pub(crate) struct GateDefinition<'j> {
    /// Its place.
    pub(crate) span: Span,
    /// The intents it allows.
    pub(crate) intents: Vec<(Intent, Span)>,
    /// The place of the intent list in the schema, as a pointer.
    pub(crate) schema_pointer: Option<Text<'j>>,
    /// The answer field with the intent.
    pub(crate) field: Option<(FieldPath, Span)>,
    /// The answer field with the target of a jump.
    pub(crate) target_field: Option<(FieldPath, Span)>,
    /// How jump targets are selected.
    pub(crate) target_mode: Option<(TargetMode, Span)>,
    /// Whether some of its intents could not be read.
    pub(crate) misread: bool,
    /// Whether some of its handoff fields could not be read.
    pub(crate) handoff_misread: bool,
    /// Handoff values for later steps.
    pub(crate) handoff: Vec<(FieldPath, Span)>,
    /// Whether an unreadable intent ends the run.
    pub(crate) fail_fast: Option<(bool, Span)>,
    /// The intent to use when the answer's intent is unreadable.
    pub(crate) fallback: Option<(Intent, Span)>,
    /// Whether a fallback intent is written, valid or not.
    pub(crate) fallback_is_written: bool,
}

/// How jump targets are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetMode {
    /// Only the targets in `transitions.jump`.
    Explicit,
    /// Any work or verification step.
    Dynamic,
    /// The value of the target field selects one of the targets in `transitions.jump`.
    Conditional,
}

pub(crate) fn read_step<'j>(
    entry: &'j Entry,
    generation: Generation,
    found: &Findings,
) -> Option<StepDefinition<'j>> {
    let id: &'j str = &entry.key;
    let fields = Fields::of(&entry.value, "a step", Some(id), found)?;
    let written = fields.required("stepId");
    if let Some(written) = written.filter(|written| written.text != id) {
        fields.push(
            Diagnostic::error(
                codes::ID_MISMATCH,
                written.span,
                format!("the step of key `{id}` calls itself `{}`", written.text),
            )
            .hint("make `stepId` and the key equal"),
        );
    }
    let c2 = fields.required_part("c2");
    let (kind, kind_is_written) = read_kind(&fields, id, c2, generation);
    let gate = fields.object("structuredGate").map(|fields| read_gate(fields, generation));
    let transitions = read_transitions(&fields, id, generation);
    let transitions_misread = fields.is_poisoned("transitions");
    let inputs = fields.names("inputs");
    let inputs_misread = fields.is_poisoned("inputs");
    // If a list could not be read completely, nothing is certain to be missing from it.
    let variables = fields.texts("uvVariables").filter(|_| !fields.is_poisoned("uvVariables"));
    let section_by_name = c2.is_some_and(|c2| c2.text == "section") || id.starts_with("section.");
    let mut step = StepDefinition {
        generation,
        id,
        span: entry.key_span,
        name: fields.text("name").map(|name| name.text),
        kind,
        section: section_by_name && !kind_is_written && gate.is_none(),
        c2,
        c3: fields.required_part("c3"),
        edition: fields.part("edition"),
        adaptation: fields.part("adaptation"),
        fallback_key: fields.filled("fallbackKey"),
        variables,
        uses_stdin: fields.boolean("usesStdin"),
        schema: fields.object("outputSchemaRef").and_then(read_schema_reference),
        transitions,
        transitions_misread,
        gate,
        model: model_of(&fields, "model"),
        permission: permission_of(&fields),
        inputs,
        inputs_misread,
    };
    fields.text("description");
    for key in ["condition", "priority", "type"] {
        fields.stray(key, "older definitions carry it; remove it");
    }
    step.inputs_misread |= step.inputs.is_empty() && fields.has_strange_key();
    if step.section {
        report_section(&step, &fields);
    } else {
        report_incomplete(&step, &fields);
    }
    fields.finish();
    Some(step)
}

/// The kind of a step, and whether it is written. In the "complete" generation the name implies it: `complete.*` steps
/// complete the run.
fn read_kind(
    fields: &Fields<'_, '_>,
    id: &str,
    c2: Option<Text<'_>>,
    generation: Generation,
) -> (Option<StepKind>, bool) {
    if generation == Generation::Complete {
        let kind = if id.starts_with("complete.") { StepKind::Closure } else { StepKind::Work };
        return (Some(kind), false);
    }
    let written = fields.one_of("stepKind", &StepKind::WORDS);
    if fields.entry("stepKind").is_some() {
        return (written.and_then(|(word, _)| StepKind::parse(word)), true);
    }
    (c2.and_then(|c2| StepKind::of_category(c2.text)), false)
}

/// Reports settings without effect in a section: sections are text for other prompts, and no agent is asked with them.
fn report_section(step: &StepDefinition<'_>, fields: &Fields<'_, '_>) {
    let why = "a section is only text that other prompts include; remove it";
    fields.strays(&["outputSchemaRef", "transitions", "model", "permissionMode", "inputs"], why);
    if let Some((true, span)) = step.uses_stdin {
        fields.inert(span, format!("`usesStdin` has no effect in the section `{}`", step.id), why);
    }
}

/// Reports together everything that a step of the flow lacks.
fn report_incomplete(step: &StepDefinition<'_>, fields: &Fields<'_, '_>) {
    // The "Step Flow Design" reports all steps without these two in one error; the registry does that.
    let apart = step.generation == Generation::Complete;
    // A setting that is present but unreadable has been reported.
    let is_there = |key| fields.nullable(key).is_some();
    let parts = [
        ("structuredGate", !apart && step.gate.is_none() && !is_there("structuredGate")),
        ("transitions", !apart && step.transitions.is_none() && !is_there("transitions")),
        ("outputSchemaRef", step.schema.is_none() && !is_there("outputSchemaRef")),
    ];
    let missing: Vec<&str> = parts.iter().filter(|(_, missing)| *missing).map(|(key, _)| *key).collect();
    if !missing.is_empty() {
        fields.lacks(
            Diagnostic::error(
                codes::MISSING_KEY,
                step.span,
                format!("`{}` lacks {}", step.id, quote_names(&missing)),
            )
            .hint("every step of the flow has all three; rename a step that is only included to `section.*`"),
        );
    }
    // A missing or unreadable `c2` may be one that implies a kind.
    if step.kind.is_none() && step.c2.is_some() && !is_there("stepKind") {
        let c2 = step.c2.map_or_else(String::new, |c2| format!(", and `{}` as `c2` implies none", c2.text));
        let message = format!("`{}` has no `stepKind`{c2}", step.id);
        let meant =
            step.c2.and_then(|c2| Some((c2.span, find_nearest_name(c2.text, StepKind::categories())?)));
        fields.push(match meant {
            Some((span, category)) => {
                Diagnostic::error(codes::MISSING_KEY, span, message).did_you_mean(category)
            }
            None => Diagnostic::error(codes::MISSING_KEY, step.span, message)
                .hint(format!("add `stepKind`: {}", quote_names(&StepKind::WORDS))),
        });
    }
}

pub(crate) fn read_schema_reference<'j>(fields: Fields<'j, '_>) -> Option<SchemaReference<'j>> {
    let file = fields.required("file");
    let schema = fields.required("schema");
    fields.finish();
    Some(SchemaReference { file: file?, schema: schema? })
}

/// The default answer field of the intent, for gates of the "complete" generation.
pub(crate) const INTENT_FIELD: &str = "next_action.action";

/// The default pointer to the schema's list of intents.
fn read_pointer<'j>(fields: &Fields<'j, '_>) -> Option<Text<'j>> {
    fields.required("intentSchemaRef").filter(|pointer| {
        let local = pointer.text.starts_with("#/");
        if !local {
            let message = format!("`intentSchemaRef` is `{}`, which does not begin with `#/`", pointer.text);
            fields.invalid(
                pointer.span,
                message,
                "point into the step's own schema; use `$ref` there for shared parts",
            );
        }
        local
    })
}

pub(crate) fn read_gate<'j>(fields: Fields<'j, '_>, generation: Generation) -> GateDefinition<'j> {
    let is_missing = fields.entry("allowedIntents").is_none();
    if is_missing {
        fields.missing("allowedIntents");
    }
    let intents: Vec<(Intent, Span)> = fields
        .texts("allowedIntents")
        .unwrap_or_default()
        .into_iter()
        .filter_map(|word| Some((read_intent(word, generation, &fields)?, word.span)))
        .collect();
    let misread = is_missing || fields.is_poisoned("allowedIntents");
    let complete = generation == Generation::Complete;
    let schema_pointer = if complete { None } else { read_pointer(&fields) };
    let field = match fields.entry("intentField") {
        None if complete => FieldPath::parse(INTENT_FIELD).map(|path| (path, fields.span)),
        _ => fields.required("intentField").and_then(|text| read_dotted_path(text, "intentField", &fields)),
    };
    let target_field =
        fields.filled("targetField").and_then(|text| read_dotted_path(text, "targetField", &fields));
    let target_mode = fields.one_of("targetMode", &["explicit", "dynamic", "conditional"]);
    if !misread && !intents.iter().any(|(intent, _)| *intent == Intent::Jump) {
        let why = "`jump` leads where that says, and this step does not allow it: remove what is not needed";
        fields.strays(&["targetField", "targetMode"], why);
    }
    let handoff = fields
        .texts("handoffFields")
        .unwrap_or_default()
        .into_iter()
        .filter_map(|text| read_dotted_path(text, "handoffFields", &fields))
        .collect();
    let gate = GateDefinition {
        span: fields.span,
        intents,
        misread,
        handoff_misread: fields.is_poisoned("handoffFields"),
        schema_pointer,
        field,
        target_field,
        target_mode: target_mode.map(|(word, span)| {
            let mode = match word {
                "explicit" => TargetMode::Explicit,
                "dynamic" => TargetMode::Dynamic,
                _ => TargetMode::Conditional,
            };
            (mode, span)
        }),
        handoff,
        // If `failFast` is unreadable, the fallback intent may have an effect.
        fail_fast: match complete {
            true => None,
            false => fields
                .boolean("failFast")
                .or_else(|| fields.entry("failFast").map(|entry| (false, entry.value.span))),
        },
        fallback_is_written: fields.entry("fallbackIntent").is_some(),
        fallback: fields
            .filled("fallbackIntent")
            .and_then(|word| Some((read_intent(word, generation, &fields)?, word.span))),
    };
    fields.finish();
    gate
}

fn read_intent(word: Text<'_>, generation: Generation, fields: &Fields<'_, '_>) -> Option<Intent> {
    let intent = generation.intent(word.text);
    if intent.is_none() {
        let message = format!("unknown intent `{}`", word.text);
        let finding = Diagnostic::error(codes::INVALID_VALUE, word.span, message);
        fields.push(generation.suggested(finding, word.text));
    }
    intent
}

fn read_dotted_path(text: Text<'_>, key: &str, fields: &Fields<'_, '_>) -> Option<(FieldPath, Span)> {
    let path = FieldPath::parse(text.text).filter(|_| !text.text.starts_with("$."));
    if path.is_none() {
        let message = format!("`{}` in `{key}` is not a dotted path", text.text);
        let hint = match text.text.strip_prefix("$.") {
            Some(path) => format!("write `{path}`"),
            None => "write it like `next_action.action`".to_owned(),
        };
        fields.invalid(text.span, message, &hint);
    }
    Some((path?, text.span))
}
