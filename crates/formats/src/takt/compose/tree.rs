//! Changes of parsed values. Everything keeps the place where it was written, so that findings point there.

use cuegate_flow::{Str, diagnostics::Span};

use crate::values::json::{Entry, Json, Kind};

/// A text at a place.
pub(super) fn build_text(text: impl Into<Str>, span: Span) -> Json {
    Json { span, kind: Kind::Text(text.into()) }
}

/// The items of a list; none for any other value.
pub(in crate::takt) fn items_of_list(of: &Json) -> &[Json] {
    match &of.kind {
        Kind::List(items) => items,
        _ => &[],
    }
}

/// A value as a list of values: a single value is a list of one.
pub(in crate::takt) fn as_list(value: &Json) -> Vec<Json> {
    match &value.kind {
        Kind::List(items) => items.clone(),
        Kind::Null => Vec::new(),
        _ => vec![value.clone()],
    }
}

/// The value of a key of an object.
pub(super) fn get_mut<'j>(of: &'j mut Json, key: &str) -> Option<&'j mut Json> {
    let Kind::Object(entries) = &mut of.kind else { return None };
    entries.iter_mut().find(|entry| *entry.key == *key).map(|entry| &mut entry.value)
}

/// Takes a key out of an object.
pub(super) fn take_key(from: &mut Json, key: &str) -> Option<Entry> {
    let Kind::Object(entries) = &mut from.kind else { return None };
    let at = entries.iter().position(|entry| *entry.key == *key)?;
    Some(entries.remove(at))
}

/// Sets a key of an object.
pub(super) fn set_key(of: &mut Json, key: &str, value: Json) {
    let Kind::Object(entries) = &mut of.kind else { return };
    match entries.iter_mut().find(|entry| *entry.key == *key) {
        Some(entry) => entry.value = value,
        None => entries.push(Entry { key: key.into(), key_span: value.span, value }),
    }
}

/// Sets a key of an object, with the place of the key.
pub(super) fn set_entry(of: &mut Json, new: Entry) {
    let Kind::Object(entries) = &mut of.kind else { return };
    match entries.iter_mut().find(|entry| entry.key == new.key) {
        Some(entry) => *entry = new,
        None => entries.push(new),
    }
}

/// Puts an object over another one: objects are merged level by level, any other value is replaced.
pub(super) fn overlay_object(under: &mut Json, over: Json) {
    match (&mut under.kind, over.kind) {
        (Kind::Object(_), Kind::Object(entries)) => {
            for entry in entries {
                let Kind::Object(known) = &mut under.kind else { return };
                match known.iter_mut().find(|known| known.key == entry.key) {
                    Some(known) => {
                        known.key_span = entry.key_span;
                        overlay_object(&mut known.value, entry.value);
                    }
                    None => known.push(entry),
                }
            }
        }
        (_, kind) => *under = Json { span: over.span, kind },
    }
}

/// The name of a parameter in `{ $param: name }`.
pub(super) fn param_name_of_value(value: &Json) -> Option<(&str, Span)> {
    match value.pairs() {
        [entry] if &*entry.key == "$param" => Some((entry.value.as_text()?.trim(), value.span)),
        _ => None,
    }
}

/// Replaces each `{ $param: name }` by its value. In a list, a value that is a list stands for its items. `unknown` is
/// called with the names that have no value.
pub(super) fn substitute_params<'v>(
    value: &mut Json,
    known: &dyn Fn(&str) -> Option<&'v Json>,
    unknown: &mut dyn FnMut(&str, Span),
) {
    if let Some((name, span)) = param_name_of_value(value) {
        match known(name) {
            Some(given) => *value = given.clone(),
            None => {
                unknown(name, span);
                value.kind = Kind::Null;
            }
        }
        return;
    }
    match &mut value.kind {
        Kind::List(items) => {
            let mut all = Vec::with_capacity(items.len());
            for mut item in std::mem::take(items) {
                let is_param = param_name_of_value(&item).is_some();
                substitute_params(&mut item, known, unknown);
                match item.kind {
                    // What is in the list already is not repeated.
                    Kind::List(inner) if is_param => {
                        let is_new = |item: &Json| {
                            item.as_text().is_none_or(|text| {
                                !all.iter().any(|known: &Json| known.as_text() == Some(text))
                            })
                        };
                        let new: Vec<Json> = inner.into_iter().filter(|item| is_new(item)).collect();
                        all.extend(new);
                    }
                    Kind::Null if is_param => {}
                    _ => all.push(item),
                }
            }
            *items = all;
        }
        Kind::Object(entries) => {
            for entry in entries.iter_mut() {
                substitute_params(&mut entry.value, known, unknown);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(value: Value) -> Json {
        Json::from(&value)
    }

    #[test]
    fn objects_are_merged_and_lists_replaced() {
        let mut under = of(json!({"a": {"b": 1, "c": [1, 2]}, "d": 1}));
        overlay_object(&mut under, of(json!({"a": {"c": [3]}, "e": {"f": 2}})));
        assert_eq!(under.to_value(), json!({"a": {"b": 1, "c": [3]}, "d": 1, "e": {"f": 2}}));
    }

    #[test]
    fn parameters_in_lists_stand_for_their_items() {
        let values = [("many", of(json!(["x", "y"]))), ("one", of(json!("z"))), ("none", of(json!([])))];
        let known = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        let mut value = of(json!({
            "policy": ["a", "x", {"$param": "many"}, {"$param": "none"}, {"$param": "one"}],
            "knowledge": {"$param": "many"}, "persona": {"$param": "no"}
        }));
        let mut unknown = Vec::new();
        substitute_params(&mut value, &known, &mut |name, _| unknown.push(name.to_owned()));
        assert_eq!(
            value.to_value(),
            json!({"policy": ["a", "x", "y", "z"], "knowledge": ["x", "y"], "persona": null})
        );
        assert_eq!(unknown, ["no"]);
    }
}
