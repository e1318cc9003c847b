//! Detects schemas that certainly compile.
//!
//! Compiling a schema takes longer than any other check of a step, and most checks need no compiled schema. A schema
//! that certainly compiles is therefore compiled only when the first answer is validated; every other schema is
//! compiled at once.

use serde_json::{Map, Value};

/// The maximum depth, to bound the recursion.
const DEPTH_MAX: usize = 64;

/// The drafts in which these keywords mean the same, by their `$schema`.
const DRAFTS: [&str; 4] = [
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Whether a schema contains only common keywords with well-formed values. Excludes references, custom patterns and
/// anything else that can be wrong in more than its form.
pub(super) fn is_plain(schema: &Value) -> bool {
    is_schema(schema, 0)
}

fn is_schema(schema: &Value, depth: usize) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(map) => {
            depth < DEPTH_MAX && map.iter().all(|(key, value)| is_keyword(key, value, depth))
        }
        _ => false,
    }
}

fn is_keyword(key: &str, value: &Value, depth: usize) -> bool {
    let inner = |value: &Value| is_schema(value, depth + 1);
    match key {
        "$schema" => depth == 0 && value.as_str().is_some_and(|draft| DRAFTS.contains(&draft)),
        "title" | "description" | "$comment" => value.is_string(),
        "examples" => value.is_array(),
        "type" => is_type(value),
        "const" | "default" => true,
        "enum" => value.as_array().is_some_and(|values| !values.is_empty() && all_differ(values)),
        "required" => {
            value.as_array().is_some_and(|names| names.iter().all(Value::is_string) && all_differ(names))
        }
        "properties" | "definitions" => {
            value.as_object().is_some_and(|map: &Map<String, Value>| map.values().all(inner))
        }
        "allOf" | "anyOf" | "oneOf" => {
            value.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(inner))
        }
        // A list of schemas means different things in different drafts.
        "items" | "additionalProperties" | "contains" | "propertyNames" | "not" => inner(value),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "uniqueItems" => value.is_boolean(),
        "if" | "then" | "else" => inner(value),
        // The only pattern that pieces use: non-empty text.
        "pattern" => value == "\\S",
        _ => false,
    }
}

fn is_type(value: &Value) -> bool {
    const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
    let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(known) && all_differ(names),
        name => known(name),
    }
}

/// Whether all values are distinct. Long lists are left to the compiler.
fn all_differ(values: &[Value]) -> bool {
    const COMPARED_MAX: usize = 64;
    values.len() <= COMPARED_MAX && values.iter().enumerate().all(|(at, value)| !values[..at].contains(value))
}

#[cfg(test)]
mod tests {
    use super::is_plain;
    use crate::checks::testing::Dice;
    use serde_json::{Value, json};

    /// A random schema whose keywords have well-formed or malformed values.
    fn random(dice: &mut Dice, depth: usize) -> Value {
        const KEYS: [&str; 37] = [
            "title",
            "description",
            "type",
            "const",
            "default",
            "enum",
            "required",
            "properties",
            "items",
            "additionalProperties",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "minimum",
            "maximum",
            "uniqueItems",
            "pattern",
            "$ref",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "contains",
            "propertyNames",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "definitions",
            "examples",
            "$comment",
            "$schema",
            "$id",
            "if",
            "then",
            "else",
        ];
        let values = [
            json!("string"),
            json!("object"),
            json!("x"),
            json!(3),
            json!(-1),
            json!(1.5),
            json!(true),
            json!(null),
            json!([]),
            json!(["a"]),
            json!(["a", "a"]),
            json!([1, 1.0]),
            json!({}),
            json!({"a": {}}),
            json!("["),
            json!(["string", "null"]),
            json!(["string", "string"]),
            json!(["string", "text"]),
            json!([{}]),
            json!([{"type": "string"}, true]),
            json!("http://json-schema.org/draft-07/schema#"),
            json!("https://json-schema.org/draft/2019-09/schema"),
        ];
        let mut schema = json!({});
        for _ in 0..dice.below(5) {
            let key = KEYS[dice.below(KEYS.len() as u64) as usize];
            let value = match dice.below(3) {
                0 if depth < 3 => random(dice, depth + 1),
                1 if depth < 3 => json!({"a": random(dice, depth + 1), "b": random(dice, depth + 1)}),
                _ => values[dice.below(values.len() as u64) as usize].clone(),
            };
            schema[key] = value;
        }
        schema
    }

    #[test]
    fn plain_schemas_compile() {
        let (mut dice, mut plain) = (Dice(3), 0);
        for _ in 0..20_000 {
            let schema = random(&mut dice, 0);
            if is_plain(&schema) && schema != json!({}) {
                plain += 1;
                assert!(jsonschema::validator_for(&schema).is_ok(), "{schema}");
            }
        }
        assert!(plain > 300, "{plain} were plain");
    }

    #[test]
    fn a_typical_answer_schema_is_plain() {
        assert!(is_plain(&json!({"type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "array", "items": {"const": 1}}}})));
        assert!(is_plain(&json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"})));
        for other in [json!({"pattern": "["}), json!({"$ref": "#"}), json!({"type": "text"}), json!(3)] {
            assert!(!is_plain(&other), "{other}");
        }
    }
}
