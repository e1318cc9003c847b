//! What a schema says about the values at a path of the answers that fit it.

use serde_json::Value;

use super::allowed::{self, ImpossiblePart};
use super::{always_present, fit, given_outcome, listed_values};
use crate::{
    Str,
    model::{
        FieldPath, Schema,
        schema::{Kinds, SchemaDraft, constraints_of_segment, find_nested_value, list_enumerated_values},
    },
};

impl Schema {
    /// The sub-schema for the value at a path, if the schema has one; the first if it has several.
    pub fn subschema(&self, path: &FieldPath) -> Option<&Value> {
        let (mut at, mut kinds) = (self.value(), Kinds::OBJECTS);
        for segment in path.segments() {
            let places =
                constraints_of_segment(at.as_object()?, segment, kinds.and(Kinds::of(at)), self.draft());
            at = places.into_iter().find_map(|place| place.schemas.first().copied())?;
            kinds = Kinds::ALL;
        }
        Some(at)
    }

    /// Whether a valid answer can have a value at this path. Open objects and lists can hold anything.
    pub fn can_produce(&self, path: &FieldPath) -> bool {
        can_have(self.value(), path.segments(), Kinds::OBJECTS, self.draft())
    }

    /// Whether only `null` is valid at this path; `null` counts as no value.
    pub fn only_null(&self, path: &FieldPath) -> bool {
        let nothing =
            |values: Vec<Value>| !values.is_empty() && values.iter().all(|value| *value == Value::Null);
        self.values_at(path).is_some_and(nothing)
    }

    /// Whether every valid answer has a value at this path, `null` included.
    pub fn requires(&self, path: &FieldPath) -> bool {
        always_present::is_value_required(self.value(), path.segments())
    }

    /// As [`Schema::requires`], but `null` counts as no value.
    pub fn always_has(&self, path: &FieldPath) -> bool {
        self.requires(path) && always_present::refuses_null(self.value(), path.segments())
    }

    /// Whether every valid answer with `value` at the path `at` has a value at `path`; `null` counts as no value.
    pub(crate) fn always_has_given(&self, path: &FieldPath, at: &FieldPath, value: &Value) -> bool {
        let schema = given_outcome::narrow_schema_to_value(self.value(), at.segments(), value, self.draft());
        always_present::is_value_required(&schema, path.segments())
            && always_present::refuses_null(&schema, path.segments())
    }

    /// Whether the schema constrains the value at this path only at the path itself.
    pub fn says_only_at(&self, path: &FieldPath) -> bool {
        fit::is_plain(self.value(), path.segments(), self.draft())
    }

    /// Every possible value at this path if the schema lists them: by `enum`, `const`, a boolean, a short range of
    /// integers, or a combination of such schemas. Excludes values that the surrounding schema certainly rules out.
    pub fn values_at(&self, path: &FieldPath) -> Option<Vec<Value>> {
        if self.says_only_at(path) {
            return fit::list_candidates(self.value(), path.segments(), self.draft());
        }
        self.keep_values_at(path, || self.possible_at(path.segments()))
    }

    /// As [`Schema::values_at`], computed from the whole schema around the path.
    fn possible_at(&self, path: &[Str]) -> Option<Vec<Value>> {
        let mut values = fit::list_candidates(self.value(), path, self.draft())?;
        let mut fits = fit::of_values(self.value(), path, &values, self.draft()).into_iter();
        values.retain(|_| fits.next() != Some(fit::Fit::Never));
        Some(values)
    }

    /// Whether a value that reads as this text is possible at a path. An unconstrained path takes any value.
    pub fn can_read(&self, path: &FieldPath, text: &str) -> bool {
        let draft = self.draft();
        may_hold_at_path(self.value(), path.segments(), Kinds::OBJECTS, draft, &|part| {
            listed_values::can_read(part, text, draft)
        })
    }

    /// Whether a value of one of these types (words of `type`; `number` includes integers) is possible at this path.
    pub fn can_be(&self, path: &FieldPath, kinds: &[&str]) -> bool {
        may_hold_at_path(self.value(), path.segments(), Kinds::OBJECTS, self.draft(), &|part| {
            allowed::can_be(part, kinds)
        })
    }

    /// Why no valid answer has a value at a path, if that is certain. If the path is required, no answer is valid.
    pub fn bars(&self, path: &FieldPath) -> Option<ImpossiblePart> {
        let mut whole = self.value().clone();
        let mut at = &mut whole;
        for segment in path.segments() {
            let Value::Object(map) = at else { return None };
            let Value::Array(names) = map.entry("required").or_insert_with(|| Value::Array(Vec::new()))
            else {
                return None;
            };
            if !names.iter().any(|name| name.as_str() == Some(segment)) {
                names.push(Value::from(&**segment));
            }
            let Some(next) = map.get_mut("properties").and_then(|named| named.get_mut(&**segment)) else {
                break;
            };
            at = next;
        }
        allowed::explain_impossible_schema(&whole)
    }

    /// Why no answer is valid, if that is certain. An answer is an object.
    pub fn impossible(&self) -> Option<ImpossiblePart> {
        allowed::explain_impossible_schema(self.value())
    }

    /// Every value that satisfies a part of a whole schema, if they can be listed as for [`Schema::values_at`].
    pub fn values_of(whole: &Value, part: &Value) -> Option<Vec<Value>> {
        listed_values::list_allowed_values(part, SchemaDraft::of(whole))
    }
}

/// Whether a valid value can have a value at a path, by the schema itself only. Combined schemas are not followed and
/// count as allowing it.
fn can_have(schema: &Value, path: &[Str], kinds: Kinds, draft: SchemaDraft) -> bool {
    let Some((first, rest)) = path.split_first() else { return *schema != Value::Bool(false) };
    let Value::Object(map) = schema else { return *schema != Value::Bool(false) };
    let kinds = kinds.and(Kinds::of(schema));
    if list_enumerated_values(map, kinds, draft)
        .is_some_and(|all| all.iter().all(|value| find_nested_value(value, path).is_none()))
    {
        return false;
    }
    let places = constraints_of_segment(map, first, kinds, draft);
    let holds = |inner: &&Value| can_have(inner, rest, Kinds::ALL, draft);
    places.iter().any(|place| place.schemas.iter().all(holds))
}

/// Whether a condition may hold for the schemas at a path; it does for unconstrained paths.
fn may_hold_at_path(
    schema: &Value,
    path: &[Str],
    kinds: Kinds,
    draft: SchemaDraft,
    holds: &impl Fn(&Value) -> bool,
) -> bool {
    let Some((first, rest)) = path.split_first() else { return holds(schema) };
    let Value::Object(map) = schema else { return true };
    let places = constraints_of_segment(map, first, kinds.and(Kinds::of(schema)), draft);
    let inner = |inner: &&Value| may_hold_at_path(inner, rest, Kinds::ALL, draft, holds);
    places.is_empty() || places.iter().any(|place| place.schemas.iter().all(inner))
}
