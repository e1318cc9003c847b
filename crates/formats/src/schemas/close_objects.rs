//! The shape of a resolved schema: its objects closed.

mod paths;

use std::collections::BTreeSet;

use cuegate_flow::model::KeyLookup;
use serde_json::{Map, Value};

/// Closes every object schema that does not say whether it is open, but names what it holds. One that names nothing is
/// left open: closed, no answer but `{}` would fit it.
///
/// Where several schemas speak of the same object (`anyOf`, `then`, `contains` and their like, at any depth), it is
/// closed around the names that all of them give it, so that what fitted all of them before still does. Alternatives
/// are closed each by itself, unless what they stand beside names the object as well. What only tells objects apart
/// (`if` and `not`) closes nothing, or it would tell more of them apart than it says.
pub(crate) fn close_object_schemas(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    if !is_plain(map) {
        for (at, names) in paths::find_closable_objects(schema) {
            if let Some(Value::Object(map)) = schema.pointer_mut(&at) {
                close_around(map, names);
            }
        }
        return;
    }
    if is_open(map) {
        close_around(map, BTreeSet::new());
    }
    for (key, value) in map.iter_mut() {
        match value {
            _ if VALUES.contains(&key.as_str()) => {}
            Value::Object(named) if NAMED.contains(&key.as_str()) => {
                named.values_mut().for_each(close_object_schemas)
            }
            Value::Array(schemas) => schemas.iter_mut().for_each(close_object_schemas),
            schema => close_object_schemas(schema),
        }
    }
}

/// What holds no schema.
const VALUES: [&str; 5] = ["enum", "const", "default", "examples", "required"];

/// Keywords with schemas by names, each about another value.
const NAMED: [&str; 3] = ["properties", "definitions", "$defs"];

/// Keywords with schemas about values in the one that has them.
const INSIDE: [&str; 6] = [
    "prefixItems",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "additionalProperties",
    "unevaluatedProperties",
];

/// Keywords by which several schemas speak of one value.
const SHARING: [&str; 11] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
    "contains",
    "patternProperties",
];

/// Whether every value that a schema speaks of, however deep, has one schema in it only. What a keyword further in shares
/// is for the schema that has it to say.
fn is_plain(map: &Map<String, Value>) -> bool {
    !SHARING.iter().any(|key| map.has(key))
}

/// Whether a schema has the type `object` and `properties`, but no `additionalProperties`.
fn is_open(map: &Map<String, Value>) -> bool {
    let is_object = match map.find_key("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => false,
    };
    is_object && map.has("properties") && !map.has("additionalProperties")
}

/// Closes an object around what it names, and more names.
fn close_around(map: &mut Map<String, Value>, more: BTreeSet<String>) {
    map.insert("additionalProperties".to_owned(), Value::Bool(false));
    if let Some(Value::Object(own)) = map.get_mut("properties") {
        for name in more {
            own.entry(name).or_insert_with(|| Value::Object(Map::new()));
        }
    }
}

#[cfg(test)]
mod tests;
