//! The values that a schema lists, as far as it lists any.

use std::collections::HashSet;

use crate::model::schema::{KeyLookup, SchemaDraft};
use serde_json::Value;

/// How many values a range of whole numbers may have to count as a list: more are nobody's cases.
const RANGE_MAX: i64 = 64;

/// Up to here, up and down, numbers with fractions tell all whole numbers apart.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Keywords beside which one list of values is all that a schema says, so that nothing is left to ask of them.
const NOTES: [&str; 9] =
    ["enum", "const", "type", "title", "description", "default", "examples", "$comment", "anyOf"];

/// Every value that fits a schema, when it lists them: by `enum`, `const`, as a truth value, as a short range of whole
/// numbers, or by combining such schemas. Nothing else that it says may hold of a value that is left.
pub(crate) fn list_allowed_values(schema: &Value, draft: SchemaDraft) -> Option<Vec<Value>> {
    if *schema == Value::Bool(false) {
        return Some(Vec::new());
    }
    let keywords = schema.as_object()?;
    if !keywords.iter().any(|(key, value)| may_list(key, value) && draft.knows(key)) {
        return None;
    }
    let mut values = find_shortest_list(schema, draft)?;
    let lists = keywords.keys().filter(|key| ["enum", "const", "anyOf"].contains(&key.as_str())).count();
    let texts = || {
        keywords.find_key("type").is_none_or(|kind| kind == "string" && values.iter().all(Value::is_string))
    };
    let is_plain =
        keywords.keys().all(|key| NOTES.contains(&key.as_str())) && (lists == 0 || (lists == 1 && texts()));
    if !is_plain && let Some(validator) = draft.compile(schema) {
        values.retain(|value| validator.is_valid(value));
    }
    Some(values)
}

/// Whether a keyword can be one that lists values. Most schemas have none.
fn may_list(key: &str, value: &Value) -> bool {
    match key {
        "enum" | "const" | "anyOf" | "oneOf" | "allOf" => true,
        "type" => !["string", "object", "array", "number"].iter().any(|kind| value == kind),
        _ => false,
    }
}

/// Whether a value that reads like a text fits a schema: the text itself, or what it is as JSON. Objects and lists read
/// like no text.
pub(crate) fn can_read(schema: &Value, text: &str, draft: SchemaDraft) -> bool {
    let is_scalar = |value: &Value| !value.is_object() && !value.is_array() && format!("{value}") == text;
    let parsed = serde_json::from_str::<Value>(text).ok().filter(is_scalar);
    // A definition may write a number as JSON does not: `007` is 7.
    let number = text.parse::<f64>().ok().and_then(as_json);
    let mut written = [Some(Value::from(text)), parsed, number].into_iter().flatten();
    // Numbers are equal however they are written, which the validator knows.
    if let Some(values) =
        list_allowed_values(schema, draft).filter(|values| !values.iter().any(Value::is_number))
    {
        return written.any(|value| values.contains(&value));
    }
    let Some(validator) = draft.compile(schema) else { return true };
    written.any(|value| validator.is_valid(&value))
}

/// A number as JSON has it, a whole one without a fraction.
fn as_json(number: f64) -> Option<Value> {
    match number.fract() == 0.0 && number.abs() <= EXACT_MAX {
        true => Some(Value::from(number as i64)),
        false => serde_json::Number::from_f64(number).map(Value::Number),
    }
}

/// The shortest list that some keyword gives: what a schema says holds together, so that any one of them bounds it.
fn find_shortest_list(schema: &Value, draft: SchemaDraft) -> Option<Vec<Value>> {
    let list = |key: &str| schema.find_key(key).and_then(Value::as_array);
    let mut lists: Vec<Vec<Value>> = Vec::new();
    lists.extend(list("enum").cloned());
    let only = schema.find_key("const").filter(|_| draft.knows("const"));
    lists.extend(only.map(|value| vec![value.clone()]));
    lists.extend(of_types(schema));
    for key in ["anyOf", "oneOf"] {
        lists.extend(list(key).and_then(|branches| unite_branch_values(branches, draft)));
    }
    lists.extend(list("allOf").into_iter().flatten().filter_map(|part| list_allowed_values(part, draft)));
    lists.into_iter().min_by_key(Vec::len)
}

/// What any of some schemas lists, each value once, when all of them list something.
fn unite_branch_values(branches: &[Value], draft: SchemaDraft) -> Option<Vec<Value>> {
    let (mut all, mut seen) = (Vec::new(), HashSet::new());
    for branch in branches {
        for value in list_allowed_values(branch, draft)? {
            if seen.insert(value.to_string()) {
                all.push(value);
            }
        }
    }
    Some(all)
}

/// The whole numbers next to a number: the greatest that is not above it, and the least that is not below it.
fn round_to_whole_numbers(number: &Value) -> Option<(i64, i64)> {
    let fraction = || number.as_f64().filter(|number| number.abs() < EXACT_MAX);
    let around = |number: f64| (number.floor() as i64, number.ceil() as i64);
    number.as_i64().map(|number| (number, number)).or_else(|| fraction().map(around))
}

/// The values of types that have few.
fn of_types(schema: &Value) -> Option<Vec<Value>> {
    let one = |kind: &str| match kind {
        "boolean" => Some(vec![Value::Bool(true), Value::Bool(false)]),
        "null" => Some(vec![Value::Null]),
        "integer" => {
            // What is excluded itself the validator knows.
            let bounds = |keys: [&'static str; 2]| {
                keys.into_iter().filter_map(|key| round_to_whole_numbers(schema.find_key(key)?))
            };
            let least = bounds(["minimum", "exclusiveMinimum"]).map(|(_, above)| above).max()?;
            let most = bounds(["maximum", "exclusiveMaximum"]).map(|(below, _)| below).min()?;
            (most.checked_sub(least)? < RANGE_MAX).then(|| (least..=most).map(Value::from).collect())
        }
        _ => None,
    };
    match schema.find_key("type")? {
        Value::String(kind) => one(kind),
        Value::Array(kinds) => {
            let mut all = Vec::new();
            for kind in kinds {
                all.extend(one(kind.as_str()?)?);
            }
            Some(all)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{SchemaDraft, list_allowed_values};
    use serde_json::{Value, json};

    fn can_read(schema: &Value, text: &str) -> bool {
        super::can_read(schema, text, SchemaDraft::of(schema))
    }

    #[test]
    fn what_a_schema_lists() {
        let cases = [
            (json!({"enum": ["a", 1, null]}), Some(json!(["a", 1, null]))),
            (json!({"type": "string", "enum": ["a", 1]}), Some(json!(["a"]))),
            (json!({"const": 3}), Some(json!([3]))),
            (json!({"enum": ["a", "b"], "const": "b"}), Some(json!(["b"]))),
            (json!({"type": "boolean"}), Some(json!([true, false]))),
            (json!({"type": ["boolean", "null"]}), Some(json!([true, false, null]))),
            (json!({"type": "integer", "minimum": 1, "maximum": 3}), Some(json!([1, 2, 3]))),
            (
                json!({"type": "integer", "minimum": 1, "maximum": 3, "not": {"const": 2}}),
                Some(json!([1, 3])),
            ),
            (json!({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 3}), Some(json!([1, 2]))),
            (
                json!({"type": "integer", "minimum": 0.5, "exclusiveMinimum": -3, "maximum": 2.5}),
                Some(json!([1, 2])),
            ),
            (
                json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer",
                    "minimum": 0, "exclusiveMinimum": true, "maximum": 2}),
                Some(json!([1, 2])),
            ),
            (json!({"type": "integer", "minimum": 2, "maximum": 1}), Some(json!([]))),
            (json!({"type": "integer", "minimum": 0, "maximum": 1000}), None),
            (json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX}), None),
            (json!({"anyOf": [{"const": "a"}, {"enum": ["a", "b"]}]}), Some(json!(["a", "b"]))),
            (json!({"oneOf": [{"const": "a"}, {"enum": ["a", "b"]}]}), Some(json!(["b"]))),
            (json!({"anyOf": [{"const": "a"}, {"type": "string"}]}), None),
            (json!({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}), Some(json!(["a", null]))),
            (json!({"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}), Some(json!(["b"]))),
            (json!({"allOf": [{"type": "string"}, {"enum": ["b", 1]}]}), Some(json!(["b"]))),
            (json!({"enum": ["a", "bb"], "maxLength": 1}), Some(json!(["a"]))),
            (json!({"type": "string"}), None),
            (json!({}), None),
            (json!(true), None),
            (json!(false), Some(json!([]))),
        ];
        for (schema, expected) in cases {
            assert_eq!(
                list_allowed_values(&schema, SchemaDraft::of(&schema)).map(Value::from),
                expected,
                "{schema}"
            );
        }
    }

    #[test]
    fn what_a_value_can_read_like() {
        assert!(can_read(&json!({"type": "integer"}), "3") && !can_read(&json!({"type": "integer"}), "x"));
        assert!(can_read(&json!({"type": "string"}), "3"));
        for text in ["007", "+7", "1e1", "7.0"] {
            assert!(can_read(&json!({"type": "integer"}), text), "{text}");
            assert!(!can_read(&json!({"type": "integer", "maximum": 6}), text), "{text}");
        }
        assert!(
            can_read(&json!({"type": "number"}), "0.50") && !can_read(&json!({"type": "integer"}), "0.50")
        );
        assert!(!can_read(&json!({"type": "string", "pattern": "^a"}), "b"));
        for text in ["{\"a\":1}", "ready"] {
            assert!(!can_read(&json!({"type": "object"}), text), "{text}");
        }
        assert!(can_read(&json!({"type": ["boolean", "object"]}), "true"));
    }
}
