//! The shape of a resolved schema: parts of an `allOf` merged into one, objects closed.

use serde_json::{Map, Value};

/// Keys that say something about a schema and nothing about answers: of these the first wins.
const ANNOTATIONS: [&str; 10] = [
    "$comment",
    "$id",
    "$schema",
    "title",
    "description",
    "default",
    "examples",
    "type",
    "additionalProperties",
    "deprecated",
];

/// Merges the parts of an `allOf` and the schema that has it. Properties: the later wins, the schema itself last.
/// `required`: all. Other keys: the first wins; where that would drop a constraint, what differs stays in an
/// `allOf`.
pub(super) fn merge(bases: Vec<Value>, own: Map<String, Value>) -> Value {
    let mut merged = Map::new();
    let mut left: Vec<Value> = Vec::new();
    let parts: Vec<Map<String, Value>> = bases
        .into_iter()
        .filter_map(|base| match base {
            Value::Object(map) => Some(map),
            Value::Bool(false) => {
                left.push(Value::Bool(false));
                None
            }
            _ => None,
        })
        .chain([own])
        .collect();
    for part in parts {
        let is_constraint =
            |key: &str| key != "properties" && key != "required" && !ANNOTATIONS.contains(&key);
        let conflicts = part
            .iter()
            .any(|(key, value)| is_constraint(key) && merged.get(key).is_some_and(|known| known != value));
        let mut differing = Map::new();
        for (key, value) in part {
            match (key.as_str(), merged.get_mut(&key), value) {
                ("properties", Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                ("required", Some(Value::Array(known)), Value::Array(more)) => {
                    for name in more {
                        if !known.contains(&name) {
                            known.push(name);
                        }
                    }
                }
                // `if`, `then` and their like belong together: a part with one conflict stays whole.
                (name, _, value) if conflicts && is_constraint(name) => {
                    differing.insert(key, value);
                }
                (_, Some(_), _) => {}
                (_, None, value) => {
                    merged.insert(key, value);
                }
            }
        }
        if !differing.is_empty() {
            left.push(Value::Object(differing));
        }
    }
    if !left.is_empty() {
        merged.insert("allOf".to_owned(), Value::Array(left));
    }
    Value::Object(merged)
}

/// Closes every object schema that does not say whether it is open, but names what it holds. One that names nothing is
/// left open: closed, no answer but `{}` would fit it.
pub(crate) fn closed(schema: Value) -> Value {
    match schema {
        Value::Array(items) => Value::Array(items.into_iter().map(closed).collect()),
        Value::Object(map) => {
            let is_object = map.get("type").and_then(Value::as_str) == Some("object");
            let mut result: Map<String, Value> =
                map.into_iter().map(|(key, value)| close_keyword(key, value)).collect();
            let says = result.contains_key("additionalProperties");
            if is_object && result.contains_key("properties") && !says {
                result.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            Value::Object(result)
        }
        other => other,
    }
}

fn close_keyword(key: String, value: Value) -> (String, Value) {
    let value = match (key.as_str(), value) {
        ("enum" | "const" | "default" | "examples" | "required", value) => value,
        (
            "properties" | "patternProperties" | "definitions" | "$defs" | "dependentSchemas",
            Value::Object(map),
        ) => Value::Object(map.into_iter().map(|(name, schema)| (name, closed(schema))).collect()),
        (_, value) => closed(value),
    };
    (key, value)
}
