//! Why no list fits what a schema says about lists.

use serde_json::{Map, Value, json};

use super::{ImpossiblePart, admits_nothing};
use crate::analysis::schema::listed_values::list_allowed_values;
use crate::model::schema::{KeyLookup, Kinds, SchemaDraft, constraints_of_segment};

/// The most items that are looked at one by one.
const ITEMS_MAX: u64 = 64;

/// Why no list fits.
pub(super) fn of_list(map: &Map<String, Value>, pointer: &str, draft: SchemaDraft) -> Option<ImpossiblePart> {
    let fault = |why: String| Some(ImpossiblePart { pointer: pointer.to_owned(), why });
    let number = |key: &str| map.find_key(key).and_then(Value::as_u64);
    let wanted = map.find_key("contains").filter(|_| draft.knows("contains"));
    let counted = |key: &str| number(key).filter(|_| draft.knows(key));
    let containing = wanted.map_or(0, |_| counted("minContains").unwrap_or(1));
    if let Some(most) = number("maxItems").filter(|most| *most < containing) {
        return fault(format!("asks for {containing} items by its `contains`, and has `maxItems` {most}"));
    }
    if let Some(most) = counted("maxContains").filter(|most| *most < containing) {
        return fault(format!("has `minContains` {containing} and `maxContains` {most}"));
    }
    let least = number("minItems").unwrap_or_default().max(containing);
    if let Some(found) = (0..least.min(ITEMS_MAX)).find_map(|at| of_item(map, at, pointer, draft)) {
        return Some(found);
    }
    // What stands at places of its own is not all alike.
    let alike = match map.find_key("items") {
        _ if map.has("prefixItems") && draft.knows("prefixItems") => return None,
        Some(Value::Array(_)) => return None,
        items => items,
    };
    if let Some(wanted) = wanted.filter(|_| containing > 0)
        && admits_nothing(&json!({ "allOf": [alike.unwrap_or(&Value::Bool(true)), wanted] }), "", draft)
            .is_some()
    {
        return fault("has a `contains` that no item fits which it allows".to_owned());
    }
    let is_unique = map.find_key("uniqueItems") == Some(&Value::Bool(true));
    let values =
        alike.filter(|_| is_unique && least > 1).and_then(|alike| list_allowed_values(alike, draft))?;
    let count = values.len() as u64;
    (count < least)
        .then(|| format!("needs {least} items that differ, and allows {count} different ones"))
        .and_then(fault)
}

/// Why nothing can stand at one place of a list.
fn of_item(map: &Map<String, Value>, at: u64, pointer: &str, draft: SchemaDraft) -> Option<ImpossiblePart> {
    let said = constraints_of_segment(map, &at.to_string(), Kinds::LISTS, draft)
        .into_iter()
        .flat_map(|place| place.schemas);
    said.filter_map(|schema| {
        let key = ["prefixItems", "items", "additionalItems"].into_iter().find_map(|key| {
            match map.find_key(key)? {
                Value::Array(items) => {
                    let at = items.iter().position(|item| std::ptr::eq(item, schema))?;
                    Some(format!("{pointer}/{key}/{at}"))
                }
                item => std::ptr::eq(item, schema).then(|| format!("{pointer}/{key}")),
            }
        })?;
        admits_nothing(schema, &key, draft)
    })
    .next()
}
