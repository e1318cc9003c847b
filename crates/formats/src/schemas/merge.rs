//! The parts of an `allOf`, and what stands beside a `$ref`, merged into one schema that says what all of them say.
//!
//! Agents are sent what comes out, and many providers take no `allOf`: where one keyword can say what two do, it does.
//! What no keyword can say stays in an `allOf`, so that nothing of it is lost.

use std::cmp::Ordering;

use cuegate_flow::model::KeyLookup;
use serde_json::{Map, Number, Value, json};

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
    &["prefixItems", "items", "additionalItems"],
    &["contains", "minContains", "maxContains"],
    &["minimum", "exclusiveMinimum"],
    &["maximum", "exclusiveMaximum"],
];

/// What is said of a property that several parts name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PropertyMergeMode {
    /// What the last one says takes the place of what the others say, as in the original program: a step's schema says
    /// anew what its base says in general.
    Anew,
    /// What all of them say holds.
    Together,
}

/// Keywords about what nothing beside them says: of a part they are about what that part does not say.
const UNSAID: [&str; 2] = ["unevaluatedItems", "unevaluatedProperties"];

/// Merges the parts of an `allOf` and the schema that has it, which comes last. Of annotations the first counts. A part that
/// is closed around its own properties would refuse all that others add, so that what is merged is closed around all of
/// them; of an `allOf` the first `additionalProperties` counts.
pub(crate) fn merge_schemas(
    bases: Vec<Value>,
    own: Map<String, Value>,
    named: PropertyMergeMode,
) -> Map<String, Value> {
    let mut merged = Map::new();
    let mut left: Vec<Value> = Vec::new();
    let count = bases.len();
    for (at, part) in bases.into_iter().chain([Value::Object(own)]).enumerate() {
        match part {
            Value::Object(part) if at < count && UNSAID.iter().any(|key| part.has(key)) => {
                left.push(Value::Object(part));
            }
            Value::Object(mut part) => {
                if named == PropertyMergeMode::Together {
                    left.extend(of_the_rest(&merged, &mut part));
                    left.extend(of_the_rest(&part, &mut merged));
                }
                merge_part(&mut merged, part, named, &mut left);
            }
            Value::Bool(false) => left.push(Value::Bool(false)),
            _ => {}
        }
    }
    if !left.is_empty() {
        merged.insert("allOf".to_owned(), Value::Array(left));
    }
    merged
}

/// What a schema says of all properties that it does not name holds of those that the other one names. Returns what has to
/// stand beside it, where patterns name properties: nobody can list which.
fn of_the_rest(one: &Map<String, Value>, other: &mut Map<String, Value>) -> Option<Value> {
    let rest = one.find_key("additionalProperties").filter(|rest| rest.is_object())?;
    let names = |key: &str| one.find_key(key).and_then(Value::as_object).into_iter().flat_map(Map::keys);
    if !other.has("properties") && !other.has("patternProperties") {
        return None;
    }
    if one.has("patternProperties") || other.has("patternProperties") {
        let any = |key: &str| names(key).map(|name| (name.clone(), Value::Bool(true))).collect::<Map<_, _>>();
        return Some(json!({
            "properties": any("properties"),
            "patternProperties": any("patternProperties"),
            "additionalProperties": rest,
        }));
    }
    for (name, property) in other.get_mut("properties").and_then(Value::as_object_mut)? {
        if !names("properties").any(|known| known == name) {
            *property = intersect_schemas(rest.clone(), property.take());
        }
    }
    None
}

/// Adds a part to what is merged so far; what cannot be said in one with that is `left`.
fn merge_part(
    merged: &mut Map<String, Value>,
    part: Map<String, Value>,
    named: PropertyMergeMode,
    left: &mut Vec<Value>,
) {
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
        if let Err(value) = narrow_keyword(&key, known, value, named) {
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
    let is_same = || group.iter().all(|key| one.find_key(key) == other.find_key(key));
    if !has(one) || !has(other) || is_same() {
        return false;
    }
    match group[0] {
        "prefixItems" => [one, other].iter().any(|schema| {
            group.iter().any(|key| *key != "items" && schema.has(key))
                || schema.find_key("items").is_some_and(Value::is_array)
        }),
        // In draft 4 what is excluded is said by a truth value beside the bound.
        "minimum" | "maximum" => {
            [one, other].iter().any(|schema| schema.find_key(group[1]).is_some_and(Value::is_boolean))
        }
        _ => true,
    }
}

/// Narrows what a keyword says by what it says in another part.
///
/// # Errors
/// The other one, where one keyword cannot say both.
fn narrow_keyword(key: &str, known: &mut Value, value: Value, named: PropertyMergeMode) -> Result<(), Value> {
    if *known == value || ANNOTATIONS.contains(&key) {
        return Ok(());
    }
    match (key, &mut *known, value) {
        ("additionalProperties", _, _) if named == PropertyMergeMode::Anew => Ok(()),
        ("additionalProperties", known, Value::Bool(false)) => {
            *known = Value::Bool(false);
            Ok(())
        }
        ("additionalProperties", Value::Bool(false), _) | ("additionalProperties", _, Value::Bool(true)) => {
            Ok(())
        }
        ("properties" | "patternProperties", Value::Object(known), Value::Object(more)) => {
            for (name, schema) in more {
                let both = match known.get_mut(&name) {
                    Some(before) if named == PropertyMergeMode::Together => {
                        intersect_schemas(std::mem::take(before), schema)
                    }
                    _ => schema,
                };
                known.insert(name, both);
            }
            Ok(())
        }
        ("additionalProperties", known @ Value::Bool(true), more) => {
            *known = more;
            Ok(())
        }
        ("items" | "additionalProperties", Value::Object(_), more @ Value::Object(_)) => {
            *known = intersect_schemas(std::mem::take(known), more);
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
        ("type", _, value) => replace_with_merged(known, intersect_types(known, &value), value),
        ("enum", _, value) => replace_with_merged(known, intersect_enums(known, &value), value),
        (key, _, value) => replace_with_merged(known, pick_stricter_bound(key, known, &value), value),
    }
}

fn replace_with_merged(known: &mut Value, both: Option<Value>, value: Value) -> Result<(), Value> {
    *known = both.ok_or(value)?;
    Ok(())
}

/// A schema that says what two schemas of one place say. It is described as the later one describes it, if at all: what
/// is said in general does not describe what is said more closely.
fn intersect_schemas(mut base: Value, own: Value) -> Value {
    match own {
        own if base == own => own,
        Value::Bool(true) => base,
        Value::Object(own) => {
            if let Value::Object(base) = &mut base {
                base.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()));
            }
            Value::Object(merge_schemas(vec![base], own, PropertyMergeMode::Together))
        }
        own => Value::Object(merge_schemas(vec![base, own], Map::new(), PropertyMergeMode::Together)),
    }
}

/// The types that two `type`s name.
fn intersect_types(one: &Value, other: &Value) -> Option<Value> {
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
fn intersect_enums(one: &Value, other: &Value) -> Option<Value> {
    let (one, other) = (one.as_array()?, other.as_array()?);
    let is_exact = |value: &Value| !value.is_object() && !value.is_array() && !value.is_f64();
    if !one.iter().chain(other).all(is_exact) {
        return None;
    }
    let both: Vec<Value> = other.iter().filter(|value| one.contains(value)).cloned().collect();
    (!both.is_empty()).then_some(Value::Array(both))
}

/// The stricter one of two bounds.
fn pick_stricter_bound(key: &str, one: &Value, other: &Value) -> Option<Value> {
    let wanted = match key {
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => Ordering::Greater,
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => Ordering::Less,
        _ => return None,
    };
    let (Value::Number(one), Value::Number(other)) = (one, other) else { return None };
    let order = match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => exact_float_of_number(one)?.partial_cmp(&exact_float_of_number(other)?)?,
    };
    Some(Value::Number(if order == wanted { one.clone() } else { other.clone() }))
}

/// A number with a fraction, where it is small enough not to have been rounded to a whole one.
fn exact_float_of_number(number: &Number) -> Option<f64> {
    number.as_f64().filter(|number| number.abs() < 9_007_199_254_740_992.0)
}

#[cfg(test)]
mod tests;
