//! The shape of a resolved schema: its objects closed.

use cuegate_flow::Look;
use serde_json::{Map, Value};

/// Closes every object schema that does not say whether it is open, but names what it holds. One that names nothing is
/// left open: closed, no answer but `{}` would fit it.
///
/// What stands beside its `properties` (`anyOf`, `then` and their like) is about the same object, so that this is closed
/// as a whole: around all names that any of them has, and so are the objects in it. What only tells objects apart (`if`
/// and `not`) closes nothing, or it would tell more of them apart than it says.
pub(crate) fn close(schema: &mut Value) {
    close_whole(schema, &[]);
}

/// Schemas about the same object as the one that has them.
const BESIDE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// Those of them that have a schema for each of some names. `dependencies` may have lists of names as well.
const BY_NAME: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Those that only tell objects apart.
const TELLING: [&str; 3] = ["not", "if", "contains"];

/// What holds no schema.
const VALUES: [&str; 5] = ["enum", "const", "default", "examples", "required"];

/// What has schemas by names, each about something else.
const NAMED: [&str; 4] = ["properties", "patternProperties", "definitions", "$defs"];

/// Closes a schema that is about an object of its own, of which `others` say something, too.
fn close_whole(schema: &mut Value, others: &[Value]) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| close_whole(item, others)),
        Value::Object(map) => {
            let is_object = map.look("type").and_then(Value::as_str) == Some("object");
            let names = map.has("properties");
            let closes = is_object && names && !map.has("additionalProperties");
            let beside = if names { beside(map, others) } else { Vec::new() };
            let more = closes.then(|| named(&beside)).flatten();
            let own = match map.look("properties") {
                Some(Value::Object(own)) if !beside.is_empty() => own.clone(),
                _ => Map::new(),
            };
            for (key, value) in map.iter_mut() {
                match (key.as_str(), value) {
                    (key, _) if VALUES.contains(&key) || TELLING.contains(&key) => {}
                    ("properties", Value::Object(own)) => {
                        for (name, inner) in own {
                            close_whole(inner, &inside(&beside, name));
                        }
                    }
                    (key, Value::Object(map)) if NAMED.contains(&key) => map.values_mut().for_each(close),
                    (key, Value::Object(map)) if BY_NAME.contains(&key) => {
                        map.values_mut().for_each(|part| close_part(part, &own));
                    }
                    (key, value) if BESIDE.contains(&key) && names => close_part(value, &own),
                    // Of an object that only its parts name, each part is a whole.
                    (key, value) if BESIDE.contains(&key) => close_whole(value, others),
                    (_, value) => close(value),
                }
            }
            if let Some(more) = more {
                map.insert("additionalProperties".to_owned(), Value::Bool(false));
                if let Some(Value::Object(own)) = map.get_mut("properties") {
                    for name in more {
                        own.entry(name).or_insert_with(|| Value::Object(Map::new()));
                    }
                }
            }
        }
        _ => {}
    }
}

/// Closes what is in a schema about an object that is closed elsewhere, which names these.
fn close_part(schema: &mut Value, names: &Map<String, Value>) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| close_part(item, names)),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match (key.as_str(), value) {
                    (key, _) if VALUES.contains(&key) || TELLING.contains(&key) => {}
                    ("properties", Value::Object(own)) => {
                        for (name, inner) in own {
                            // What the whole does not close is closed here.
                            let closed = names.look(name).filter(|known| known["type"] == "object");
                            match closed.and_then(|known| known.get("properties")) {
                                Some(Value::Object(known)) => close_part(inner, known),
                                _ => close(inner),
                            }
                        }
                    }
                    (key, Value::Object(map)) if NAMED.contains(&key) => map.values_mut().for_each(close),
                    (key, Value::Object(map)) if BY_NAME.contains(&key) => {
                        map.values_mut().for_each(|part| close_part(part, names));
                    }
                    (key, value) if BESIDE.contains(&key) => close_part(value, names),
                    (_, value) => close(value),
                }
            }
        }
        _ => {}
    }
}

/// All schemas that speak of the object that one is about: those that stand beside it, and others, with all that stands
/// beside these.
fn beside(map: &Map<String, Value>, others: &[Value]) -> Vec<Value> {
    let mut found = Vec::new();
    let mut open: Vec<&Map<String, Value>> = others.iter().filter_map(Value::as_object).collect();
    found.extend(open.iter().map(|other| Value::Object((*other).clone())));
    open.push(map);
    while let Some(map) = open.pop() {
        for part in BESIDE.iter().flat_map(|key| parts(key, map.look(key))) {
            found.push(Value::Object(part.clone()));
            open.push(part);
        }
    }
    found
}

/// What some schemas say of a property.
fn inside(schemas: &[Value], name: &str) -> Vec<Value> {
    let of = |schema: &Value| schema.get("properties")?.get(name).cloned();
    schemas.iter().filter_map(of).collect()
}

/// The properties that some schemas name; `None` where they cannot be listed.
fn named(schemas: &[Value]) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for schema in schemas.iter().filter_map(Value::as_object) {
        if schema.contains_key("patternProperties") || schema.contains_key("additionalProperties") {
            return None;
        }
        let own = schema.look("properties").and_then(Value::as_object);
        found.extend(own.into_iter().flat_map(|own| own.keys().cloned()));
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
    fn objects_in_parts_are_closed_where_the_whole_names_them() {
        let inner = |kind: &str| json!({"type": "object", "properties": {"kind": {"const": kind}}});
        let whole = |beside: Value| {
            let mut whole = json!({"type": "object", "required": ["next"], "properties": {
                "next": {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "why": {"type": "string"}}},
                "plan": {"type": "string"}}});
            whole.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
            Schema::new(closed(whole)).unwrap()
        };
        let fits = |schema: &Schema, value: Value| schema.problems(&value).is_empty();
        let says = |kind: &str| json!({"properties": {"next": inner(kind)}});
        let a = |rest: Value| {
            let mut answer = json!({"next": {"kind": "a", "why": "so"}});
            answer.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            answer
        };
        let schema = whole(json!({"if": says("a"), "then": {"required": ["plan"]}}));
        assert!(!fits(&schema, a(json!({}))), "what tells apart is not closed: `then` holds");
        assert!(fits(&schema, a(json!({"plan": "x"}))));
        let schema = whole(json!({"not": says("a")}));
        assert!(!fits(&schema, a(json!({}))));
        let schema = whole(json!({"oneOf": [says("a"), says("b")]}));
        assert!(fits(&schema, a(json!({}))), "`why` is named by the whole");
        let more = json!({"next": {"kind": "a", "other": 1}});
        assert!(!fits(&schema, more.clone()), "it is closed");
        let extra =
            json!({"properties": {"next": {"type": "object", "properties": {"other": {"type": "integer"}}}}});
        let schema = whole(json!({"anyOf": [extra, says("b")]}));
        assert!(fits(&schema, more), "what a part names in it is named");
        assert!(!fits(&schema, json!({"next": {"kind": "a", "another": 1}})));
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
