//! The parts of an `allOf`, and what stands beside a `$ref`, merged into one schema that says what all of them say.
//!
//! Agents are sent what comes out, and many providers take no `allOf`: where one keyword can say what two do, it does.
//! What no keyword can say stays in an `allOf`, so that nothing of it is lost.

use std::cmp::Ordering;

use cuegate_flow::Look;
use serde_json::{Map, Number, Value};

/// Keys that say something about a schema and nothing about answers. References are replaced by now.
const ANNOTATIONS: [&str; 10] = [
    "$comment",
    "$id",
    "$schema",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
];

/// Keywords that are read together: those of one part are not to be read with those of another one.
const GROUPS: [&[&str]; 5] = [
    &["if", "then", "else"],
    &["prefixItems", "items", "additionalItems", "unevaluatedItems"],
    &["contains", "minContains", "maxContains"],
    &["minimum", "exclusiveMinimum"],
    &["maximum", "exclusiveMaximum"],
];

/// What is said of a property that several parts name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// What the last one says takes the place of what the others say, as in the original program: a step's schema says
    /// anew what its base says in general.
    Anew,
    /// What all of them say holds.
    Together,
}

/// Merges the parts of an `allOf` and the schema that has it, which comes last. Of annotations the first counts, and so
/// it does of `additionalProperties`: a part that is closed around its own properties would refuse all that others add.
pub(super) fn merge(bases: Vec<Value>, own: Map<String, Value>, named: Named) -> Map<String, Value> {
    let mut merged = Map::new();
    let mut left: Vec<Value> = Vec::new();
    for part in bases.into_iter().chain([Value::Object(own)]) {
        match part {
            Value::Object(part) => add(&mut merged, part, named, &mut left),
            Value::Bool(false) => left.push(Value::Bool(false)),
            _ => {}
        }
    }
    if !left.is_empty() {
        merged.insert("allOf".to_owned(), Value::Array(left));
    }
    merged
}

/// Adds a part to what is merged so far; what cannot be said in one with that is `left`.
fn add(merged: &mut Map<String, Value>, part: Map<String, Value>, named: Named, left: &mut Vec<Value>) {
    let apart: Vec<&str> =
        GROUPS.into_iter().filter(|group| are_apart(group, merged, &part)).flatten().copied().collect();
    let mut differing = Map::new();
    for (key, value) in part {
        if key == "allOf"
            && let Value::Array(before) = value
        {
            left.extend(before);
            continue;
        }
        let Some(known) = merged.get_mut(&key).filter(|_| !apart.contains(&key.as_str())) else {
            let map = if apart.contains(&key.as_str()) { &mut differing } else { &mut *merged };
            map.insert(key, value);
            continue;
        };
        if let Err(value) = narrow(&key, known, value, named) {
            differing.insert(key, value);
        }
    }
    if !differing.is_empty() {
        left.push(Value::Object(differing));
    }
}

/// Whether a group of keywords is in both of two schemas, not the same in both, and has to be read as a whole.
fn are_apart(group: &[&str], one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let has = |schema: &Map<String, Value>| group.iter().any(|key| schema.has(key));
    let is_same = || group.iter().all(|key| one.look(key) == other.look(key));
    if !has(one) || !has(other) || is_same() {
        return false;
    }
    match group[0] {
        "prefixItems" => [one, other].iter().any(|schema| {
            group.iter().any(|key| *key != "items" && schema.has(key))
                || schema.look("items").is_some_and(Value::is_array)
        }),
        // In draft 4 what is excluded is said by a truth value beside the bound.
        "minimum" | "maximum" => {
            [one, other].iter().any(|schema| schema.look(group[1]).is_some_and(Value::is_boolean))
        }
        _ => true,
    }
}

/// Narrows what a keyword says by what it says in another part.
///
/// # Errors
/// The other one, where one keyword cannot say both.
fn narrow(key: &str, known: &mut Value, value: Value, named: Named) -> Result<(), Value> {
    if *known == value || ANNOTATIONS.contains(&key) {
        return Ok(());
    }
    match (key, &mut *known, value) {
        ("additionalProperties", _, _) => Ok(()),
        ("properties" | "patternProperties", Value::Object(known), Value::Object(more)) => {
            for (name, schema) in more {
                let both = match known.get_mut(&name) {
                    Some(before) if named == Named::Together => together(std::mem::take(before), schema),
                    _ => schema,
                };
                known.insert(name, both);
            }
            Ok(())
        }
        ("items", Value::Object(_), more @ Value::Object(_)) => {
            *known = together(std::mem::take(known), more);
            Ok(())
        }
        ("required", Value::Array(known), Value::Array(more)) => {
            for name in more {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
            Ok(())
        }
        ("uniqueItems", known @ Value::Bool(_), Value::Bool(more)) => {
            *known = Value::Bool(more || *known == Value::Bool(true));
            Ok(())
        }
        ("type", _, value) => replace(known, types(known, &value), value),
        ("enum", _, value) => replace(known, listed(known, &value), value),
        (key, _, value) => replace(known, stricter(key, known, &value), value),
    }
}

fn replace(known: &mut Value, both: Option<Value>, value: Value) -> Result<(), Value> {
    *known = both.ok_or(value)?;
    Ok(())
}

/// A schema that says what two schemas of one place say. It is described as the later one describes it, if at all: what
/// is said in general does not describe what is said more closely.
fn together(mut base: Value, own: Value) -> Value {
    match own {
        own if base == own => own,
        Value::Bool(true) => base,
        Value::Object(own) => {
            if let Value::Object(base) = &mut base {
                base.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()));
            }
            Value::Object(merge(vec![base], own, Named::Together))
        }
        own => Value::Object(merge(vec![base, own], Map::new(), Named::Together)),
    }
}

/// The types that two `type`s name.
fn types(one: &Value, other: &Value) -> Option<Value> {
    let names = |value: &Value| -> Vec<String> {
        let all = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
        all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (one, other) = (names(one), names(other));
    let is_in = |name: &String, all: &[String]| {
        all.contains(name) || (name == "integer" && all.iter().any(|known| known == "number"))
    };
    let mut both: Vec<Value> = Vec::new();
    let of_either =
        one.iter().filter(|name| is_in(name, &other)).chain(other.iter().filter(|name| is_in(name, &one)));
    for name in of_either {
        if !both.contains(&Value::from(name.as_str())) {
            both.push(Value::from(name.as_str()));
        }
    }
    match both.len() {
        0 => None,
        1 => both.pop(),
        _ => Some(Value::Array(both)),
    }
}

/// The values that two lists have, as the second one orders them. Numbers may be equal and written differently, which
/// is left to who compares them with answers.
fn listed(one: &Value, other: &Value) -> Option<Value> {
    let (one, other) = (one.as_array()?, other.as_array()?);
    let is_exact = |value: &Value| !value.is_object() && !value.is_array() && !value.is_f64();
    if !one.iter().chain(other).all(is_exact) {
        return None;
    }
    let both: Vec<Value> = other.iter().filter(|value| one.contains(value)).cloned().collect();
    (!both.is_empty()).then_some(Value::Array(both))
}

/// The stricter one of two bounds.
fn stricter(key: &str, one: &Value, other: &Value) -> Option<Value> {
    let wanted = match key {
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => Ordering::Greater,
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => Ordering::Less,
        _ => return None,
    };
    let (Value::Number(one), Value::Number(other)) = (one, other) else { return None };
    let order = match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => exact(one)?.partial_cmp(&exact(other)?)?,
    };
    Some(Value::Number(if order == wanted { one.clone() } else { other.clone() }))
}

/// A number with a fraction, where it is small enough not to have been rounded to a whole one.
fn exact(number: &Number) -> Option<f64> {
    number.as_f64().filter(|number| number.abs() < 9_007_199_254_740_992.0)
}

#[cfg(test)]
mod tests {
    use super::{Named, merge};
    use cuegate_flow::Schema;
    use serde_json::{Value, json};

    fn merged(parts: &[Value]) -> Value {
        let (own, bases) = parts.split_last().expect("at least one");
        Value::Object(merge(bases.to_vec(), own.as_object().expect("a schema").clone(), Named::Together))
    }

    #[test]
    fn one_keyword_says_what_two_do() {
        for (parts, expected) in [
            (
                json!([{"minLength": 3}, {"minLength": 5, "maxLength": 9}, {"maxLength": 7}]),
                json!({"minLength": 5, "maxLength": 7}),
            ),
            (json!([{"type": ["string", "null"]}, {"type": "string"}]), json!({"type": "string"})),
            (json!([{"type": "number"}, {"type": ["integer", "null"]}]), json!({"type": "integer"})),
            (json!([{"enum": ["a", "b", "c"]}, {"enum": ["c", "b", "x"]}]), json!({"enum": ["c", "b"]})),
            (json!([{"minimum": 1}, {"minimum": 1.5}]), json!({"minimum": 1.5})),
            (json!([{"required": ["a"]}, {"required": ["b", "a"]}]), json!({"required": ["a", "b"]})),
            (
                json!([{"items": {"type": "string"}}, {"items": {"minLength": 1}}]),
                json!({"items": {"type": "string", "minLength": 1}}),
            ),
            (
                json!([{"if": {"minLength": 1}, "then": false}, {"if": {"minLength": 1}, "then": false}]),
                json!({"if": {"minLength": 1}, "then": false}),
            ),
            (json!([{"title": "a"}, {"title": "b"}]), json!({"title": "a"})),
            (
                json!([{"patternProperties": {"^a": {"type": "string"}}}, {"patternProperties": {"^a": {"maxLength": 2}, "^b": true}}]),
                json!({"patternProperties": {"^a": {"type": "string", "maxLength": 2}, "^b": true}}),
            ),
            (
                json!([true, {"properties": {"a": true}}, {"properties": {"a": {"type": "null"}}}]),
                json!({"properties": {"a": {"type": "null"}}}),
            ),
        ] {
            assert_eq!(merged(parts.as_array().expect("parts")), expected, "{parts}");
        }
    }

    #[test]
    fn what_is_said_of_a_property_holds_together() {
        let base = json!({"properties": {"plan": {"type": "string", "minLength": 20, "description": "general", "title": "x"},
            "size": {"enum": ["s", "m", "l"]}, "more": {"type": "object", "properties": {"a": {}}, "required": ["a"]}}});
        let own = json!({"properties": {"plan": {"description": "this one"}, "size": {"type": "string"},
            "more": {"properties": {"b": {"type": "null"}}}}});
        assert_eq!(
            merged(&[base, own]),
            json!({"properties": {
            "plan": {"type": "string", "minLength": 20, "description": "this one"},
            "size": {"enum": ["s", "m", "l"], "type": "string"},
            "more": {"type": "object", "properties": {"a": {}, "b": {"type": "null"}}, "required": ["a"]}}})
        );
    }

    #[test]
    fn what_a_step_says_anew_of_a_property_counts() {
        let base =
            json!({"properties": {"plan": {"type": "string", "minLength": 20}, "size": {"enum": ["s"]}}});
        let own = json!({"properties": {"plan": {"type": "string"}}}).as_object().expect("one").clone();
        let expected = json!({"properties": {"plan": {"type": "string"}, "size": {"enum": ["s"]}}});
        assert_eq!(Value::Object(merge(vec![base], own, Named::Anew)), expected);
    }

    #[test]
    fn what_no_keyword_can_say_is_kept() {
        for (parts, expected) in [
            (
                json!([{"pattern": "a"}, {"pattern": "b"}]),
                json!({"pattern": "a", "allOf": [{"pattern": "b"}]}),
            ),
            (
                json!([{"type": "string"}, {"type": "null", "title": "x"}]),
                json!({"type": "string", "title": "x", "allOf": [{"type": "null"}]}),
            ),
            (json!([{"enum": ["a"]}, {"enum": ["b"]}]), json!({"enum": ["a"], "allOf": [{"enum": ["b"]}]})),
            (json!([{"enum": [1]}, {"enum": [1.0]}]), json!({"enum": [1], "allOf": [{"enum": [1.0]}]})),
            (
                json!([{"if": {"minLength": 1}, "then": false}, {"if": {"minLength": 2}, "else": false}]),
                json!({"if": {"minLength": 1}, "then": false, "allOf": [{"if": {"minLength": 2}, "else": false}]}),
            ),
            (
                json!([{"minimum": 1, "exclusiveMinimum": true}, {"minimum": 1}]),
                json!({"minimum": 1, "exclusiveMinimum": true, "allOf": [{"minimum": 1}]}),
            ),
            (
                json!([{"prefixItems": [{}], "items": false}, {"items": {"type": "string"}}]),
                json!({"prefixItems": [{}], "items": false, "allOf": [{"items": {"type": "string"}}]}),
            ),
            (
                json!([{"allOf": [{"not": {}}]}, false, {"pattern": "a"}]),
                json!({"pattern": "a", "allOf": [{"not": {}}, false]}),
            ),
        ] {
            assert_eq!(merged(parts.as_array().expect("parts")), expected, "{parts}");
        }
    }

    /// Some schemas of keywords that meet each other.
    fn some() -> Vec<Value> {
        let inner = [
            json!({"type": "string"}),
            json!({"enum": ["a", "bb", 1]}),
            json!({"minimum": 2}),
            json!(true),
            json!({"const": 1}),
        ];
        let mut all: Vec<Value> = inner.to_vec();
        for schema in &inner {
            all.push(json!({"properties": {"p": schema}}));
            all.push(json!({"items": schema}));
            all.push(json!({"items": schema, "prefixItems": [{"type": "number"}]}));
            all.push(json!({"if": schema, "then": {"type": "string"}}));
            all.push(json!({"contains": schema, "minContains": 2}));
            all.push(json!({"type": ["array", "object", "integer"], "maxItems": 2, "not": schema}));
        }
        all
    }

    #[test]
    fn what_is_merged_says_what_its_parts_say() {
        let values = [
            json!("a"),
            json!("bb"),
            json!("c"),
            json!(1),
            json!(2),
            json!(3.5),
            json!(null),
            json!({}),
            json!({"p": "a"}),
            json!({"p": 1}),
            json!({"p": 2}),
            json!({"p": null}),
            json!([]),
            json!(["a"]),
            json!([1, 1]),
            json!([1, "a"]),
            json!([1, "a", "bb"]),
            json!(["x"]),
            json!([3, 1, 1]),
        ];
        let fits = |schema: &Value, value: &Value| {
            Schema::new(schema.clone()).expect("it compiles").problems(value).is_empty()
        };
        for one in some() {
            for other in some() {
                let Value::Object(own) = &other else { continue };
                let both = Value::Object(merge(vec![one.clone()], own.clone(), Named::Together));
                for value in &values {
                    let expected = fits(&one, value) && fits(&other, value);
                    assert_eq!(fits(&both, value), expected, "{value} in {both} of {one} and {other}");
                }
            }
        }
    }

    #[test]
    fn types_of_parts_hold_together() {
        let parts = |types: [&str; 2]| {
            let part = |kind: &str| json!({"type": kind}).as_object().expect("one").clone();
            Schema::new(Value::Object(merge(
                vec![Value::Object(part(types[0]))],
                part(types[1]),
                Named::Anew,
            )))
            .unwrap()
        };
        assert!(parts(["string", "string"]).problems(&json!("x")).is_empty());
        assert!(parts(["integer", "number"]).problems(&json!(1)).is_empty());
        for value in [json!("x"), json!(1)] {
            assert!(!parts(["string", "integer"]).problems(&value).is_empty(), "{value}");
        }
    }
}
