//! Which step the schema of an answer is for, by its `stepId`.

use cuegate_flow::diagnostics::Diagnostic;
use serde_json::Value;

use super::answer::enum_values_of_schema;
use super::satisfiable::WrittenSchema;
use crate::climpt::generation::Generation;
use crate::climpt::registry::step_definition::StepDefinition;
use crate::codes;
use crate::suggest::quote_names;

/// Where a schema says which step it is for.
const STEP_ID: &str = "/properties/stepId";

/// Whether a schema may be that of the step which names it; a finding says where it is one for other steps. `names` are
/// those of the schemas in its file.
pub(crate) fn check_step_id(
    step: &StepDefinition<'_>,
    schema: &Value,
    written: &WrittenSchema<'_, '_>,
    names: impl FnOnce() -> Vec<String>,
) -> bool {
    let (id, named) = (step.id, &written.reference.schema);
    let Some(steps) = enum_values_of_schema(schema.pointer(STEP_ID)) else { return true };
    if steps.iter().any(|step| step == id) {
        return true;
    }
    let message = format!("the schema of `{id}` is one for {}, by its `stepId`", quote_names(&steps));
    // There is one of its own: that is the one which was meant.
    if let Some(own) = names().into_iter().find(|name| last_segment_of_name(name) == id && name != named.text)
    {
        let finding = Diagnostic::error(codes::SCHEMA_GATE_MISMATCH, named.span, message);
        written.loader.found.push(finding.step(id).did_you_mean(&own));
        return false;
    }
    let is_of_other = steps.iter().any(|step| step == last_segment_of_name(named.text));
    let span = if is_of_other { named.span } else { written.place(STEP_ID).span };
    let finding = match step.generation {
        Generation::Complete => Diagnostic::error(codes::SCHEMA_GATE_MISMATCH, span, message),
        Generation::Closing | Generation::Check => {
            Diagnostic::warning(codes::SCHEMA_GATE_MISMATCH, span, message)
        }
    };
    let hint = match is_of_other {
        true => format!("give `{id}` a schema of its own, or list it in `stepId` there"),
        false => format!("correct `stepId`: `{{ \"const\": \"{id}\" }}`"),
    };
    written.loader.found.push(finding.step(id).hint(hint));
    step.generation != Generation::Complete
}

/// The name of a schema, which may be written as a pointer.
fn last_segment_of_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
