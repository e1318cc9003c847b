//! Intents that a schema lists and that no answer which fits it has: what is said around the field bars them.

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::Schema,
};

use super::answer::enum_values_of_schema;
use crate::climpt::kinds::Intent;
use crate::climpt::registry::step_definition::{GateDefinition, StepDefinition};
use crate::codes;
use crate::source::loader::SourceLoader;
use crate::suggest::quote_names;

/// Reports intents that the gate allows and the field lists, and that the rest of the schema bars; whether there are any.
pub(crate) fn check_bars(
    step: &StepDefinition<'_>,
    gate: &GateDefinition<'_>,
    schema: &Schema,
    loader: &SourceLoader<'_>,
) -> bool {
    let Some((field, _)) = gate.field.as_ref().filter(|(field, _)| !schema.says_only_at(field)) else {
        return false;
    };
    let (Some(written), Some(left)) =
        (enum_values_of_schema(schema.subschema(field)), schema.values_at(field))
    else {
        return false;
    };
    if written.len() == left.len() {
        return false;
    }
    let is_left = |word: &String| left.iter().any(|value| value.as_str() == Some(word));
    let means = |word: &String, intent: Intent| {
        let generation = step.generation;
        generation.intent(word).or_else(|| generation.aliased(word)) == Some(intent)
    };
    let is_barred = |(intent, _): &&(Intent, Span)| {
        let mut words = written.iter().filter(|word| means(word, *intent)).peekable();
        words.peek().is_some() && !words.any(is_left)
    };
    let barred: Vec<&(Intent, Span)> = gate.intents.iter().filter(is_barred).collect();
    let Some((_, span)) = barred.first() else { return false };
    let words: Vec<&str> = barred.iter().map(|(intent, _)| intent.as_str()).collect();
    let message = format!(
        "the schema of `{}` lists {} at `{field}`, but rejects every answer with it",
        step.id,
        quote_names(&words)
    );
    let hint = "correct what the schema says around the field (`anyOf`, `not`, `if`, an `enum` of the whole), or take the \
                intent out of `allowedIntents`, of `transitions` and of the `enum`";
    loader
        .found
        .push(Diagnostic::error(codes::SCHEMA_GATE_MISMATCH, *span, message).step(step.id).hint(hint));
    true
}
