//! Giving up is always allowed: the schema that an agent is sent takes `abort` wherever answers say what they decide.

use std::borrow::Cow;

use cuegate_flow::model::{FieldPath, KeyLookup, Schema};
use serde_json::{Map, Value, json};

use super::answer::{find_at_pointer, find_at_pointer_mut};
use crate::climpt::kinds::Intent;

/// Keywords by which a schema says of a whole value what its `properties` do not.
const AROUND: [&str; 11] = [
    "enum",
    "const",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
];

/// Whether it is certain that no answer which fits gives up at a place, because of what is said around it: an `oneOf` of
/// answers, an `else` by which only another one is left, an `enum` of whole answers.
pub(crate) fn bars_abort(schema: &Schema, pointer: &str) -> bool {
    let Some(names) = property_names_of_pointer(pointer).filter(|names| has_around(schema.value(), names))
    else {
        return false;
    };
    let path = FieldPath::parse(&names.join(".")).filter(|path| path.segments().len() == names.len());
    let bars = |path: &FieldPath| match schema.values_at(path) {
        Some(values) => !values.contains(&build_abort_value()),
        None => !schema.can_read(path, Intent::Abort.as_str()),
    };
    path.is_some_and(|path| !schema.says_only_at(&path) && bars(&path))
}

/// Lets what is said around a place hold of all other answers.
pub(crate) fn excuse_abort(schema: &mut Value, pointer: &str) {
    let names = property_names_of_pointer(pointer).unwrap_or_default();
    exempt_abort_answers(schema, &names.iter().map(Cow::as_ref).collect::<Vec<_>>());
}

fn build_abort_value() -> Value {
    Value::from(Intent::Abort.as_str())
}

/// Adds `abort` to the values that a place lists.
pub(crate) fn list_abort(schema: &mut Value, pointer: &str) {
    // A draft that does not know `const` lists nothing with it.
    let lists =
        find_at_pointer(schema, pointer).is_some_and(|place| Schema::values_of(schema, place).is_some());
    let Some(Value::Object(place)) = find_at_pointer_mut(schema, pointer).filter(|_| lists) else { return };
    if let Some(only) = place.remove("const") {
        place.insert("enum".to_owned(), Value::Array(vec![only]));
    }
    if let Some(Value::Array(values)) = place.get_mut("enum")
        && !values.contains(&build_abort_value())
    {
        values.push(build_abort_value());
    }
}

/// The names of properties that a pointer leads through; `None` where it leads through anything else.
fn property_names_of_pointer(pointer: &str) -> Option<Vec<Cow<'_, str>>> {
    let mut parts = pointer.split('/').skip(1);
    let mut found = Vec::new();
    while let Some(part) = parts.next() {
        if part != "properties" {
            return None;
        }
        let part = parts.next()?;
        found.push(match part.contains('~') {
            true => Cow::Owned(part.replace("~1", "/").replace("~0", "~")),
            false => Cow::Borrowed(part),
        });
    }
    (!found.is_empty()).then_some(found)
}

/// Whether anything but `properties` is said of any of the objects on the way.
fn has_around(schema: &Value, names: &[Cow<'_, str>]) -> bool {
    let mut at = Some(schema);
    names.iter().any(|name| {
        let here = at.and_then(Value::as_object);
        at = here.and_then(|here| here.find_key("properties")?.find_key(name));
        here.is_some_and(|here| here.keys().any(|key| AROUND.contains(&key.as_str())))
    })
}

/// Lets what is said around hold of answers that do not give up.
fn exempt_abort_answers(schema: &mut Value, names: &[&str]) {
    let (Value::Object(map), Some((name, rest))) = (schema, names.split_first()) else { return };
    if let Some(inner) = map.get_mut("properties").and_then(|named| named.get_mut(*name)) {
        exempt_abort_answers(inner, rest);
    }
    let around: Map<String, Value> =
        AROUND.iter().filter_map(|key| Some(((*key).to_owned(), map.remove(*key)?))).collect();
    if !around.is_empty() {
        let gives_up = names.iter().rev().fold(
            // Every draft knows `enum`.
            json!({"enum": [build_abort_value()]}),
            |inner, name| json!({"type": "object", "required": [name], "properties": {*name: inner}}),
        );
        map.insert("anyOf".to_owned(), json!([gives_up, around]));
    }
}

#[cfg(test)]
mod tests {
    use super::{bars_abort, excuse_abort, list_abort};
    use cuegate_flow::model::Schema;
    use serde_json::{Value, json};

    const PLACE: &str = "/properties/next/properties/action";

    fn allow_abort(schema: &mut Value, place: &str) {
        list_abort(schema, place);
        if bars_abort(&Schema::new(schema.clone()).unwrap(), place) {
            excuse_abort(schema, place);
        }
    }

    /// Answers that decide this, and that may say why.
    fn answer(action: &str, why: Option<&str>) -> Value {
        json!({"next": {"action": action, "why": why.unwrap_or_default()}})
    }

    fn allowed(around: Value, whole: Value) -> Value {
        let mut next = json!({
            "type": "object", "required": ["action"], "additionalProperties": false,
            "properties": {"action": {"enum": ["on", "again"]}, "why": {"type": "string"}},
        });
        next.as_object_mut().unwrap().extend(around.as_object().cloned().unwrap());
        let mut schema = json!({"type": "object", "required": ["next"], "properties": {"next": next}});
        schema.as_object_mut().unwrap().extend(whole.as_object().cloned().unwrap());
        allow_abort(&mut schema, PLACE);
        schema
    }

    fn fits(schema: &Value, answer: &Value) -> bool {
        Schema::new(schema.clone()).unwrap().problems(answer).is_empty()
    }

    /// What is said around: of `next`, of the whole.
    fn said_around() -> Vec<(Value, Value)> {
        let is = |action: &str| json!({"properties": {"action": {"const": action}}});
        let why = json!({"properties": {"why": {"minLength": 1}}});
        let again = json!({"properties": {"action": {"const": "again"}, "why": {"minLength": 1}}});
        let cases = json!([answer("on", None), answer("again", Some("x"))]);
        vec![
            (json!({"oneOf": [is("on"), again]}), json!({})),
            (json!({"anyOf": [is("on"), again]}), json!({})),
            (json!({"if": is("on"), "else": again}), json!({})),
            (json!({"allOf": [{"if": {"not": is("on")}, "then": again}]}), json!({})),
            (json!({"if": is("again"), "then": why, "else": is("on")}), json!({})),
            (
                json!({}),
                json!({"oneOf": [{"properties": {"next": is("on")}}, {"properties": {"next": again}}]}),
            ),
            (json!({"oneOf": [is("on"), again]}), json!({"not": {"properties": {"next": is("abort")}}})),
            (json!({}), json!({ "enum": cases })),
        ]
    }

    /// Those that know `const` and `if`.
    const DRAFTS: [&str; 3] = [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ];

    #[test]
    fn what_is_said_around_holds_of_all_other_answers() {
        let cases = said_around().into_iter().flat_map(|case| DRAFTS.map(|draft| (draft, case.clone())));
        for (draft, (around, mut whole)) in cases {
            whole["$schema"] = draft.into();
            let schema = allowed(around, whole);
            let takes = |answer: &Value| fits(&schema, answer);
            assert!(takes(&answer("abort", Some("it cannot be done"))), "{schema}");
            assert!(takes(&answer("on", None)) && takes(&answer("again", Some("x"))), "{schema}");
            assert!(!takes(&answer("again", None)), "it has to say why: {schema}");
            assert!(!takes(&answer("other", None)) && !takes(&json!({"next": {"action": 7}})), "{schema}");
            assert!(!takes(&json!({"next": {"action": "abort", "more": 1}})), "it stays closed: {schema}");
        }
    }

    #[test]
    fn the_oldest_drafts_know_no_const() {
        let is = |action: &str, least: u32| json!({"properties": {"action": {"enum": [action]}, "why": {"minLength": least}}});
        for draft in ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#"] {
            let schema = allowed(json!({"oneOf": [is("on", 3), is("again", 1)]}), json!({"$schema": draft}));
            assert!(fits(&schema, &answer("abort", None)), "{schema}");
            assert!(fits(&schema, &answer("on", Some("xyz"))) && fits(&schema, &answer("again", Some("x"))));
            assert!(!fits(&schema, &answer("on", Some("x"))), "it still has to say why: {schema}");
        }
    }

    #[test]
    fn what_does_not_bar_it_stays_as_it_is_written() {
        let again = json!({"properties": {"action": {"const": "again"}}});
        let around = json!({"if": again, "then": {"properties": {"why": {"minLength": 1}}}});
        let schema = allowed(around.clone(), json!({}));
        assert_eq!(schema["properties"]["next"]["if"], around["if"]);
        assert!(schema.pointer("/properties/next/anyOf").is_none());
        assert!(fits(&schema, &answer("abort", None)) && !fits(&schema, &answer("again", None)));
    }

    #[test]
    fn words_may_stand_in_the_parts_alone() {
        let is = |action: &str| json!({"required": ["action"], "properties": {"action": {"const": action}}});
        let mut schema = json!({"type": "object", "properties": {"next": {"type": "object", "oneOf": [is("on"), is("again")]}}});
        allow_abort(&mut schema, PLACE);
        assert!(fits(&schema, &answer("abort", None)) && fits(&schema, &answer("again", None)));
        assert!(!fits(&schema, &answer("other", None)));
    }
}
