//! Expands the alternatives of a schema into schemas without alternatives.

use serde_json::{Map, Value, json};

/// The limit of combinations of alternatives.
const WAYS_MAX: usize = 64;

/// The limit of expanded parts, because a recursive schema never ends.
const PARTS_MAX: usize = 512;

/// Keywords that combine parts or choose among them.
const JOINING: [&str; 5] = ["$ref", "allOf", "oneOf", "anyOf", "if"];

/// Keywords that do not restrict values.
const NOTES: [&str; 9] =
    ["$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples"];

/// Whether a schema has any of the combining keywords.
pub(super) fn has_combining_keyword(schema: &Map<String, Value>) -> bool {
    JOINING.iter().any(|key| schema.contains_key(*key))
}

/// The schemas without alternatives, in the order in which they should be tried: the alternative that `variant`
/// selects comes first, and `else` comes before `then`.
///
/// Equal keywords of two parts are merged; what cannot be merged stays in `allOf`, without alternatives. A result may
/// be unsatisfiable.
pub(super) fn expand_alternatives(root: &Value, schema: &Value, variant: usize) -> Vec<Map<String, Value>> {
    let mut choosing = UnionExpansion { root, variant, left: PARTS_MAX, found: Vec::new() };
    choosing.expand(Map::new(), Vec::new(), vec![schema.clone()]);
    choosing.found
}

struct UnionExpansion<'c> {
    root: &'c Value,
    variant: usize,
    /// The number of parts left to expand.
    left: usize,
    found: Vec<Map<String, Value>>,
}

impl UnionExpansion<'_> {
    /// `whole` is merged so far, `rest` could not be merged, and `parts` is a stack of what remains.
    fn expand(&mut self, mut whole: Map<String, Value>, mut rest: Vec<Value>, mut parts: Vec<Value>) {
        while let Some(part) = parts.pop() {
            if self.left == 0 || self.found.len() >= WAYS_MAX {
                return;
            }
            self.left -= 1;
            let mut part = match part {
                Value::Object(part) => part,
                // Unsatisfiable.
                Value::Bool(false) => return,
                _ => continue,
            };
            if let Some(target) = part.remove("$ref") {
                let found = target.as_str().and_then(|target| self.root.pointer(target.strip_prefix('#')?));
                parts.extend(found.cloned());
                if refers_only(self.root) {
                    continue;
                }
            }
            if let Some(Value::Array(all)) = part.remove("allOf") {
                parts.extend(all.into_iter().rev());
            }
            if let Some(branches) = self.branches(&mut part) {
                parts.push(Value::Object(part));
                for branch in branches {
                    let mut parts = parts.clone();
                    parts.push(branch);
                    self.expand(whole.clone(), rest.clone(), parts);
                }
                return;
            }
            let left = merge_schema_part(&mut whole, part);
            rest.extend((!left.is_empty()).then_some(Value::Object(left)));
        }
        if !rest.is_empty() {
            whole.insert("allOf".to_owned(), Value::Array(rest));
        }
        self.found.push(whole);
    }

    /// Removes the first set of alternatives from a part; `None` if there is none.
    fn branches(&self, part: &mut Map<String, Value>) -> Option<Vec<Value>> {
        for key in ["oneOf", "anyOf"] {
            if let Some(Value::Array(mut branches)) = part.remove(key)
                && !branches.is_empty()
            {
                let first = self.variant % branches.len();
                branches.rotate_left(first);
                return Some(branches);
            }
        }
        let condition = part.remove("if")?;
        let holds = [Some(condition), part.remove("then")].into_iter().flatten();
        let holds = json!({"allOf": holds.collect::<Vec<_>>()});
        Some(vec![part.remove("else").unwrap_or(Value::Bool(true)), holds])
    }
}

/// Whether the draft of a schema ignores the keywords beside a `$ref`.
fn refers_only(root: &Value) -> bool {
    let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
    ["draft-04", "draft-06", "draft-07"].iter().any(|old| draft.contains(old))
}

/// Merges a part into `whole`. Returns the keywords that cannot be merged.
fn merge_schema_part(whole: &mut Map<String, Value>, part: Map<String, Value>) -> Map<String, Value> {
    let mut left = Map::new();
    for (key, new) in part {
        match whole.get_mut(&key) {
            None => _ = whole.insert(key, new),
            Some(old) if *old == new || NOTES.contains(&&*key) => {}
            Some(old) => {
                if let Some(new) = merge_keyword_values(&key, old, new) {
                    left.insert(key, new);
                }
            }
        }
    }
    left
}

/// Merges two values of a keyword. Returns the new one if no single value expresses both.
fn merge_keyword_values(key: &str, old: &mut Value, new: Value) -> Option<Value> {
    match (key, &mut *old, new) {
        ("properties" | "patternProperties", Value::Object(old), Value::Object(new)) => {
            for (name, new) in new {
                let known = old.remove(&name);
                old.insert(name, known.map_or(new.clone(), |known| json!({"allOf": [known, new]})));
            }
        }
        ("items" | "additionalProperties" | "propertyNames", Value::Object(_) | Value::Bool(_), new)
            if !new.is_array() =>
        {
            *old = json!({"allOf": [old.take(), new]});
        }
        ("required", Value::Array(old), Value::Array(new)) => {
            let more: Vec<Value> = new.into_iter().filter(|name| !old.contains(name)).collect();
            old.extend(more);
        }
        ("enum", Value::Array(old), Value::Array(new)) if old.iter().any(|value| new.contains(value)) => {
            old.retain(|value| new.contains(value));
        }
        ("type", old, new) => return intersect_types(old, new),
        ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", old, new) => {
            return keep_stricter_bound(old, new, |old, new| new > old);
        }
        ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", old, new) => {
            return keep_stricter_bound(old, new, |old, new| new < old);
        }
        (_, _, new) => return Some(new),
    }
    None
}

/// The intersection of types.
fn intersect_types(old: &mut Value, new: Value) -> Option<Value> {
    let list = |value: &Value| match value {
        Value::Array(kinds) => kinds.clone(),
        one => vec![one.clone()],
    };
    let (known, other) = (list(old), list(&new));
    let has = |kinds: &[Value], kind: &Value| {
        kinds.contains(kind) || (kind == "integer" && kinds.iter().any(|kind| kind == "number"))
    };
    let mut common: Vec<Value> = known.iter().filter(|kind| has(&other, kind)).cloned().collect();
    let more: Vec<Value> =
        other.into_iter().filter(|kind| has(&known, kind) && !common.contains(kind)).collect();
    common.extend(more);
    if common.is_empty() {
        return Some(new);
    }
    *old = Value::Array(common);
    None
}

fn keep_stricter_bound(old: &mut Value, new: Value, less: fn(f64, f64) -> bool) -> Option<Value> {
    match (old.as_f64(), new.as_f64()) {
        (Some(known), Some(other)) => {
            if less(known, other) {
                *old = new;
            }
            None
        }
        _ => Some(new),
    }
}

#[cfg(test)]
mod tests {
    use super::expand_alternatives;
    use serde_json::{Value, json};

    fn of(schema: &Value, variant: usize) -> Value {
        Value::from(
            expand_alternatives(schema, schema, variant).into_iter().map(Value::Object).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn each_alternative_is_joined_with_what_stands_beside_it() {
        let schema = json!({
            "type": ["object", "null"], "required": ["k"],
            "oneOf": [{"required": ["v"]}, {"type": "object", "minProperties": 2}],
            "minProperties": 1,
        });
        let first = json!({"type": ["object", "null"], "required": ["v", "k"], "minProperties": 1});
        let second = json!({"type": ["object"], "required": ["k"], "minProperties": 2});
        assert_eq!(of(&schema, 0), json!([first, second]));
        assert_eq!(of(&schema, 1), json!([second, first]), "begun with another one");
    }

    #[test]
    fn what_cannot_be_one_stands_beside() {
        let schema =
            json!({"allOf": [{"pattern": "a"}, {"pattern": "b"}, {"enum": ["ab"]}, {"enum": ["cab", "ab"]}]});
        assert_eq!(of(&schema, 0), json!([{"pattern": "a", "enum": ["ab"], "allOf": [{"pattern": "b"}]}]));
    }

    #[test]
    fn alternatives_of_several_kinds_are_combined() {
        let schema = json!({"anyOf": [{"minimum": 1}, {"minimum": 2}], "if": {"maximum": 9}, "then": {"multipleOf": 3}});
        assert_eq!(
            of(&schema, 0),
            json!([
                {"minimum": 1}, {"minimum": 1, "maximum": 9, "multipleOf": 3},
                {"minimum": 2}, {"minimum": 2, "maximum": 9, "multipleOf": 3},
            ])
        );
    }

    #[test]
    fn references_are_followed_and_have_an_end() {
        let beside =
            json!({"$defs": {"w": {"minLength": 2}}, "allOf": [{"$ref": "#/$defs/w", "maxLength": 3}]});
        let mut found = of(&beside, 0);
        found[0].as_object_mut().unwrap().remove("$defs");
        assert_eq!(found, json!([{"minLength": 2, "maxLength": 3}]));
        assert_eq!(of(&json!({"$ref": "#"}), 0), json!([]));
        assert_eq!(of(&json!({"allOf": [false]}), 0), json!([]));
    }
}
