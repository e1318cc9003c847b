//! Key lookup in schemas.

use serde_json::{Map, Value};

/// The most keys that are compared linearly.
const COMPARED_MAX: usize = 12;

/// Key lookup in a JSON object.
///
/// Checks look up keys in schema objects all the time, and these have few keys: linear comparison takes a fraction of
/// the time of hashing the key.
pub trait KeyLookup {
    /// The value of a key; `None` if the key is missing or the value is not an object.
    fn find_key(&self, key: &str) -> Option<&Value>;

    /// Whether the key exists.
    fn has(&self, key: &str) -> bool {
        self.find_key(key).is_some()
    }
}

impl KeyLookup for Map<String, Value> {
    fn find_key(&self, key: &str) -> Option<&Value> {
        if self.len() > COMPARED_MAX {
            return self.get(key);
        }
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

impl KeyLookup for Value {
    fn find_key(&self, key: &str) -> Option<&Value> {
        self.as_object()?.find_key(key)
    }
}

/// The items of a list such as `allOf`; none if the schema has no such list.
pub(crate) fn items_of_keyword<'m>(
    map: &'m Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'m Value> {
    map.find_key(key).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::KeyLookup;
    use serde_json::{Map, Value, json};

    #[test]
    fn small_and_large_objects_find_keys_alike() {
        for count in [0, 1, 12, 13, 40] {
            let map: Map<String, Value> = (0..count).map(|at| (format!("k{at}"), json!(at))).collect();
            for at in 0..count + 1 {
                let key = format!("k{at}");
                assert_eq!(map.find_key(&key), map.get(&key));
                assert_eq!(Value::Object(map.clone()).has(&key), at < count);
            }
        }
        assert!(!json!([1]).has("0"));
    }
}
