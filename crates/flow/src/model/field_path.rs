//! Paths of values inside an answer.

use std::fmt;

use serde_json::Value;

use crate::Str;

/// A dotted path into a JSON value (`next_action.action`); a numeric segment indexes an array.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<Str>);

impl FieldPath {
    /// Parses dot notation; empty segments are not paths.
    pub fn parse(text: &str) -> Option<FieldPath> {
        let segments: Vec<Str> = text.split('.').map(Str::from).collect();
        segments.iter().all(|segment| !segment.is_empty()).then_some(FieldPath(segments))
    }

    /// The path of a field of the answer, whatever its name is.
    pub fn field(name: &str) -> FieldPath {
        FieldPath(vec![name.into()])
    }

    /// The segments, at least one.
    pub fn segments(&self) -> &[Str] {
        &self.0
    }

    /// The last segment: the short name of the value.
    pub fn last(&self) -> &Str {
        self.0.last().expect("a path has at least one segment")
    }

    /// The value at this path. `null` counts as absent.
    pub fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        find_below(&self.0, value).filter(|found| !found.is_null())
    }

    /// The number of items of a list, for a path that ends with `length` there.
    pub fn count(&self, value: &Value) -> Option<usize> {
        let (last, above) = self.0.split_last()?;
        let list = find_below(above, value)?.as_array()?;
        (&**last == "length").then_some(list.len())
    }

    /// Replaces the value at this path, when there is one.
    pub fn set(&self, value: &mut Value, new: Value) {
        let mut at = value;
        for segment in &self.0 {
            let next = match at {
                Value::Object(map) => map.get_mut(&**segment),
                Value::Array(items) => segment.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
                _ => None,
            };
            match next {
                Some(inner) => at = inner,
                None => return,
            }
        }
        *at = new;
    }
}

/// The value below these segments.
fn find_below<'v>(segments: &[Str], value: &'v Value) -> Option<&'v Value> {
    segments.iter().try_fold(value, |at, segment| match at {
        Value::Object(map) => map.get(&**segment),
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        _ => None,
    })
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::FieldPath;
    use serde_json::json;

    #[test]
    fn walks_objects_and_arrays() {
        let value = json!({"a": {"b": [10, {"c": "x"}]}, "n": null});
        let at = |path: &str| FieldPath::parse(path).and_then(|path| path.get(&value).cloned());
        assert_eq!(at("a.b.1.c"), Some(json!("x")));
        assert_eq!(at("a.b.0"), Some(json!(10)));
        assert_eq!(FieldPath::parse("a.b.length").unwrap().count(&value), Some(2));
        assert_eq!(FieldPath::parse("a.length").unwrap().count(&value), None);
        assert_eq!(at("a.x"), None);
        assert_eq!(at("n"), None, "null is absent");
        assert_eq!(at("a.b.0.c"), None, "a primitive has no fields");
        assert!(FieldPath::parse("a..b").is_none());
        assert!(FieldPath::parse("").is_none());
    }
}
