//! One schema for each step, whole and in the newer words: what steps shared cannot list the words of each of them.

use cuegate_flow::FieldPath;
use serde_json::{Map, Value, json};

use super::super::answer::{listed, top_level};
use super::super::answer_words::meaning;
use super::super::kinds::Intent;
use super::super::lower::schema_bases_of;
use super::super::schema_resolver::resolve_open;
use super::super::step::{INTENT_FIELD, StepDefinition};
use super::words::Words;
use super::{Migration, Source};

/// The file of all of them.
pub(super) const FILE: &str = "steps.schema.json";

/// The schema of a step.
pub(super) struct StepSchema {
    /// The step.
    pub(super) id: String,
    /// Its words.
    pub(super) words: Words,
    /// Where the schema lists them.
    pub(super) pointer: String,
}

/// Writes the schemas of all steps; what the steps decide now.
pub(super) fn migrate(source: &Source<'_, '_, '_>, migration: &mut Migration) -> Vec<StepSchema> {
    let bases = schema_bases_of(source.registry, source.agent, source.places, source.desk);
    let mut definitions = Map::new();
    let mut schemas = Vec::new();
    for step in source.registry.steps.iter().filter(|step| !step.section) {
        let Some(reference) = step.schema else { continue };
        let resolved = bases.iter().find_map(|base| {
            resolve_open(source.desk, base, reference.file.text, reference.schema.text).ok()
        });
        let Some(mut schema) = resolved else { continue };
        let written = step.gate.as_ref().and_then(|gate| gate.field.as_ref()).map(|(field, _)| field.clone());
        let Some(field) = written.or_else(|| FieldPath::parse(INTENT_FIELD)) else { continue };
        let pointer: String = field.segments().iter().map(|segment| top_level(segment)).collect();
        let words = words_of(step, field, schema.pointer(&pointer));
        bind(&mut schema, step.id);
        list(&mut schema, &words);
        definitions.insert(step.id.to_owned(), schema);
        schemas.push(StepSchema { id: step.id.to_owned(), words, pointer: format!("#{pointer}") });
    }
    let document = json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": definitions});
    migration.write(&format!("schemas/{FILE}"), &document);
    schemas
}

fn words_of(step: &StepDefinition<'_>, field: FieldPath, place: Option<&Value>) -> Words {
    let listed = listed(place);
    let can_say = |intent: Intent| match &listed {
        Some(words) => words.iter().any(|word| meaning(word) == Some(intent)),
        None => true,
    };
    Words::of(step, field, &can_say)
}

/// Lists the words of a step where its answers have them.
fn list(schema: &mut Value, words: &Words) {
    let mut at = schema;
    for segment in words.field.segments() {
        let Value::Object(place) = at else { return };
        // What named nothing was open for any answer, and stays so.
        if !place.contains_key("properties") {
            place.entry("additionalProperties").or_insert(json!(true));
        }
        let properties = place.entry("properties").or_insert_with(|| json!({}));
        let Value::Object(properties) = properties else { return };
        at = properties.entry(segment.to_string()).or_insert_with(|| json!({}));
    }
    if !at.is_object() {
        *at = json!({});
    }
    let Value::Object(place) = at else { return };
    place.remove("const");
    let words: Vec<&str> =
        words.intents().into_iter().filter(|intent| *intent != Intent::Abort).map(Intent::as_str).collect();
    place.insert("enum".to_owned(), json!(words));
}

/// A schema that several steps shared is one for this step now.
fn bind(schema: &mut Value, id: &str) {
    let Some(place) = schema.pointer_mut("/properties/stepId") else { return };
    let several = listed(Some(place)).is_some_and(|steps| steps.len() > 1);
    if let (true, Value::Object(place)) = (several, place) {
        place.insert("enum".to_owned(), json!([id]));
    }
}
