//! Checks the answer schema of a "complete" step: the intent words it lists and the step that it names.

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::FieldPath,
};
use serde_json::{Value, json};

use crate::climpt::generation::Generation;
use crate::climpt::kinds::Intent;
use crate::climpt::registry::step_definition::{GateDefinition, SchemaReference, StepDefinition};
use crate::climpt::schemas::answer::enum_values_of_schema;
use crate::codes;
use crate::source::loader::SourceLoader;
use crate::suggest::quote_names;

/// The intent of a schema's word: schemas list the words of agents, which may be aliases.
pub(crate) fn intent_of_word(word: &str) -> Option<Intent> {
    Generation::Complete.intent(word).or_else(|| Generation::Complete.aliased(word))
}

/// Reports words without an intent and intents without a word. A schema without a list allows all words.
pub(crate) fn check_words(
    step: &StepDefinition<'_>,
    gate: &GateDefinition<'_>,
    pointer: &str,
    schema: &Value,
    loader: &SourceLoader<'_>,
) {
    let (id, Some((field, span))) = (step.id, &gate.field) else { return };
    let Some(words) = enum_values_of_schema(schema.pointer(pointer)) else {
        return check_free(id, (field, *span), schema.pointer(pointer), loader);
    };
    if none_can_be_said(gate, &words) {
        let allowed: Vec<&str> = gate.intents.iter().map(|(intent, _)| intent.as_str()).collect();
        let message = format!(
            "`{id}` allows {}, and its schema lists only {} at `{field}`",
            quote_names(&allowed),
            quote_names(&words)
        );
        loader.found.push(
            Diagnostic::error(codes::SCHEMA_GATE_MISMATCH, *span, message)
                .step(id)
                .hint("add the intents to the schema's `enum`: with what it lists a step can only give up"),
        );
        return;
    }
    // A transition on an intent that is not allowed is reported at the transition.
    let allows = |intent: Intent| {
        intent == Intent::Abort
            || gate.intents.iter().any(|(known, _)| *known == intent)
            || step.transitions.iter().flatten().any(|transition| transition.intent == intent)
    };
    let useless: Vec<&str> =
        words.iter().filter(|word| !intent_of_word(word).is_some_and(allows)).map(String::as_str).collect();
    let lost: Vec<&str> = gate
        .intents
        .iter()
        .filter(|(intent, _)| *intent != Intent::Abort)
        .filter(|(intent, _)| !words.iter().any(|word| intent_of_word(word) == Some(*intent)))
        .map(|(intent, _)| intent.as_str())
        .collect();
    let what = format!("the schema of `{id}` lists");
    let (message, hint) = match (useless.is_empty(), lost.is_empty()) {
        (true, true) => return,
        (false, true) => (
            format!("{what} {} at `{field}`, which its gate does not allow", quote_names(&useless)),
            "take the words out of the schema, or allow what they stand for",
        ),
        (true, false) => (
            format!("{what} no word for {} at `{field}`", quote_names(&lost)),
            "add the intent to the schema's `enum`, or take it out of `allowedIntents`",
        ),
        // Usually one word is misspelled.
        (false, false) => (
            format!(
                "{what} {} at `{field}`, which its gate does not allow, and no word for {}",
                quote_names(&useless),
                quote_names(&lost)
            ),
            "`allowedIntents` and the schema's `enum` have to agree",
        ),
    };
    loader.found.push(Diagnostic::warning(codes::SCHEMA_GATE_MISMATCH, *span, message).step(id).hint(hint));
}

/// Whether no word of a schema maps to an intent with a transition. A fallback for unreadable intents counts as one.
fn none_can_be_said(gate: &GateDefinition<'_>, words: &[String]) -> bool {
    let mut leads_on =
        gate.intents.iter().map(|(intent, _)| *intent).filter(|intent| *intent != Intent::Abort);
    let can_be_said = |intent: Intent| words.iter().any(|word| intent_of_word(word) == Some(intent));
    gate.fallback.is_none() && leads_on.clone().next().is_some() && !leads_on.any(can_be_said)
}

/// Reports a schema without a list of words: the agent does not learn which words exist.
fn check_free(id: &str, (field, span): (&FieldPath, Span), place: Option<&Value>, loader: &SourceLoader<'_>) {
    let Some(place) = place else { return };
    let can_be_text = place.get("type").is_none_or(|kind| match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "string"),
        kind => kind == "string",
    });
    let finding = if can_be_text {
        let message = format!(
            "the schema of `{id}` takes any text at `{field}`, and tells no agent what it can decide"
        );
        Diagnostic::warning(codes::SCHEMA_GATE_MISMATCH, span, message)
            .hint("list the words in an `enum`: another word is a bad answer")
    } else {
        let message = format!(
            "the schema of `{id}` takes no text at `{field}`, where its answers say what they decide"
        );
        Diagnostic::error(codes::SCHEMA_GATE_MISMATCH, span, message)
            .hint("make it a text with an `enum` of intents")
    };
    loader.found.push(finding.step(id));
}

/// Adds the intents of a place's words to its list: an answer is validated after its word has been replaced by the
/// intent.
pub(crate) fn say_intents(schema: &mut Value, pointer: &str) {
    let Some(words) = enum_values_of_schema(schema.pointer(pointer)) else { return };
    let Some(Value::Object(place)) = schema.pointer_mut(pointer) else { return };
    let mut all = words.clone();
    for intent in words.iter().filter_map(|word| intent_of_word(word)) {
        if !all.iter().any(|known| known == intent.as_str()) {
            all.push(intent.as_str().to_owned());
        }
    }
    if all.len() > words.len() {
        place.remove("const");
        place.insert("enum".to_owned(), json!(all));
    }
}

/// Restricts answers to their step: the schema lists it in `stepId`, and an answer that names another step does not
/// match.
pub(crate) fn bind_step_id(
    step: &StepDefinition<'_>,
    reference: &SchemaReference<'_>,
    schema: &mut Value,
    loader: &SourceLoader<'_>,
) {
    let id = step.id;
    let span = reference.schema.span;
    let warn = |message: String| {
        let hint = format!("add `\"stepId\": {{ \"const\": \"{id}\" }}` to its `properties`");
        let finding = Diagnostic::warning(codes::SCHEMA_GATE_MISMATCH, span, message);
        loader.found.push(finding.step(id).hint(hint));
    };
    let Some(place) = schema.pointer_mut("/properties/stepId") else {
        return warn(format!("the schema of `{id}` has no `stepId`"));
    };
    let Some(steps) = enum_values_of_schema(Some(place)) else {
        return warn(format!("the schema of `{id}` takes any text as `stepId`"));
    };
    if steps.len() > 1
        && let Value::Object(place) = place
    {
        // A schema shared by several steps lists all of them; an answer of this step must name this step.
        place.insert("enum".to_owned(), json!([id]));
    }
}
