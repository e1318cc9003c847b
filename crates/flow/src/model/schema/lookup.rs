//! Looking into schemas by key.

use serde_json::{Map, Value};

/// The most keys that are compared one by one.
const COMPARED_MAX: usize = 12;

/// What stands under a key.
///
/// Checking asks the objects of schemas for keys all the time, and these have a handful: comparing them one by one takes
/// a fraction of hashing the one that is looked for.
pub trait Look {
    /// The value of a key; `None` where there is none, or what is asked is no object.
    fn look(&self, key: &str) -> Option<&Value>;

    /// Whether there is such a key.
    fn has(&self, key: &str) -> bool {
        self.look(key).is_some()
    }
}

impl Look for Map<String, Value> {
    fn look(&self, key: &str) -> Option<&Value> {
        if self.len() > COMPARED_MAX {
            return self.get(key);
        }
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

impl Look for Value {
    fn look(&self, key: &str) -> Option<&Value> {
        self.as_object()?.look(key)
    }
}

#[cfg(test)]
mod tests {
    use super::Look;
    use serde_json::{Map, Value, json};

    #[test]
    fn few_keys_and_many_are_found_alike() {
        for count in [0, 1, 12, 13, 40] {
            let map: Map<String, Value> = (0..count).map(|at| (format!("k{at}"), json!(at))).collect();
            for at in 0..count + 1 {
                let key = format!("k{at}");
                assert_eq!(map.look(&key), map.get(&key));
                assert_eq!(Value::Object(map.clone()).has(&key), at < count);
            }
        }
        assert!(!json!([1]).has("0"));
    }
}
