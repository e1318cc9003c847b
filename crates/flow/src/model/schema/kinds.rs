//! The kinds of values that a schema allows.

use serde_json::{Map, Value};

use super::KeyLookup;
use crate::model::schema::items_of_keyword;

/// A set of the kinds that `type` distinguishes. Every integer is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

/// Their names, each at its bit.
const NAMES: [&str; 6] = ["null", "boolean", "string", "number", "array", "object"];

impl Kinds {
    /// No value at all.
    pub(crate) const NONE: Kinds = Kinds(0);
    /// Every value.
    pub(crate) const ALL: Kinds = Kinds(0b11_1111);
    /// Arrays.
    pub(crate) const LISTS: Kinds = Kinds(0b01_0000);
    /// Objects; every answer is one.
    pub(crate) const OBJECTS: Kinds = Kinds(0b10_0000);

    /// The kinds that may satisfy a schema, according to `type` here and in its branches.
    pub(crate) fn of(schema: &Value) -> Kinds {
        match schema {
            Value::Bool(false) => Kinds::NONE,
            Value::Object(map) => Kinds::of_map(map),
            _ => Kinds::ALL,
        }
    }

    fn of_map(map: &Map<String, Value>) -> Kinds {
        let mut left = map.find_key("type").map_or(Kinds::ALL, Kinds::named);
        for branch in items_of_keyword(map, "allOf") {
            left = left.and(Kinds::of(branch));
        }
        for key in ["anyOf", "oneOf"].into_iter().filter(|key| map.has(key)) {
            left = left.and(items_of_keyword(map, key).map(Kinds::of).fold(Kinds::NONE, Kinds::or));
        }
        left
    }

    /// The kinds that a `type` names.
    pub(crate) fn named(written: &Value) -> Kinds {
        let one = |name: &str| {
            let name = if name == "integer" { "number" } else { name };
            let at = NAMES.iter().position(|known| *known == name);
            at.map_or(Kinds::ALL, |at| Kinds(1 << at))
        };
        match written {
            Value::String(name) => one(name),
            Value::Array(names) => {
                names.iter().filter_map(Value::as_str).map(one).fold(Kinds::NONE, Kinds::or)
            }
            _ => Kinds::ALL,
        }
    }

    /// The kind of a value.
    pub(crate) fn of_value(value: &Value) -> Kinds {
        Kinds(match value {
            Value::Null => 1,
            Value::Bool(_) => 1 << 1,
            Value::String(_) => 1 << 2,
            Value::Number(_) => 1 << 3,
            Value::Array(_) => Kinds::LISTS.0,
            Value::Object(_) => Kinds::OBJECTS.0,
        })
    }

    /// The intersection.
    pub(crate) fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    /// The union.
    pub(crate) fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Whether the sets intersect.
    pub(crate) fn meet(self, other: Kinds) -> bool {
        self.and(other) != Kinds::NONE
    }

    /// Whether all of these are in `other`.
    pub(crate) fn is_subset_of(self, other: Kinds) -> bool {
        self.and(other) == self
    }
}

#[cfg(test)]
mod tests {
    use super::{Kinds, NAMES};
    use serde_json::json;

    #[test]
    fn kinds_of_schemas() {
        for (schema, expected) in [
            (json!(true), Kinds::ALL),
            (json!(false), Kinds::NONE),
            (json!({}), Kinds::ALL),
            (json!({"type": "object"}), Kinds::OBJECTS),
            (json!({"type": ["array", "object"]}), Kinds::LISTS.or(Kinds::OBJECTS)),
            (json!({"type": "integer"}), Kinds::of_value(&json!(1.5))),
            (json!({"allOf": [{"type": "array"}, {"type": ["array", "null"]}]}), Kinds::LISTS),
            (json!({"anyOf": [{"type": "array"}, {"type": "object"}], "type": "array"}), Kinds::LISTS),
            (json!({"oneOf": [{"type": "array"}, {}]}), Kinds::ALL),
        ] {
            assert_eq!(Kinds::of(&schema), expected, "{schema}");
        }
        let values = [json!(null), json!(true), json!("x"), json!(1), json!([]), json!({})];
        for (name, value) in NAMES.iter().zip(values) {
            assert_eq!(Kinds::named(&json!(name)), Kinds::of_value(&value));
        }
    }
}
