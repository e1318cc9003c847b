//! Which properties every object that fits a schema has, as far as that is certain without trying them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::allowed::{branches, subschemas};

/// Keywords that can make a property certain beside `required`.
const SAY_MORE: [&str; 10] = [
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "enum",
    "const",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "minProperties",
];

/// Drafts in which `dependentRequired` and `dependentSchemas` say nothing.
const WITHOUT_DEPENDENTS: [&str; 3] = ["draft-04", "draft-06", "draft-07"];

/// Whether a schema is read by a draft that knows what has to be there because something else is under these names.
pub(crate) fn knows_dependents(schema: &Value) -> bool {
    let named = schema.get("$schema").and_then(Value::as_str);
    !named.is_some_and(|draft| WITHOUT_DEPENDENTS.iter().any(|known| draft.contains(known)))
}

/// Whether every object that fits has a property. `dependents`: whether the draft knows [`knows_dependents`].
pub(crate) fn names_required(schema: &Value, name: &str, dependents: bool) -> bool {
    let Value::Object(map) = schema else { return false };
    branches(map, "required").any(|known| known == name)
        || (SAY_MORE.iter().any(|key| map.contains_key(*key)) && certain(schema, dependents).contains(name))
}

/// The properties that every object has which fits.
fn certain(schema: &Value, dependents: bool) -> BTreeSet<&str> {
    let certain = |schema| certain(schema, dependents);
    let Value::Object(map) = schema else { return BTreeSet::new() };
    let mut names: BTreeSet<&str> = branches(map, "required").filter_map(Value::as_str).collect();
    names.extend(branches(map, "allOf").flat_map(certain));
    for key in ["anyOf", "oneOf"] {
        names.extend(common(branches(map, key).map(certain)));
    }
    if let (Some(then), Some(otherwise)) = (map.get("then"), map.get("else"))
        && let Some(holds) = map.get("if")
    {
        let mut then = certain(then);
        then.extend(certain(holds));
        names.extend(common([then, certain(otherwise)].into_iter()));
    }
    names.extend(common(written(map).map(keys)));
    loop {
        let before = names.len();
        follow(schema, &mut names, dependents);
        if fewest(schema) >= places(schema).map_or(u64::MAX, |places| places.len() as u64) {
            names.extend(places(schema).into_iter().flatten());
        }
        if names.len() == before {
            return names;
        }
    }
}

/// What all of some sets have; nothing where there is none.
fn common<'v>(mut sets: impl Iterator<Item = BTreeSet<&'v str>>) -> BTreeSet<&'v str> {
    let first = sets.next().unwrap_or_default();
    sets.fold(first, |all, set| all.intersection(&set).copied().collect())
}

/// The objects that `enum` and `const` list.
fn written(map: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    branches(map, "enum").chain(map.get("const")).filter(|value| value.is_object())
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// Adds what has to be there because something else is.
fn follow<'v>(schema: &'v Value, names: &mut BTreeSet<&'v str>, dependents: bool) {
    let Value::Object(map) = schema else { return };
    let keys = ["dependencies", "dependentRequired", "dependentSchemas"];
    for key in keys.into_iter().filter(|key| dependents || *key == "dependencies") {
        let Some(Value::Object(rules)) = map.get(key) else { continue };
        for (name, needed) in rules {
            if !names.contains(name.as_str()) {
                continue;
            }
            match needed {
                Value::Array(needed) => names.extend(needed.iter().filter_map(Value::as_str)),
                needed => names.extend(certain(needed, dependents)),
            }
        }
    }
    branches(map, "allOf").for_each(|branch| follow(branch, names, dependents));
}

/// How many properties an object has at least.
fn fewest(schema: &Value) -> u64 {
    let Value::Object(map) = schema else { return 0 };
    let own = map.get("minProperties").and_then(Value::as_u64).unwrap_or_default();
    branches(map, "allOf").map(fewest).fold(own, u64::max)
}

/// The properties that an object can have, where these can be listed.
fn places(schema: &Value) -> Option<Vec<&str>> {
    let Value::Object(map) = schema else { return None };
    let by_pattern =
        map.get("patternProperties").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    if map.get("additionalProperties") != Some(&Value::Bool(false)) || by_pattern {
        return branches(map, "allOf").find_map(places);
    }
    let named = map.get("properties").and_then(Value::as_object)?;
    let can_be = |name: &&str| !subschemas(schema, name).contains(&&Value::Bool(false));
    Some(named.keys().map(String::as_str).filter(can_be).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{FieldPath, Schema};

    /// Whether answers of a schema of three texts have `plan`, with something said beside.
    fn has_plan(beside: Value) -> bool {
        let text = json!({"type": "string"});
        let mut schema = json!({"type": "object", "required": ["goal"], "additionalProperties": false,
            "properties": {"goal": text, "plan": text, "other": text}});
        schema.as_object_mut().expect("one").extend(beside.as_object().expect("one").clone());
        let is_certain = Schema::new(schema.clone()).unwrap().requires(&FieldPath::parse("plan").unwrap());
        let validator = jsonschema::validator_for(&schema).unwrap();
        for answer in [json!({"goal": "x"}), json!({"goal": "x", "other": "x"})] {
            assert!(!(is_certain && validator.is_valid(&answer)), "{schema} takes {answer}");
        }
        is_certain
    }

    #[test]
    fn what_makes_a_property_certain() {
        for beside in [
            json!({"minProperties": 3}),
            json!({"allOf": [{"minProperties": 3}]}),
            json!({"minProperties": 2, "properties": {"goal": {}, "plan": {}, "other": false}}),
            json!({"dependencies": {"goal": ["plan"]}}),
            json!({"dependencies": {"goal": ["other"], "other": {"required": ["plan"]}}}),
            json!({"dependentRequired": {"goal": ["plan"]}}),
            json!({"dependentSchemas": {"goal": {"required": ["plan"]}}}),
            json!({"allOf": [{"dependentRequired": {"goal": ["plan"]}}]}),
            json!({"if": {"required": ["other"]}, "then": {"required": ["plan"]}, "else": {"required": ["plan"]}}),
            json!({"enum": [{"goal": "x", "plan": "y"}, {"goal": "y", "plan": "x"}]}),
            json!({"const": {"goal": "x", "plan": "y"}}),
        ] {
            assert!(has_plan(beside.clone()), "{beside}");
        }
    }

    #[test]
    fn what_does_not() {
        for beside in [
            json!({"minProperties": 2}),
            json!({"minProperties": 3, "additionalProperties": true}),
            json!({"minProperties": 3, "patternProperties": {"^x": {}}}),
            json!({"dependencies": {"other": ["plan"]}}),
            json!({"dependentRequired": {"goal": ["other"]}}),
            json!({"if": {"required": ["other"]}, "then": {"required": ["plan"]}}),
            json!({"enum": [{"goal": "x", "plan": "y"}, {"goal": "y"}]}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "dependentRequired": {"goal": ["plan"]}}),
        ] {
            assert!(!has_plan(beside.clone()), "{beside}");
        }
    }
}
