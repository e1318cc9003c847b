//! The shape of a resolved schema: its objects closed.

use cuegate_flow::Look;
use serde_json::{Map, Value};

/// Closes every object schema that does not say whether it is open, but names what it holds. One that names nothing is
/// left open: closed, no answer but `{}` would fit it.
///
/// What stands beside its `properties` (`anyOf`, `then` and their like) is about the same object, so that this is closed
/// as a whole: around all names that any of them has.
pub(crate) fn close(schema: &mut Value) {
    close_part(schema, false);
}

/// Schemas about the same object as the one that has them.
const BESIDE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// Those of them that have a schema for each of some names. `dependencies` may have lists of names as well.
const BY_NAME: [&str; 2] = ["dependentSchemas", "dependencies"];

/// `is_part`: the schema is about an object that is closed elsewhere.
fn close_part(schema: &mut Value, is_part: bool) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| close_part(item, is_part)),
        Value::Object(map) => {
            let is_object = map.look("type").and_then(Value::as_str) == Some("object");
            let names = map.has("properties");
            let closes = is_object && names && !map.has("additionalProperties") && !is_part;
            let beside = if closes { named_beside(map) } else { None };
            for (key, value) in map.iter_mut() {
                close_keyword(key, value, names || is_part);
            }
            if let Some(beside) = beside {
                map.insert("additionalProperties".to_owned(), Value::Bool(false));
                if let Some(Value::Object(own)) = map.get_mut("properties") {
                    for name in beside {
                        own.entry(name).or_insert_with(|| Value::Object(Map::new()));
                    }
                }
            }
        }
        _ => {}
    }
}

fn close_keyword(key: &str, value: &mut Value, is_part: bool) {
    match (key, value) {
        ("enum" | "const" | "default" | "examples" | "required", _) => {}
        ("properties" | "patternProperties" | "definitions" | "$defs", Value::Object(map)) => {
            map.values_mut().for_each(close);
        }
        (key, Value::Object(map)) if BY_NAME.contains(&key) => {
            map.values_mut().for_each(|schema| close_part(schema, is_part));
        }
        // What tells objects apart must not tell more of them apart than it says.
        ("not" | "if", value) => close_part(value, true),
        (key, value) => close_part(value, is_part && BESIDE.contains(&key)),
    }
}

/// The properties that schemas beside an object's own name; `None` where they cannot be listed.
fn named_beside(map: &Map<String, Value>) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for part in BESIDE.iter().flat_map(|key| parts(key, map.look(key))) {
        if part.contains_key("patternProperties") || part.contains_key("additionalProperties") {
            return None;
        }
        let own = part.look("properties").and_then(Value::as_object);
        found.extend(own.into_iter().flat_map(|own| own.keys().cloned()));
        found.extend(named_beside(part)?);
    }
    Some(found)
}

/// The schemas that a keyword has: one, a list, or one for each of some names.
fn parts<'v>(key: &str, value: Option<&'v Value>) -> Vec<&'v Map<String, Value>> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_object).collect(),
        Some(Value::Object(map)) if BY_NAME.contains(&key) => {
            map.values().filter_map(Value::as_object).collect()
        }
        Some(Value::Object(map)) => vec![map],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::close;
    use cuegate_flow::Schema;
    use serde_json::{Value, json};

    fn closed(mut schema: Value) -> Value {
        close(&mut schema);
        schema
    }

    #[test]
    fn an_object_is_closed_around_all_that_is_said_of_it() {
        let schema = closed(json!({
            "type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["a", "b"]}},
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": "a"}, "left": {"type": "string"}}, "required": ["left"]},
                {"properties": {"kind": {"const": "b"}}}
            ],
            "if": {"type": "object", "properties": {"kind": {"const": "b"}}},
            "then": {"properties": {"right": {"type": "object", "properties": {"x": {}}}}, "required": ["right"]}
        }));
        let schema = Schema::new(schema).unwrap();
        let fits = |value| schema.problems(&value).is_empty();
        assert!(fits(json!({"kind": "a", "left": "x"})));
        assert!(fits(json!({"kind": "b", "right": {"x": 1}})));
        assert!(!fits(json!({"kind": "b"})), "`then` still holds");
        assert!(!fits(json!({"kind": "a", "left": "x", "other": 1})), "it is closed");
        assert!(!fits(json!({"kind": "b", "right": {"y": 1}})), "so is what is in it");
    }

    #[test]
    fn schemas_for_names_are_about_the_object_that_has_them() {
        let depends = |inner: Value| {
            let inner = json!({"a": inner, "b": ["a"]});
            let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
                "properties": {"a": {}, "b": {}}, "dependencies": inner});
            closed(schema)
        };
        let schema =
            Schema::new(depends(json!({"type": "object", "properties": {"c": {"minLength": 1}}}))).unwrap();
        let fits = |value| schema.problems(&value).is_empty();
        assert!(fits(json!({"a": 1, "b": 2, "c": "x"})), "`c` is named beside");
        assert!(!fits(json!({"a": 1, "c": ""})), "what is said of `c` holds");
        assert!(!fits(json!({"b": 2})), "so does the list of names");
        assert!(!fits(json!({"a": 1, "other": 2})), "it is closed");
        let open = depends(json!({"patternProperties": {"^x-": {}}}));
        assert!(open.get("additionalProperties").is_none());
    }

    #[test]
    fn alternatives_are_closed_each_by_itself() {
        let one = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}});
        let schema = Schema::new(closed(json!({"anyOf": [one("a"), one("b")]}))).unwrap();
        assert!(schema.problems(&json!({"a": "x"})).is_empty());
        assert!(!schema.problems(&json!({"a": "x", "b": "y"})).is_empty());
    }

    #[test]
    fn where_names_cannot_be_listed_it_stays_open() {
        let schema = closed(json!({
            "type": "object", "properties": {"a": {}}, "allOf": [{"patternProperties": {"^x-": {}}}]
        }));
        assert!(schema.get("additionalProperties").is_none());
    }
}
