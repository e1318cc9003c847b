//! What every answer that fits a schema has, as far as that is certain without trying them.

use crate::schema::{Draft, Look};
use serde_json::{Map, Value};

use crate::Str;
use crate::allowed::{branches, can_be, subschemas, written_kinds};
use crate::required::names_required;
use crate::values::listed;

/// Every kind of value but the one that has named fields.
const NO_OBJECTS: [&str; 5] = ["null", "boolean", "string", "number", "array"];

/// Every kind of value but the one that has numbered items.
const NO_LISTS: [&str; 5] = ["null", "boolean", "string", "number", "object"];

/// Whether every answer that fits has a value at a path, `null` included. An answer is an object.
pub(crate) fn requires(schema: &Value, path: &[Str]) -> bool {
    has(schema, path, true, Draft::of(schema))
}

/// Whether no answer that fits has `null` at a path. It may have nothing there.
pub(crate) fn refuses_null(schema: &Value, path: &[Str]) -> bool {
    refuses(schema, path, Draft::of(schema))
}

fn refuses(schema: &Value, path: &[Str], draft: Draft) -> bool {
    let Some((first, rest)) = path.split_first() else { return !takes_null(schema, draft) };
    let Value::Object(map) = schema else { return *schema == Value::Bool(false) };
    let inner = subschemas(schema, first).into_iter().chain(items(map, first));
    inner.into_iter().any(|inner| refuses(inner, rest, draft))
        || branches(map, "allOf").any(|branch| refuses(branch, path, draft))
        || every(map, |branch| refuses(branch, path, draft))
}

/// Whether everything that fits has a value at a path; it may be known to be an object.
fn has(schema: &Value, path: &[Str], is_object: bool, draft: Draft) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    let Value::Object(map) = schema else { return *schema == Value::Bool(false) };
    if branches(map, "allOf").any(|branch| has(branch, path, is_object, draft))
        || every(map, |branch| has(branch, path, is_object, draft))
    {
        return true;
    }
    let named = names_required(schema, first, draft) && (is_object || !can_be(schema, &NO_OBJECTS));
    let numbered = !is_object && holds_item(map, first) && !can_be(schema, &NO_LISTS);
    let inner = || subschemas(schema, first).into_iter().chain(items(map, first));
    (named || numbered) && (rest.is_empty() || inner().any(|inner| has(inner, rest, false, draft)))
}

/// Whether a list that fits has an item of this number, by how many it has at least.
fn holds_item(map: &Map<String, Value>, number: &str) -> bool {
    let least = map.look("minItems").and_then(Value::as_u64);
    number.parse::<u64>().is_ok_and(|number| least.is_some_and(|least| number < least))
}

/// What an item of this number has to fit. Where the first items have schemas of their own nothing is said of the
/// others.
fn items<'m>(map: &'m Map<String, Value>, number: &str) -> Option<&'m Value> {
    let at = number.parse::<usize>().ok()?;
    match map.look("prefixItems").and_then(Value::as_array) {
        Some(first) => first.get(at),
        None => map.look("items"),
    }
}

/// Whether something holds of each branch of `anyOf`, or of `oneOf`.
fn every(map: &Map<String, Value>, holds: impl Fn(&Value) -> bool) -> bool {
    ["anyOf", "oneOf"].into_iter().any(|key| {
        let mut all = branches(map, key).peekable();
        all.peek().is_some() && all.all(&holds)
    })
}

/// Whether `null` fits a schema.
fn takes_null(schema: &Value, draft: Draft) -> bool {
    let Value::Object(map) = schema else { return *schema != Value::Bool(false) };
    // Most schemas say so at once.
    if written_kinds(map).is_some_and(|kinds| !kinds.contains(&"null")) {
        return false;
    }
    if let Some(values) = listed(schema, draft) {
        return values.contains(&Value::Null);
    }
    // A part that refers to the whole cannot be held against anything by itself.
    draft.compile(schema).is_none_or(|schema| schema.is_valid(&Value::Null))
}

#[cfg(test)]
mod tests {
    use super::{refuses_null, requires};
    use crate::FieldPath;
    use serde_json::{Value, json};

    fn path(text: &str) -> FieldPath {
        FieldPath::parse(text).expect("a path")
    }

    #[test]
    fn what_every_branch_requires_is_required() {
        let requires = |schema: &Value, at: &str| requires(schema, path(at).segments());
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
            (requires(&schema, at.segments()), refuses_null(&schema, at.segments()))
        };
        assert_eq!(holds(json!({}), "list.1"), (true, true));
        assert_eq!(holds(json!({}), "list.2"), (false, true));
        assert_eq!(holds(json!({"items": {}}), "list.0"), (true, false));
        assert_eq!(holds(json!({"type": ["array", "null"]}), "list.0"), (false, true));
        assert_eq!(holds(json!({"prefixItems": [{"type": "integer"}], "items": {}}), "list.0"), (true, true));
        assert_eq!(holds(json!({"prefixItems": [{}]}), "list.1"), (true, false));
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
