//! What every answer that fits a schema has, as far as that is certain without trying them.

use crate::model::schema::{
    KeyLookup, Kinds, SchemaDraft, constraints_of_segment, find_nested_value, in_any_case,
    list_enumerated_values,
};
use serde_json::{Map, Value};

use crate::Str;
use crate::analysis::schema::allowed::written_kinds;
use crate::analysis::schema::listed_values::list_allowed_values;
use crate::analysis::schema::required_fields::names_required;
use crate::model::schema::items_of_keyword;

/// Whether every answer that fits has a value at a path, `null` included. An answer is an object.
pub(crate) fn is_value_required(schema: &Value, path: &[Str]) -> bool {
    is_value_guaranteed(schema, path, Kinds::OBJECTS, SchemaDraft::of(schema))
}

/// Whether no answer that fits has `null` at a path. It may have nothing there.
pub(crate) fn refuses_null(schema: &Value, path: &[Str]) -> bool {
    is_null_refused(schema, path, Kinds::OBJECTS, SchemaDraft::of(schema))
}

/// Whether nothing that fits and is of one of some kinds has `null` at a path.
fn is_null_refused(schema: &Value, path: &[Str], kinds: Kinds, draft: SchemaDraft) -> bool {
    let Some((first, rest)) = path.split_first() else { return !takes_null(schema, draft) };
    let Value::Object(map) = schema else { return *schema == Value::Bool(false) };
    let kinds = kinds.and(Kinds::of(schema));
    if list_enumerated_values(map, kinds, draft)
        .is_some_and(|all| all.iter().all(|value| !has_null(value, path)))
    {
        return true;
    }
    let places = constraints_of_segment(map, first, kinds, draft);
    let refuses_there = |inner: &&Value| is_null_refused(inner, rest, Kinds::ALL, draft);
    places.iter().all(|place| place.schemas.iter().any(refuses_there))
        || items_of_keyword(map, "allOf").any(|branch| is_null_refused(branch, path, kinds, draft))
        || matches_every_branch(map, |branch| is_null_refused(branch, path, kinds, draft))
}

fn has_null(value: &Value, path: &[Str]) -> bool {
    find_nested_value(value, path).is_some_and(Value::is_null)
}

/// Whether everything that fits and is of one of some kinds has a value at a path.
fn is_value_guaranteed(schema: &Value, path: &[Str], kinds: Kinds, draft: SchemaDraft) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    let Value::Object(map) = schema else { return *schema == Value::Bool(false) };
    let kinds = kinds.and(Kinds::of(schema));
    if list_enumerated_values(map, kinds, draft)
        .is_some_and(|all| all.iter().all(|value| find_nested_value(value, path).is_some()))
        || items_of_keyword(map, "allOf").any(|branch| is_value_guaranteed(branch, path, kinds, draft))
        || matches_every_branch(map, |branch| is_value_guaranteed(branch, path, kinds, draft))
    {
        return true;
    }
    let named = kinds == Kinds::OBJECTS && names_required(schema, first, draft);
    let numbered = kinds == Kinds::LISTS && holds_item(schema, first);
    if rest.is_empty() || !(named || numbered) {
        return named || numbered;
    }
    let inner = in_any_case(schema, first, kinds, draft);
    let kinds = inner.iter().map(|inner| Kinds::of(inner)).fold(Kinds::ALL, Kinds::and);
    inner.into_iter().any(|inner| is_value_guaranteed(inner, rest, kinds, draft))
}

/// Whether a list that fits has an item of this number, by how many it has at least.
fn holds_item(schema: &Value, number: &str) -> bool {
    number.parse::<u64>().is_ok_and(|number| number < least_items(schema))
}

fn least_items(schema: &Value) -> u64 {
    let Value::Object(map) = schema else { return 0 };
    let own = map.find_key("minItems").and_then(Value::as_u64).unwrap_or_default();
    items_of_keyword(map, "allOf").map(least_items).fold(own, u64::max)
}

/// Whether something holds of each branch of `anyOf`, or of `oneOf`.
fn matches_every_branch(map: &Map<String, Value>, holds: impl Fn(&Value) -> bool) -> bool {
    ["anyOf", "oneOf"].into_iter().any(|key| {
        let mut all = items_of_keyword(map, key).peekable();
        all.peek().is_some() && all.all(&holds)
    })
}

/// Whether `null` fits a schema.
fn takes_null(schema: &Value, draft: SchemaDraft) -> bool {
    let Value::Object(map) = schema else { return *schema != Value::Bool(false) };
    // Most schemas say so at once.
    if written_kinds(map).is_some_and(|kinds| !kinds.contains(&"null")) {
        return false;
    }
    if let Some(values) = list_allowed_values(schema, draft) {
        return values.contains(&Value::Null);
    }
    // A part that refers to the whole cannot be held against anything by itself.
    draft.compile(schema).is_none_or(|schema| schema.is_valid(&Value::Null))
}

#[cfg(test)]
mod tests {
    use super::{is_value_required, refuses_null};
    use crate::model::FieldPath;
    use serde_json::{Value, json};

    fn path(text: &str) -> FieldPath {
        FieldPath::parse(text).expect("a path")
    }

    #[test]
    fn what_every_branch_requires_is_required() {
        let requires = |schema: &Value, at: &str| is_value_required(schema, path(at).segments());
        let goal =
            json!({"type": "object", "required": ["goal"], "properties": {"goal": {"type": "string"}}});
        assert!(requires(&goal, "goal"));
        assert!(!requires(&goal, "other"));
        assert!(!requires(&goal, "goal.deeper"));
        assert!(requires(&json!({"anyOf": [goal, goal]}), "goal"));
        assert!(!requires(&json!({"anyOf": [goal, {"type": "object"}]}), "goal"));
        assert!(!requires(&json!({"anyOf": []}), "goal"));
        assert!(requires(&json!({"allOf": [{"minProperties": 1}, goal]}), "goal"));
        let apart = json!({"type": "object", "properties": {"goal": {}},
            "anyOf": [{"required": ["goal"]}, {"required": ["goal", "x"]}]});
        assert!(requires(&apart, "goal"));
        let open = json!({"required": ["goal"], "properties": {"goal": {}}});
        assert!(requires(&open, "goal"), "an answer is an object");
        let inner = json!({"required": ["a"], "properties": {"a": open}});
        assert!(!requires(&inner, "a.goal"), "`a` may be a text");
        let nested = json!({"type": "object", "required": ["a"], "properties": {"a": goal}});
        assert!(requires(&nested, "a.goal"));
    }

    #[test]
    fn a_list_has_as_many_items_as_it_has_to() {
        let list = |rest: Value| {
            let mut list = json!({"type": "array", "minItems": 2, "items": {"type": "string"}});
            list.as_object_mut().expect("one").extend(rest.as_object().expect("one").clone());
            json!({"required": ["list"], "properties": {"list": list}})
        };
        let holds = |rest: Value, at: &str| {
            let (schema, at) = (list(rest), path(at));
            (is_value_required(&schema, at.segments()), refuses_null(&schema, at.segments()))
        };
        assert_eq!(holds(json!({}), "list.1"), (true, true));
        assert_eq!(holds(json!({}), "list.2"), (false, true));
        assert_eq!(holds(json!({"items": {}}), "list.0"), (true, false));
        assert_eq!(holds(json!({"type": ["array", "null"]}), "list.0"), (false, true));
        assert_eq!(holds(json!({"prefixItems": [{"type": "integer"}], "items": {}}), "list.0"), (true, true));
        assert_eq!(holds(json!({"prefixItems": [{}]}), "list.0"), (true, false));
        assert_eq!(holds(json!({"prefixItems": [{}]}), "list.1"), (true, true), "the others have `items`");
    }

    #[test]
    fn null_counts_as_nothing_wherever_it_fits() {
        let refuses = |value: Value| {
            let schema = json!({"required": ["v"], "properties": {"v": value}});
            refuses_null(&schema, path("v").segments())
        };
        for value in [
            json!({"type": "string"}),
            json!({"enum": ["a", 1]}),
            json!({"const": false}),
            json!({"type": ["string", "integer"]}),
            json!({"anyOf": [{"type": "string"}, {"enum": [1]}]}),
            json!({"not": {"type": "null"}}),
            json!({"allOf": [{}, {"type": ["string", "null"]}, {"minLength": 1, "type": "string"}]}),
            json!({"type": ["string", "null"], "enum": ["a"]}),
        ] {
            assert!(refuses(value.clone()), "{value}");
        }
        for value in [
            json!({}),
            json!(true),
            json!({"type": ["string", "null"]}),
            json!({"enum": ["a", null]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"description": "anything"}),
            json!({"minLength": 3}),
            json!({"$ref": "#/nowhere"}),
        ] {
            assert!(!refuses(value.clone()), "{value}");
        }
        let of_branches = |one: Value, other: Value| {
            let branch = |value: Value| json!({"properties": {"v": value}});
            let schema = json!({"required": ["v"], "anyOf": [branch(one), branch(other)]});
            refuses_null(&schema, path("v").segments())
        };
        assert!(of_branches(json!({"type": "string"}), json!({"type": "integer"})));
        assert!(!of_branches(json!({"type": "string"}), json!({})));
        assert!(!refuses_null(&json!({"required": ["v"]}), path("v").segments()), "nothing is said of it");
    }
}
