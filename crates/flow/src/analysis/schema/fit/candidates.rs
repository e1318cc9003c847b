//! The values that a schema lists at a path.

use std::collections::HashSet;

use serde_json::Value;

use crate::Str;
use crate::analysis::schema::listed_values::list_allowed_values;
use crate::model::schema::items_of_keyword;
use crate::model::schema::{
    KeyLookup, Kinds, SchemaDraft, SegmentConstraints, constraints_of_segment, find_nested_value,
    list_enumerated_values,
};

/// The values that can stand at a path of an answer that fits, where they can be listed; some that cannot may be among
/// them.
pub(crate) fn list_candidates(schema: &Value, path: &[Str], draft: SchemaDraft) -> Option<Vec<Value>> {
    candidates_of(schema, path, Kinds::OBJECTS, draft)
}

fn candidates_of(schema: &Value, path: &[Str], kinds: Kinds, draft: SchemaDraft) -> Option<Vec<Value>> {
    let Some((first, rest)) = path.split_first() else { return list_allowed_values(schema, draft) };
    let map = schema.as_object()?;
    let kinds = kinds.and(Kinds::of(schema));
    let there = |inner: &&Value| candidates_of(inner, rest, Kinds::ALL, draft);
    // What is closed lists nothing: that no value can be there is said elsewhere.
    let is_named = map.find_key("properties").is_some_and(|named| named.has(first));
    let is_closed =
        |place: &SegmentConstraints<'_>| !is_named && place.schemas.contains(&&Value::Bool(false));
    let places: Vec<SegmentConstraints<'_>> = constraints_of_segment(map, first, kinds, draft)
        .into_iter()
        .filter(|place| !is_closed(place))
        .collect();
    let of = |branch: &Value| candidates_of(branch, path, kinds, draft);
    let in_values = |all: Vec<&Value>| {
        unite_candidates(
            all.into_iter().map(|value| Some(find_nested_value(value, path).cloned().into_iter().collect())),
        )
    };
    unite_candidates(places.iter().map(|place| place.schemas.iter().find_map(there)))
        .or_else(|| list_enumerated_values(map, kinds, draft).and_then(in_values))
        .or_else(|| items_of_keyword(map, "allOf").find_map(of))
        .or_else(|| {
            ["anyOf", "oneOf"]
                .into_iter()
                .find_map(|key| unite_candidates(items_of_keyword(map, key).map(of)))
        })
}

/// What all of some parts list together, when there are some and each lists something.
fn unite_candidates(parts: impl Iterator<Item = Option<Vec<Value>>>) -> Option<Vec<Value>> {
    let mut parts = parts.peekable();
    parts.peek()?;
    let mut all = Vec::new();
    for part in parts {
        all.extend(part?);
    }
    Some(deduplicate_values(all))
}

/// Of so many values it is cheaper to compare each with all before it.
const COMPARED_MAX: usize = 16;

/// Each value once.
fn deduplicate_values(values: Vec<Value>) -> Vec<Value> {
    if values.len() > COMPARED_MAX {
        let mut seen = HashSet::new();
        return values.into_iter().filter(|value| seen.insert(value.to_string())).collect();
    }
    let mut all = Vec::with_capacity(values.len());
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}
