//! Which properties every object that fits a schema has, as far as that is certain without trying them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::model::schema::items_of_keyword;
use crate::model::schema::{KeyLookup, Kinds, SchemaDraft, in_any_case};

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

/// Whether every object that fits has a property.
pub(crate) fn names_required(schema: &Value, name: &str, draft: SchemaDraft) -> bool {
    let Value::Object(map) = schema else { return false };
    items_of_keyword(map, "required").any(|known| known == name)
        || (SAY_MORE.iter().any(|key| map.has(key)) && list_certain_properties(schema, draft).contains(name))
}

/// The properties that every object has which fits.
pub(crate) fn list_certain_properties(schema: &Value, draft: SchemaDraft) -> BTreeSet<&str> {
    let certain = |schema| list_certain_properties(schema, draft);
    let Value::Object(map) = schema else { return BTreeSet::new() };
    let mut names: BTreeSet<&str> = items_of_keyword(map, "required").filter_map(Value::as_str).collect();
    if !SAY_MORE.iter().any(|key| map.has(key)) {
        return names;
    }
    names.extend(items_of_keyword(map, "allOf").flat_map(certain));
    for key in ["anyOf", "oneOf"] {
        names.extend(intersect_names(items_of_keyword(map, key).map(certain)));
    }
    if draft.knows("if")
        && let (Some(then), Some(otherwise)) = (map.find_key("then"), map.find_key("else"))
        && let Some(holds) = map.find_key("if")
    {
        let mut then = certain(then);
        then.extend(certain(holds));
        names.extend(intersect_names([then, certain(otherwise)].into_iter()));
    }
    names.extend(intersect_names(list_enumerated_objects(map, draft).map(keys_of_object)));
    let rules = list_dependency_rules(schema, draft);
    let mut waiting: Vec<&str> = names.iter().copied().collect();
    loop {
        while let Some(name) = waiting.pop() {
            for needed in rules.iter().filter_map(|rules| rules.find_key(name)) {
                let needed = match needed {
                    Value::Array(needed) => needed.iter().filter_map(Value::as_str).collect(),
                    needed => certain(needed),
                };
                waiting.extend(needed.into_iter().filter(|name| names.insert(name)));
            }
        }
        if read_min_properties(schema)
            >= list_possible_properties(schema, draft).map_or(u64::MAX, |places| places.len() as u64)
        {
            let all = list_possible_properties(schema, draft).into_iter().flatten();
            waiting.extend(all.filter(|name| names.insert(name)));
        }
        if waiting.is_empty() {
            return names;
        }
    }
}

/// What all of some sets have; nothing where there is none.
fn intersect_names<'v>(mut sets: impl Iterator<Item = BTreeSet<&'v str>>) -> BTreeSet<&'v str> {
    let first = sets.next().unwrap_or_default();
    sets.fold(first, |all, set| all.intersection(&set).copied().collect())
}

/// The objects that `enum` and `const` list.
fn list_enumerated_objects(map: &Map<String, Value>, draft: SchemaDraft) -> impl Iterator<Item = &Value> {
    items_of_keyword(map, "enum")
        .chain(map.find_key("const").filter(move |_| draft.knows("const")))
        .filter(|value| value.is_object())
}

fn keys_of_object(value: &Value) -> BTreeSet<&str> {
    value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// What says what has to be there because something else is.
fn list_dependency_rules(schema: &Value, draft: SchemaDraft) -> Vec<&Map<String, Value>> {
    let Value::Object(map) = schema else { return Vec::new() };
    let keys = ["dependencies", "dependentRequired", "dependentSchemas"];
    let own =
        keys.into_iter().filter(|key| draft.knows(key)).filter_map(|key| map.find_key(key)?.as_object());
    own.chain(items_of_keyword(map, "allOf").flat_map(|branch| list_dependency_rules(branch, draft)))
        .collect()
}

/// How many properties an object has at least.
pub(crate) fn read_min_properties(schema: &Value) -> u64 {
    let Value::Object(map) = schema else { return 0 };
    let own = map.find_key("minProperties").and_then(Value::as_u64).unwrap_or_default();
    items_of_keyword(map, "allOf").map(read_min_properties).fold(own, u64::max)
}

/// The properties that an object can have, where these can be listed.
pub(crate) fn list_possible_properties(schema: &Value, draft: SchemaDraft) -> Option<Vec<&str>> {
    let Value::Object(map) = schema else { return None };
    let by_pattern =
        map.find_key("patternProperties").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    if map.find_key("additionalProperties") != Some(&Value::Bool(false)) || by_pattern {
        return items_of_keyword(map, "allOf").find_map(|branch| list_possible_properties(branch, draft));
    }
    let named = map.find_key("properties").and_then(Value::as_object)?;
    let said = |name: &str| in_any_case(schema, name, Kinds::OBJECTS, draft);
    let can_be = |name: &&str| !said(name).contains(&&Value::Bool(false));
    Some(named.keys().map(String::as_str).filter(can_be).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use crate::model::{FieldPath, Schema};

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

    /// What follows on a property is looked at once, however deep it stands and in whatever order.
    #[test]
    fn long_chains_of_dependencies() {
        let mut deep = json!({"required": ["plan"]});
        for _ in 0..60 {
            deep = json!({"required": ["goal"], "dependencies": {"goal": deep}});
        }
        assert!(has_plan(json!({"dependencies": deep["dependencies"]})));
        let link = |at: usize| (format!("p{at}"), json!([format!("p{}", at + 1)]));
        let mut chain: Map<String, Value> = (0..2000).rev().map(link).collect();
        chain.insert("goal".to_owned(), json!(["p0"]));
        chain.insert("p2000".to_owned(), json!(["plan"]));
        assert!(has_plan(json!({"dependencies": chain})));
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
            json!({"$schema": "http://json-schema.org/draft-06/schema#", "if": {"required": ["other"]},
                "then": {"required": ["plan"]}, "else": {"required": ["plan"]}}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "const": {"goal": "x", "plan": "y"}}),
        ] {
            assert!(!has_plan(beside.clone()), "{beside}");
        }
    }
}
