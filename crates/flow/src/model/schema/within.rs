//! What a value inside another one has to fit: one segment of a path further in.
//!
//! A segment that is a number leads to the item of a list and to a property of an object alike. What is said of either
//! depends on the keyword beside it and on the draft, and all that reads schemas by paths asks here.

use serde_json::{Map, Value};

use super::{Draft, Kinds, Look};
use crate::analysis::schema::allowed::branches;

/// What nothing fits.
static NOTHING: Value = Value::Bool(false);

/// What a schema itself says of the value at a segment, its branches left aside.
#[derive(Debug)]
pub(crate) struct Place<'s> {
    /// What it has to fit, all of it.
    pub(crate) schemas: Vec<&'s Value>,
    /// Whether that is all that the keywords of the holder say of it.
    pub(crate) is_all: bool,
}

/// What a schema says of the value at a segment, for each kind of value that has one: objects, and lists where the segment
/// is a number. Only the kinds that are asked for count.
pub(crate) fn within<'s>(
    map: &'s Map<String, Value>,
    segment: &str,
    kinds: Kinds,
    draft: Draft,
) -> Vec<Place<'s>> {
    let number = segment.parse::<usize>().ok().filter(|_| kinds.meet(Kinds::LISTS));
    let mut places = Vec::new();
    // Of what stands beside a reference no notice is taken there.
    if map.has("$ref") && draft.is_only_reference() {
        let unknown = || Place { schemas: Vec::new(), is_all: false };
        places.extend(kinds.meet(Kinds::OBJECTS).then(unknown));
        places.extend(number.map(|_| unknown()));
        return places;
    }
    places.extend(kinds.meet(Kinds::OBJECTS).then(|| property(map, segment, draft)));
    places.extend(number.map(|number| item(map, number, draft)));
    places
}

fn property<'s>(map: &'s Map<String, Value>, name: &str, draft: Draft) -> Place<'s> {
    let own = map.look("properties").and_then(|named| named.look(name));
    let (mut schemas, mut is_all): (Vec<&Value>, bool) = (own.into_iter().collect(), true);
    for (pattern, schema) in map.look("patternProperties").and_then(Value::as_object).into_iter().flatten() {
        match draft.matches(pattern, name) {
            Some(true) => schemas.push(schema),
            Some(false) => {}
            None => is_all = false,
        }
    }
    if schemas.is_empty() && is_all {
        schemas.extend(map.look("additionalProperties"));
    }
    Place { schemas, is_all }
}

fn item(map: &Map<String, Value>, number: usize, draft: Draft) -> Place<'_> {
    let (first, others) = match draft.knows("prefixItems") {
        true => ("prefixItems", "items"),
        false => ("items", "additionalItems"),
    };
    let said = match map.look(first).and_then(Value::as_array) {
        Some(first) => first.get(number).or_else(|| map.look(others)),
        None => map.look("items"),
    };
    let most = map.look("maxItems").and_then(Value::as_u64);
    let is_beyond = most.is_some_and(|most| number as u64 >= most);
    let schemas = said.into_iter().chain(is_beyond.then_some(&NOTHING)).collect();
    Place { schemas, is_all: true }
}

/// What the value at a segment has to fit in any case, with what the parts of `allOf` say of it; where it may stand in an
/// object as well as in a list nothing is certain.
pub(crate) fn in_any_case<'s>(
    schema: &'s Value,
    segment: &str,
    kinds: Kinds,
    draft: Draft,
) -> Vec<&'s Value> {
    in_any_case_of(schema, segment, kinds.and(Kinds::of(schema)), draft)
}

/// The same where it is known which of those kinds may fit the schema: to be found out once, where many segments are asked
/// for, as each of its branches is looked at for that.
pub(crate) fn in_any_case_of<'s>(
    schema: &'s Value,
    segment: &str,
    kinds: Kinds,
    draft: Draft,
) -> Vec<&'s Value> {
    let Value::Object(map) = schema else { return Vec::new() };
    let mut places = within(map, segment, kinds, draft);
    let own = match places.len() {
        1 => places.remove(0).schemas,
        _ => Vec::new(),
    };
    let inner = branches(map, "allOf").flat_map(|branch| in_any_case(branch, segment, kinds, draft));
    own.into_iter().chain(inner).collect()
}

/// The values that `enum` or `const` lists, where one of them does; of some kinds only.
pub(crate) fn written(map: &Map<String, Value>, kinds: Kinds, draft: Draft) -> Option<Vec<&Value>> {
    let only = map.look("const").filter(|_| draft.knows("const"));
    let listed = only.map(std::slice::from_ref);
    let listed = listed.or_else(|| map.look("enum").and_then(Value::as_array).map(Vec::as_slice))?;
    Some(listed.iter().filter(|value| Kinds::of_value(value).meet(kinds)).collect())
}

/// The value inside another one, `null` included.
pub(crate) fn found<'v, S: AsRef<str>>(value: &'v Value, path: &[S]) -> Option<&'v Value> {
    path.iter().map(AsRef::as_ref).try_fold(value, |at, segment: &str| match at {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        at => at.get(segment),
    })
}
