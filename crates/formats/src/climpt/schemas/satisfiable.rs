//! Whether any answer fits its schema, and where in its file a part of a schema stands.

use crate::climpt::registry::jump::has_value;
use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::{FieldPath, KeyLookup, Schema},
};
use serde_json::Value;

use super::answer::{find_at_pointer, find_at_pointer_mut, top_level};
use super::position::{locate_schema_part, tokens_of_pointer};
use crate::climpt::generation::Generation;
use crate::climpt::registry::step_definition::{GateDefinition, SchemaReference, StepDefinition};
use crate::codes;
use crate::source::loader::SourceLoader;

/// A schema as it is written.
pub(crate) struct WrittenSchema<'w, 'f> {
    /// The step whose answers it describes.
    pub(crate) step: &'w str,
    /// What the step says where it is.
    pub(crate) reference: &'w SchemaReference<'w>,
    /// The file that it was found in.
    pub(crate) file: &'w str,
    /// Where that file lies open.
    pub(crate) loader: &'w SourceLoader<'f>,
}

impl WrittenSchema<'_, '_> {
    /// Whether an answer can fit, as far as that can be told; a finding says why not.
    pub(crate) fn admits(&self, schema: &Schema) -> bool {
        let Some(found) = schema.impossible() else { return true };
        let place = self.place(&found.pointer);
        let part = match place.pointer.as_str() {
            "" => "it".to_owned(),
            pointer => format!("`{pointer}`"),
        };
        let message = format!("no answer fits the schema `{}`: {part} {}", place.schema, found.why);
        self.loader.found.push(
            Diagnostic::error(codes::IMPOSSIBLE_SCHEMA, place.span, message)
                .step(self.step)
                .hint("correct the schema: every answer is a bad answer"),
        );
        false
    }

    /// Where a part of the schema stands: as deep as is written. What several schemas refer to is called by its own name,
    /// so that the same is said for all of them.
    pub(crate) fn place(&self, pointer: &str) -> SchemaPart {
        let own = self.reference.schema;
        let mut names = match own.text.strip_prefix('#') {
            Some(pointer) => tokens_of_pointer(pointer),
            None => {
                let json = self.loader.json(self.file).ok().flatten();
                let is_in = |key: &str| {
                    let holder = json.as_ref().and_then(|json| json.get(key));
                    holder.is_some_and(|names| names.get(own.text).is_some())
                };
                let holder = ["definitions", "$defs"].into_iter().find(|key| is_in(key));
                holder.into_iter().chain([own.text]).map(str::to_owned).collect()
            }
        };
        names.extend(tokens_of_pointer(pointer));
        let found = locate_schema_part(self.loader, self.file, &names);
        let span = found.as_ref().map_or(own.span, |found| found.span);
        match found.and_then(|found| found.definition) {
            Some((schema, pointer)) => SchemaPart { span, schema, pointer },
            None => SchemaPart { span, schema: own.text.to_owned(), pointer: pointer.to_owned() },
        }
    }
}

/// A part of a schema as findings name it.
pub(crate) struct SchemaPart {
    /// Where it stands.
    pub(crate) span: Span,
    /// The schema that it is a part of: the step's, or a definition that this refers to.
    pub(crate) schema: String,
    /// Which part of that.
    pub(crate) pointer: String,
}

/// Where a dotted path leads among the properties of a schema.
pub(crate) fn pointer_of(path: &FieldPath) -> String {
    path.segments().iter().map(|segment| top_level(segment)).collect()
}

/// Where a schema describes the intent of a gate, as pointers.
pub(crate) fn intent_places(gate: &GateDefinition<'_>) -> Vec<String> {
    let written = gate.schema_pointer.map(|pointer| pointer.text.trim_start_matches('#').to_owned());
    let mut places: Vec<String> =
        written.into_iter().chain(gate.field.as_ref().map(|(field, _)| pointer_of(field))).collect();
    places.dedup();
    places
}

/// Writes a place whose texts can be listed as an `enum` of those that fit: `abort` and the intents that aliases stand
/// for join them there.
pub(crate) fn list_values(schema: &mut Value, pointer: &str) {
    const SAYS_NOTHING: [&str; 6] = ["type", "title", "description", "default", "examples", "$comment"];
    let values = find_at_pointer(schema, pointer).and_then(|place| Schema::values_of(schema, place));
    let Some(values) = values.filter(|values| values.iter().all(Value::is_string)) else { return };
    let Some(place) = find_at_pointer_mut(schema, pointer) else { return };
    let Value::Object(map) = place else { return };
    let is_listed = match (map.find_key("enum"), map.find_key("const")) {
        (Some(listed), None) => listed.as_array() == Some(&values),
        (None, Some(only)) => values == [only.clone()],
        _ => false,
    };
    let says_more = |key: &String| !SAYS_NOTHING.contains(&key.as_str());
    if is_listed && map.keys().filter(|key| says_more(key)).count() == 1 {
        return;
    }
    map.retain(|key, _| !says_more(key));
    map.insert("enum".to_owned(), Value::Array(values));
}

/// Warns where an answer that fits need not say what it decides.
pub(crate) fn check_presence(
    step: &StepDefinition<'_>,
    gate: &GateDefinition<'_>,
    schema: &Schema,
    loader: &SourceLoader<'_>,
) {
    let Some((field, span)) = gate.field.as_ref().filter(|(field, _)| schema.can_produce(field)) else {
        return;
    };
    let falls_back = match step.generation {
        Generation::Complete => gate.fallback.is_some(),
        Generation::Closing | Generation::Check => {
            gate.fallback.is_some() && matches!(gate.fail_fast, Some((false, _)))
        }
    };
    if has_value(schema, field) {
        return;
    }
    let id = step.id;
    if let Some(impossible) = schema.bars(field) {
        let message = format!(
            "no answer that fits the schema of `{id}` has `{field}`, which says what they decide: it {}",
            impossible.why
        );
        let finding = Diagnostic::error(codes::SCHEMA_GATE_MISMATCH, *span, message).step(id);
        loader.found.push(finding.hint("correct what the schema says around the field"));
        return;
    }
    if falls_back {
        return;
    }
    let message = format!("intent field `{field}` of `{id}` is not required by its schema");
    loader.found.push(Diagnostic::warning(codes::SCHEMA_GATE_MISMATCH, *span, message).step(id).hint(
        "list it in `required` of the schema: an answer without it is requested again, and then the run has failed",
    ));
}
