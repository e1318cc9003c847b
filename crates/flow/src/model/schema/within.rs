//! The schemas that apply to a nested value, one path segment at a time.
//!
//! A numeric segment addresses an item of a list or a property of an object. What applies depends on adjacent keywords
//! and on the draft, so every path lookup uses this module.

use serde_json::{Map, Value};

use super::{KeyLookup, Kinds, SchemaDraft};
use crate::model::schema::items_of_keyword;

/// A schema that no value satisfies.
static NOTHING: Value = Value::Bool(false);

/// What a schema itself says about the value at a segment, without its branches.
#[derive(Debug)]
pub(crate) struct SegmentConstraints<'s> {
    /// The schemas that the value must satisfy.
    pub(crate) schemas: Vec<&'s Value>,
    /// Whether these are all constraints that the holder's keywords put on the value.
    pub(crate) is_all: bool,
}

/// The constraints on the value at a segment, for each kind of holder that can have it: objects, and lists if the
/// segment is a number. Only the given kinds count.
pub(crate) fn constraints_of_segment<'s>(
    map: &'s Map<String, Value>,
    segment: &str,
    kinds: Kinds,
    draft: SchemaDraft,
) -> Vec<SegmentConstraints<'s>> {
    let number = segment.parse::<usize>().ok().filter(|_| kinds.meet(Kinds::LISTS));
    let mut places = Vec::new();
    // Such a draft ignores keywords beside a reference.
    if map.has("$ref") && draft.is_only_reference() {
        let unknown = || SegmentConstraints { schemas: Vec::new(), is_all: false };
        places.extend(kinds.meet(Kinds::OBJECTS).then(unknown));
        places.extend(number.map(|_| unknown()));
        return places;
    }
    places.extend(kinds.meet(Kinds::OBJECTS).then(|| constraints_of_property(map, segment, draft)));
    places.extend(number.map(|number| constraints_of_item(map, number, draft)));
    places
}

fn constraints_of_property<'s>(
    map: &'s Map<String, Value>,
    name: &str,
    draft: SchemaDraft,
) -> SegmentConstraints<'s> {
    let own = map.find_key("properties").and_then(|named| named.find_key(name));
    let (mut schemas, mut is_all): (Vec<&Value>, bool) = (own.into_iter().collect(), true);
    for (pattern, schema) in
        map.find_key("patternProperties").and_then(Value::as_object).into_iter().flatten()
    {
        match draft.matches(pattern, name) {
            Some(true) => schemas.push(schema),
            Some(false) => {}
            None => is_all = false,
        }
    }
    if schemas.is_empty() && is_all {
        schemas.extend(map.find_key("additionalProperties"));
    }
    SegmentConstraints { schemas, is_all }
}

fn constraints_of_item(
    map: &Map<String, Value>,
    number: usize,
    draft: SchemaDraft,
) -> SegmentConstraints<'_> {
    let (first, others) = match draft.knows("prefixItems") {
        true => ("prefixItems", "items"),
        false => ("items", "additionalItems"),
    };
    let said = match map.find_key(first).and_then(Value::as_array) {
        Some(first) => first.get(number).or_else(|| map.find_key(others)),
        None => map.find_key("items"),
    };
    let most = map.find_key("maxItems").and_then(Value::as_u64);
    let is_beyond = most.is_some_and(|most| number as u64 >= most);
    let schemas = said.into_iter().chain(is_beyond.then_some(&NOTHING)).collect();
    SegmentConstraints { schemas, is_all: true }
}

/// The schemas that the value at a segment must satisfy in any case, including those in `allOf`. If both an object and
/// a list can hold it, nothing is certain.
pub(crate) fn in_any_case<'s>(
    schema: &'s Value,
    segment: &str,
    kinds: Kinds,
    draft: SchemaDraft,
) -> Vec<&'s Value> {
    in_any_case_of(schema, segment, kinds.and(Kinds::of(schema)), draft)
}

/// As [`in_any_case`] with precomputed kinds: computing them visits every branch, which is too slow per segment.
pub(crate) fn in_any_case_of<'s>(
    schema: &'s Value,
    segment: &str,
    kinds: Kinds,
    draft: SchemaDraft,
) -> Vec<&'s Value> {
    let Value::Object(map) = schema else { return Vec::new() };
    let mut places = constraints_of_segment(map, segment, kinds, draft);
    let own = match places.len() {
        1 => places.remove(0).schemas,
        _ => Vec::new(),
    };
    let inner = items_of_keyword(map, "allOf").flat_map(|branch| in_any_case(branch, segment, kinds, draft));
    own.into_iter().chain(inner).collect()
}

/// The values that `enum` or `const` lists, limited to some kinds; `None` if neither exists.
pub(crate) fn list_enumerated_values(
    map: &Map<String, Value>,
    kinds: Kinds,
    draft: SchemaDraft,
) -> Option<Vec<&Value>> {
    let only = map.find_key("const").filter(|_| draft.knows("const"));
    let listed = only.map(std::slice::from_ref);
    let listed = listed.or_else(|| map.find_key("enum").and_then(Value::as_array).map(Vec::as_slice))?;
    Some(listed.iter().filter(|value| Kinds::of_value(value).meet(kinds)).collect())
}

/// The nested value, `null` included.
pub(crate) fn find_nested_value<'v, S: AsRef<str>>(value: &'v Value, path: &[S]) -> Option<&'v Value> {
    path.iter().map(AsRef::as_ref).try_fold(value, |at, segment: &str| match at {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        at => at.get(segment),
    })
}
