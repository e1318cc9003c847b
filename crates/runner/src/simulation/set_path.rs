//! Sets and removes values at paths.

use cuegate_flow::model::FieldPath;
use serde_json::{Map, Value};

/// Sets a value at a path and creates missing containers.
pub(super) fn set_value_at_path(value: &mut Value, path: &FieldPath, new: Value) {
    let mut at = value;
    for segment in path.segments() {
        if let (Value::Array(items), Ok(index)) = (&mut *at, segment.parse::<usize>()) {
            // An index far beyond the end of a list occurs in no answer.
            if index > items.len() + 8 {
                return;
            }
            while items.len() <= index {
                items.push(Value::Null);
            }
            let Value::Array(items) = at else { return };
            at = &mut items[index];
            continue;
        }
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(fields) = at else { return };
        at = fields.entry(segment.to_string()).or_insert(Value::Null);
    }
    *at = new;
}

/// Removes the value at a path through objects.
pub(super) fn take_away(value: &mut Value, path: &FieldPath) {
    let Some((last, before)) = path.segments().split_last() else { return };
    let mut at = value;
    for segment in before {
        match at.as_object_mut().and_then(|fields| fields.get_mut(&**segment)) {
            Some(inner) => at = inner,
            None => return,
        }
    }
    if let Value::Object(fields) = at {
        fields.remove(&**last);
    }
}

#[cfg(test)]
mod tests {
    use super::set_value_at_path;
    use cuegate_flow::model::FieldPath;
    use serde_json::json;

    #[test]
    fn puts_a_value_where_a_path_leads() {
        let mut value = json!({"a": 1});
        for (path, new) in [("b.c", json!(2)), ("a.d", json!(3)), ("l", json!([0]))] {
            set_value_at_path(&mut value, &FieldPath::parse(path).unwrap(), new);
        }
        set_value_at_path(&mut value, &FieldPath::parse("l.1.x").unwrap(), json!(4));
        assert_eq!(value, json!({"a": {"d": 3}, "b": {"c": 2}, "l": [0, {"x": 4}]}));
    }
}
