//! Reads `completionSteps` of the "complete" generation: steps that complete the run, and their validators.

use cuegate_flow::diagnostics::{Diagnostic, Span};

use crate::climpt::generation::Generation;
use crate::climpt::kinds::{Intent, StepKind};
use crate::climpt::registry::step_definition::{
    GateDefinition, INTENT_FIELD, StepDefinition, read_gate, read_schema_reference,
};
use crate::climpt::registry::transition::{Transition, TransitionTarget, read_transitions};
use crate::climpt::registry::validation_definition::{
    ValidationStep, check_id, read_conditions, read_on_failure,
};
use crate::codes;
use crate::findings::Findings;
use crate::values::json::{Entry, Fields, Text};

/// An entry of `completionSteps`.
pub(crate) struct CompletionStep<'j> {
    /// The step, used when `steps` does not define it.
    pub(crate) step: StepDefinition<'j>,
    /// The validators to pass before it completes the run, if any.
    pub(crate) validation: Option<ValidationStep<'j>>,
}

/// Reads an entry of `completionSteps`. `also_in_steps`: `steps` defines the step of this name, which takes precedence.
pub(crate) fn read_completion<'j>(
    entry: &'j Entry,
    also_in_steps: bool,
    found: &Findings,
) -> Option<CompletionStep<'j>> {
    let id: &'j str = &entry.key;
    let what = format!("`completionSteps.{id}`");
    let fields = Fields::of(&entry.value, &what, Some(id), found)?;
    check_id(&fields, id, "completion");
    if !id.starts_with("complete.") {
        let message = format!("`completionSteps` name `{id}`, which is no `complete.*` step");
        fields.push(
            Diagnostic::error(codes::WRONG_DIRECTION, entry.key_span, message)
                .hint("call it `complete.DOMAIN`, or remove it"),
        );
    }
    let name = fields.text("name").map(|name| name.text);
    let (c2, c3) = (fields.part("c2"), fields.part("c3"));
    let conditions = read_conditions(&fields, "completionConditions", "a completion condition", id);
    // Unreadable conditions still guard the step.
    let misread = fields.is_poisoned("completionConditions");
    let (on_failure, attempts_span) = fields.object("onFailure").map(read_on_failure).unwrap_or_default();
    fields.text("description");
    let guarded = !conditions.is_empty() || misread;
    if !guarded {
        fields.stray("onFailure", "no `completionConditions` can fail; remove it");
    }
    if also_in_steps {
        report_twice(&fields, guarded);
    }
    let step = StepDefinition {
        generation: Generation::Complete,
        id,
        span: entry.key_span,
        name,
        kind: Some(StepKind::Closure),
        section: false,
        // With conditions, `c2` and `c3` select the failure prompts.
        c2: Some(c2.filter(|_| !guarded).unwrap_or(Text { text: "complete", span: entry.key_span })),
        c3: Some(c3.filter(|_| !guarded).unwrap_or(Text { text: domain_of(id), span: entry.key_span })),
        edition: fields.part("edition"),
        adaptation: fields.part("adaptation"),
        fallback_key: fields.filled("fallbackKey"),
        variables: fields.texts("uvVariables"),
        uses_stdin: fields.boolean("usesStdin"),
        schema: fields.object("outputSchemaRef").and_then(read_schema_reference),
        gate: Some(match fields.object("structuredGate") {
            Some(gate) => read_gate(gate, Generation::Complete),
            None => plain_gate(entry.key_span),
        }),
        transitions: Some(
            read_transitions(&fields, id, Generation::Complete).unwrap_or_else(|| plain_end(entry.key_span)),
        ),
        transitions_misread: false,
        model: None,
        permission: None,
        inputs: fields.names("inputs"),
        inputs_misread: false,
    };
    if !also_in_steps && step.schema.is_none() && fields.entry("outputSchemaRef").is_none() {
        let message = format!("`{id}` lacks `outputSchemaRef`");
        fields.push(
            Diagnostic::error(codes::MISSING_KEY, entry.key_span, message)
                .hint("say what its answer looks like, or define the step in `steps`"),
        );
    }
    fields.finish();
    let validation = guarded.then_some(ValidationStep {
        id,
        span: entry.key_span,
        name,
        c2,
        c3,
        conditions,
        on_failure,
        attempts_span,
        misread,
    });
    Some(CompletionStep { step, validation })
}

/// Reports settings without effect in an entry whose step `steps` defines: only its conditions and the paths of its
/// failure prompts count.
fn report_twice(fields: &Fields<'_, '_>, guarded: bool) {
    const STEP_KEYS: [&str; 10] = [
        "outputSchemaRef",
        "structuredGate",
        "transitions",
        "edition",
        "adaptation",
        "fallbackKey",
        "uvVariables",
        "usesStdin",
        "inputs",
        "c2",
    ];
    let keys = if guarded { &STEP_KEYS[..9] } else { &STEP_KEYS };
    for key in keys {
        fields.stray(key, "`steps` have the step itself, so this is not read; remove it");
    }
    if !guarded {
        fields.stray("c3", "`steps` have the step itself, so this is not read; remove it");
    }
}

/// The domain of a step's name: the part after the stage.
pub(crate) fn domain_of(id: &str) -> &str {
    let rest = id.split_once('.').map_or(id, |(_, rest)| rest);
    rest.split('.').next().unwrap_or(rest)
}

/// The default gate of a step without one: it decides `complete`.
fn plain_gate<'j>(span: Span) -> GateDefinition<'j> {
    GateDefinition {
        span,
        intents: vec![(Intent::Complete, span)],
        misread: false,
        handoff_misread: false,
        schema_pointer: None,
        field: cuegate_flow::model::FieldPath::parse(INTENT_FIELD).map(|path| (path, span)),
        target_field: None,
        target_mode: None,
        handoff: Vec::new(),
        fail_fast: None,
        fallback: None,
        fallback_is_written: false,
    }
}

fn plain_end<'j>(span: Span) -> Vec<Transition<'j>> {
    vec![Transition { intent: Intent::Complete, span, rule: TransitionTarget::End(span) }]
}
