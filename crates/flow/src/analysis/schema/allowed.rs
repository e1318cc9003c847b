//! What answers a JSON Schema allows, as far as that is certain without trying them.
//!
//! Everything here errs on one side: of what [`can_be`] excludes nothing fits; where [`explain_impossible_schema`] names a reason,
//! nothing fits at all. Combined schemas are followed as far as that holds.

mod bounds;
mod lists;
mod objects;
mod texts;

use std::cmp::Ordering;

use crate::model::schema::{KeyLookup, Kinds, SchemaDraft, items_of_keyword};
use serde_json::{Map, Value};

use crate::analysis::schema::fit::accepts_every_value_of_kinds;
use crate::analysis::schema::listed_values::list_allowed_values;

/// The kinds of values that `type` tells apart. Every integer is a number.
const KINDS: [&str; 6] = ["null", "boolean", "string", "number", "array", "object"];

/// The kinds that `type` names.
pub(crate) fn written_kinds(map: &Map<String, Value>) -> Option<Vec<&str>> {
    match map.find_key("type")? {
        Value::String(kind) => Some(vec![kind]),
        Value::Array(kinds) => kinds.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// Which of some kinds of values may fit a schema.
pub(crate) fn can_be(schema: &Value, kinds: &[&str]) -> bool {
    let Value::Object(map) = schema else { return *schema != Value::Bool(false) };
    let named = written_kinds(map).is_none_or(|named| {
        named.iter().any(|kind| kinds.contains(kind) || (*kind == "integer" && kinds.contains(&"number")))
    });
    let one_of = |key: &str| !map.has(key) || items_of_keyword(map, key).any(|branch| can_be(branch, kinds));
    named
        && items_of_keyword(map, "allOf").all(|branch| can_be(branch, kinds))
        && one_of("anyOf")
        && one_of("oneOf")
}

/// Where a schema, in which everything else hangs, admits nothing, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImpossiblePart {
    /// The part that admits nothing, as a pointer into the schema; empty for the schema itself.
    pub pointer: String,
    /// Why, as the second half of a sentence.
    pub why: String,
}

/// Why no object fits a schema, where that is certain.
pub(crate) fn explain_impossible_schema(schema: &Value) -> Option<ImpossiblePart> {
    if let Value::Object(map) = schema
        && !can_be(schema, &["object"])
    {
        let kinds = written_kinds(map).unwrap_or_default().join("`, `");
        let why = match kinds.is_empty() {
            true => "allows no object, and every answer is one".to_owned(),
            false => format!("is of type `{kinds}`, and every answer is an object"),
        };
        return Some(ImpossiblePart { pointer: String::new(), why });
    }
    of_kinds(schema, Kinds::OBJECTS, "", SchemaDraft::of(schema))
}

/// Why no value at all fits a schema.
fn admits_nothing(schema: &Value, pointer: &str, draft: SchemaDraft) -> Option<ImpossiblePart> {
    of_kinds(schema, Kinds::ALL, pointer, draft)
}

/// Why no value of some kinds fits a schema.
fn of_kinds(schema: &Value, kinds: Kinds, pointer: &str, draft: SchemaDraft) -> Option<ImpossiblePart> {
    let fault = |why: &str| Some(ImpossiblePart { pointer: pointer.to_owned(), why: why.to_owned() });
    let map = match schema {
        Value::Bool(false) => return fault("is `false`, which no value fits"),
        Value::Object(map) => map,
        _ => return None,
    };
    let own = Kinds::of(schema);
    let apart = || {
        fault(match own == Kinds::NONE {
            true => "asks for types that exclude each other",
            false => "allows none of the types that what stands beside it leaves",
        })
    };
    // What says no more than a type refuses nothing of that type.
    if map.keys().all(|key| ["type", "title", "description"].contains(&key.as_str())) {
        return if own.meet(kinds) { None } else { apart() };
    }
    if map.find_key("not").is_some_and(|part| accepts_every_value_of_kinds(part, Kinds::ALL)) {
        return fault("has a `not` that excludes every value");
    }
    if let Some(values) = list_allowed_values(schema, draft) {
        let lists = |key: &str| map.find_key(key).and_then(Value::as_array).is_some_and(Vec::is_empty);
        return match values.is_empty() {
            true if lists("enum") => fault("has an empty `enum`"),
            true if map.has("enum") => fault("refuses every value of its own `enum`"),
            true if map.has("const") => fault("refuses its own `const`"),
            true if by_type(schema, map, pointer, draft).is_some() => by_type(schema, map, pointer, draft),
            true => fault("refuses every value that its parts list"),
            false => None,
        };
    }
    if !own.meet(kinds) {
        return apart();
    }
    let kinds = own.and(kinds);
    let mut all = items_of_keyword(map, "allOf").enumerate();
    if let Some(found) =
        all.find_map(|(at, part)| of_kinds(part, kinds, &format!("{pointer}/allOf/{at}"), draft))
    {
        return Some(found);
    }
    if let Some(found) =
        ["anyOf", "oneOf"].into_iter().find_map(|key| of_branches(map, key, kinds, pointer, draft))
    {
        return Some(found);
    }
    let written = written_kinds(map).unwrap_or_else(|| KINDS.to_vec());
    let left = written.into_iter().filter(|kind| kinds.meet(Kinds::named(&(*kind).into())));
    let found: Option<Vec<_>> = left.map(|kind| of_kind(schema, map, kind, pointer, draft)).collect();
    found.and_then(|found| found.into_iter().next())
}

/// Why no value of some kinds fits a branch of an `anyOf` or a `oneOf`: why none fits the first one.
fn of_branches(
    map: &Map<String, Value>,
    key: &str,
    kinds: Kinds,
    pointer: &str,
    draft: SchemaDraft,
) -> Option<ImpossiblePart> {
    let parts: Vec<&Value> = items_of_keyword(map, key).collect();
    let is_twice =
        |part: &Value| key == "oneOf" && parts.iter().filter(|other| **other == part).nth(1).is_some();
    let found: Option<Vec<_>> = parts
        .iter()
        .enumerate()
        .map(|(at, part)| {
            let pointer = format!("{pointer}/{key}/{at}");
            // All parts are compared with one that something may fit only.
            of_kinds(part, kinds, &pointer, draft).or_else(|| {
                let why = "stands in its `oneOf` twice, of which just one part may fit";
                is_twice(part).then(|| ImpossiblePart { pointer, why: why.to_owned() })
            })
        })
        .collect();
    found.and_then(|found| found.into_iter().next())
}

/// Why no value fits a schema of one kind.
fn by_type(
    schema: &Value,
    map: &Map<String, Value>,
    pointer: &str,
    draft: SchemaDraft,
) -> Option<ImpossiblePart> {
    let kinds = written_kinds(map)?;
    let only = kinds.first().filter(|_| kinds.len() == 1)?;
    of_kind(schema, map, only, pointer, draft)
}

/// Why no value of one kind fits what a schema says about that kind.
fn of_kind(
    schema: &Value,
    map: &Map<String, Value>,
    kind: &str,
    pointer: &str,
    draft: SchemaDraft,
) -> Option<ImpossiblePart> {
    let fault = |why: String| Some(ImpossiblePart { pointer: pointer.to_owned(), why });
    if map.find_key("not").is_some_and(|part| accepts_every_value_of_kinds(part, Kinds::named(&kind.into())))
    {
        return fault(format!("has a `not` that excludes every value of type `{kind}`"));
    }
    let held = |low: &str, high: &str, faulty: &[Ordering]| {
        let (least, most) = (map.find_key(low)?, map.find_key(high)?);
        let order = bounds::compare_numbers(least, most)?;
        faulty.contains(&order).then(|| format!("has `{low}` {least} and `{high}` {most}"))
    };
    let crossed = |low: &str, high: &str| held(low, high, &[Ordering::Greater]);
    let met = |low: &str, high: &str| held(low, high, &[Ordering::Greater, Ordering::Equal]);
    match kind {
        "string" => {
            crossed("minLength", "maxLength").or_else(|| texts::explain_length_conflict(map)).and_then(fault)
        }
        "number" | "integer" => crossed("minimum", "maximum")
            .or_else(|| met("exclusiveMinimum", "maximum"))
            .or_else(|| met("minimum", "exclusiveMaximum"))
            .or_else(|| met("exclusiveMinimum", "exclusiveMaximum"))
            .or_else(|| bounds::explain_empty_range(map, kind == "integer"))
            .and_then(fault),
        "array" => {
            crossed("minItems", "maxItems").and_then(fault).or_else(|| lists::of_list(map, pointer, draft))
        }
        "object" => objects::of_object(schema, map, pointer, draft),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::explain_impossible_schema;
    use serde_json::{Value, json};

    #[test]
    fn says_why_nothing_fits() {
        let object = |rest: Value| {
            let mut schema = json!({"type": "object", "required": ["a"], "additionalProperties": false,
                "properties": {"a": rest}});
            schema["properties"]["b"] = json!({"enum": []});
            schema
        };
        let table = [
            (json!({"type": "integer", "enum": ["x"]}), "refuses every value of its own `enum`"),
            (json!({"enum": []}), "has an empty `enum`"),
            (
                json!({"type": "string", "minLength": 5, "maxLength": 2}),
                "has `minLength` 5 and `maxLength` 2",
            ),
            (json!({"type": "string", "const": 5}), "refuses its own `const`"),
            (json!({"enum": ["x"], "pattern": "^zzz$"}), "refuses every value of its own `enum`"),
            (json!({"not": {}}), "has a `not` that excludes every value"),
            (json!(false), "is `false`, which no value fits"),
            (
                json!({"type": "integer", "exclusiveMinimum": 3, "maximum": 3}),
                "has `exclusiveMinimum` 3 and `maximum` 3",
            ),
            (json!({"type": "array", "minItems": 3, "maxItems": 1}), "has `minItems` 3 and `maxItems` 1"),
            (
                json!({"type": "object", "maxProperties": 1, "required": ["x", "y"]}),
                "requires 2 properties and allows 1",
            ),
            (
                json!({"type": "object", "required": ["why"], "additionalProperties": false, "properties": {"x": {}}}),
                "requires `why`, which is none of the `properties` that it allows",
            ),
            (
                json!({"type": "integer", "minimum": 1.2, "maximum": 1.8}),
                "has no whole number from `minimum` 1.2 to `maximum` 1.8",
            ),
            (
                json!({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}),
                "has no whole number from above `exclusiveMinimum` 1 to below `exclusiveMaximum` 2",
            ),
            (
                json!({"type": "integer", "exclusiveMinimum": 9_007_199_254_740_993_u64, "maximum": 9_007_199_254_740_993_u64}),
                "has `exclusiveMinimum` 9007199254740993 and `maximum` 9007199254740993",
            ),
            (
                json!({"type": "integer", "exclusiveMinimum": 9_007_199_254_740_992_u64, "exclusiveMaximum": 9_007_199_254_740_993_u64}),
                "has no whole number from above `exclusiveMinimum` 9007199254740992 to below `exclusiveMaximum` 9007199254740993",
            ),
            (
                json!({"type": "integer", "minimum": 1, "maximum": 4, "multipleOf": 5}),
                "has no multiple of 5 from `minimum` 1 to `maximum` 4",
            ),
            (
                json!({"type": "number", "minimum": 0.1, "maximum": 0.4, "multipleOf": 0.5}),
                "has no multiple of 0.5 from `minimum` 0.1 to `maximum` 0.4",
            ),
            (
                json!({"type": "object", "required": ["why"], "propertyNames": {"maxLength": 2}}),
                "requires `why`, which its `propertyNames` refuses",
            ),
            (
                json!({"type": "string", "pattern": "^abc$", "minLength": 5}),
                "has `pattern` `^abc$`, which takes 3 characters, and `minLength` 5",
            ),
            (
                json!({"type": "string", "pattern": "^abc$", "maxLength": 2}),
                "has `pattern` `^abc$`, which takes 3 characters, and `maxLength` 2",
            ),
            (json!({"anyOf": [false, {"enum": []}]}), "refuses every value that its parts list"),
            (
                json!({"type": "string", "pattern": "^[a-z]{3}$", "maxLength": 2}),
                "has `pattern` `^[a-z]{3}$`, which takes 3 characters, and `maxLength` 2",
            ),
            (
                json!({"type": "string", "pattern": "PROJ-[0-9]+", "maxLength": 5}),
                "has `pattern` `PROJ-[0-9]+`, which takes at least 6 characters, and `maxLength` 5",
            ),
            (
                json!({"allOf": [{"type": "string"}, {"type": "number"}]}),
                "asks for types that exclude each other",
            ),
            (
                json!({"type": "string", "anyOf": [{"type": "number"}, {"minLength": 2, "maxLength": 1}]}),
                "allows none of the types that what stands beside it leaves",
            ),
            (
                json!({"oneOf": [{"type": "string"}, {"type": "string"}]}),
                "stands in its `oneOf` twice, of which just one part may fit",
            ),
            (
                json!({"type": "array", "uniqueItems": true, "minItems": 3, "items": {"type": "boolean"}}),
                "needs 3 items that differ, and allows 2 different ones",
            ),
            (
                json!({"type": "array", "contains": {"const": "x"}, "items": {"type": "number"}}),
                "has a `contains` that no item fits which it allows",
            ),
            (
                json!({"type": "array", "contains": {}, "maxItems": 0}),
                "asks for 1 items by its `contains`, and has `maxItems` 0",
            ),
            (
                json!({"type": "array", "minItems": 2, "prefixItems": [{}, {"enum": []}]}),
                "has an empty `enum`",
            ),
            (
                json!({"type": "array", "minItems": 3, "prefixItems": [{}, {}], "items": false}),
                "is `false`, which no value fits",
            ),
            (
                json!({"type": "object", "required": ["x"], "properties": {"x": {}, "y": {}},
                    "dependencies": {"x": ["z"]}, "additionalProperties": false}),
                "requires `z`, which is none of the `properties` that it allows",
            ),
            (
                json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}},
                    "patternProperties": {"^x": {"type": "null"}}}),
                "requires `x`, and no value fits all that it says of that",
            ),
        ];
        for (inner, why) in table {
            let found = explain_impossible_schema(&object(inner.clone()))
                .unwrap_or_else(|| panic!("{inner} is possible"));
            assert!(found.pointer.starts_with("/properties/a"), "{inner}: {}", found.pointer);
            assert_eq!(found.why, why, "{inner}");
        }
        let list = explain_impossible_schema(&json!({"type": "array"})).expect("no object is a list");
        assert_eq!(
            (list.pointer.as_str(), list.why.as_str()),
            ("", "is of type `array`, and every answer is an object")
        );
    }

    /// Beside a closed object of four properties, two of them required.
    fn beside(rest: Value) -> Value {
        let mut schema = json!({"type": "object", "required": ["plan", "next"], "additionalProperties": false,
            "properties": {"plan": {"type": "string"}, "goal": {"type": "string"}, "why": {},
                "next": {"type": "object", "required": ["action"], "properties": {"action": {"enum": ["a", "b"]}}}}});
        schema.as_object_mut().expect("one").extend(rest.as_object().expect("one").clone());
        schema
    }

    #[test]
    fn what_is_combined_with_the_rest_may_bar_all_of_it() {
        let action =
            |values: Value| json!({"properties": {"next": {"properties": {"action": {"enum": values}}}}});
        for (rest, why) in [
            (
                json!({"not": {"required": ["plan"]}}),
                "has a `not` that excludes every object which fits the rest",
            ),
            (json!({"not": {"required": ["plan", "next"]}}), "has a `not`"),
            (json!({"not": {"minProperties": 2}}), "has a `not`"),
            (json!({"not": {"maxProperties": 4}}), "has a `not`"),
            (json!({"not": {"properties": {"plan": {"type": ["string", "null"]}}}}), "has a `not`"),
            (json!({"not": action(json!(["a", "b", "c"]))}), "has a `not`"),
            (json!({"not": {"propertyNames": {"maxLength": 4}}}), "has a `not`"),
            (json!({"required": ["plan", "goal"], "not": {"required": ["plan", "goal"]}}), "has a `not`"),
            (json!({"dependencies": {"plan": ["goal"]}, "not": {"required": ["goal"]}}), "has a `not`"),
            (json!({"oneOf": [{"minProperties": 5}]}), "has a `oneOf` of which never just one part"),
            (json!({"oneOf": [{"required": ["plan"]}, {"required": ["next"]}]}), "has a `oneOf`"),
            (
                json!({"anyOf": [{"required": ["other"]}, {"maxProperties": 1}]}),
                "has an `anyOf` of which no part",
            ),
            (json!({"allOf": [{"not": {"required": ["plan"]}}]}), "has an `allOf` with a part"),
            (json!({"allOf": [action(json!(["c"]))]}), "requires `next`, and no value fits all"),
            (json!({"if": {"required": ["plan"]}, "then": {"required": ["other"]}}), "has an `if`"),
        ] {
            let found = explain_impossible_schema(&beside(rest.clone()))
                .unwrap_or_else(|| panic!("{rest} is possible"));
            assert!(found.why.starts_with(why), "{rest}: {}", found.why);
            assert!(!jsonschema::is_valid(
                &beside(rest),
                &json!({"plan": "x", "goal": "x", "next": {"action": "a"}})
            ));
        }
        let text =
            json!({"required": ["x"], "properties": {"x": {"type": "string", "not": {"type": "string"}}}});
        assert_eq!(
            explain_impossible_schema(&text).expect("it is").why,
            "has a `not` that excludes every value of type `string`"
        );
    }

    #[test]
    fn what_leaves_something_of_the_rest() {
        for rest in [
            json!({"not": {"required": ["goal"]}}),
            json!({"not": {"minProperties": 3}}),
            json!({"not": {"properties": {"goal": {"type": "string"}}, "required": ["goal"]}}),
            json!({"not": {"properties": {"plan": {"type": "string", "minLength": 1}}}}),
            json!({"not": {"properties": {"next": {"properties": {"action": {"enum": ["a"]}}}}}}),
            json!({"oneOf": [{"minProperties": 4}, {"required": ["goal"]}]}),
            json!({"anyOf": [{"required": ["other"]}, {"required": ["why"]}]}),
            json!({"if": {"required": ["goal"]}, "then": {"required": ["other"]}}),
            json!({"additionalProperties": true, "anyOf": [{"minProperties": 5}]}),
        ] {
            assert_eq!(explain_impossible_schema(&beside(rest.clone())), None, "{rest}");
        }
    }

    #[test]
    fn what_may_fit_is_not_called_impossible() {
        let range = |inner: Value| json!({"required": ["x"], "properties": {"x": inner}});
        let table = [
            json!({"type": "object", "required": ["x"]}),
            json!({"type": "object", "required": ["x"], "additionalProperties": false, "patternProperties": {"^x": {}}}),
            json!({"type": "object", "additionalProperties": false, "properties": {"x": {"enum": []}}}),
            json!({"type": ["array", "object"], "minItems": 2, "maxItems": 1}),
            json!({"anyOf": [{"enum": []}, {"type": "object"}]}),
            json!({"minLength": 5, "maxLength": 2}),
            range(json!({"type": "integer", "minimum": 1.2, "maximum": 2})),
            range(json!({"type": "number", "minimum": 1.2, "maximum": 1.8})),
            range(json!({"type": "number", "minimum": 0.3, "maximum": 0.3, "multipleOf": 0.1})),
            range(json!({"type": "integer", "minimum": -3, "maximum": 1, "multipleOf": 5})),
            range(
                json!({"type": "integer", "exclusiveMinimum": 9_007_199_254_740_992_u64, "maximum": 9_007_199_254_740_993_u64}),
            ),
            range(
                json!({"type": "number", "exclusiveMinimum": 9_007_199_254_740_992.0, "maximum": 9_007_199_254_740_993_u64}),
            ),
            range(json!({"type": "integer", "minimum": u64::MAX - 1, "maximum": u64::MAX, "multipleOf": 3})),
            range(json!({"type": ["integer", "null"], "minimum": 1.2, "maximum": 1.8})),
            range(json!({"type": "string", "pattern": "^(?=a).c$", "minLength": 5, "maxLength": 9})),
            range(json!({"type": "string", "pattern": "^abc", "minLength": 5})),
            range(json!({"type": "string", "pattern": "^(a|bcd)$", "minLength": 3, "maxLength": 3})),
            range(json!({"type": "array", "minContains": 0, "contains": {"const": "x"}, "maxItems": 0})),
            range(json!({"type": "array", "minItems": 1, "prefixItems": [{}, {"enum": []}]})),
            range(json!({"type": "array", "uniqueItems": true, "minItems": 2, "items": {"type": "boolean"}})),
            range(json!({"type": "array", "contains": {"const": 1}, "items": {"type": "number"}})),
            range(json!({"oneOf": [{"type": "string"}, {"type": "string"}, {"type": "null"}]})),
            json!({"required": ["x"], "propertyNames": {"maxLength": 2}}),
            json!({"required": ["x"], "properties": {"x": {"minLength": 5, "maxLength": 2}}}),
            json!(true),
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "required": ["x"], "propertyNames": {"enum": ["a"]}}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "required": ["x"],
                "properties": {"x": {"type": "string", "const": 5}}}),
        ];
        for schema in table {
            assert_eq!(explain_impossible_schema(&schema), None, "{schema}");
        }
    }
}
