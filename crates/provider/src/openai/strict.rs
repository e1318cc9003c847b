//! Tests whether a schema is valid in OpenAI's strict mode.

use serde_json::Value;

/// Keywords allowed in strict mode. The service rejects a strict request with any other keyword. Without `strict` it
/// accepts the schema as a hint; the caller validates the answer either way.
const KEYWORDS: [&str; 21] = [
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
];
/// Supported string formats.
const FORMATS: [&str; 9] =
    ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"];
/// The maximum nesting of objects.
const DEPTH_MAX: usize = 10;
/// The maximum number of properties in total.
const PROPERTIES_MAX: usize = 5_000;

/// Whether strict mode supports the schema: the root is an object, every object requires all its properties and allows
/// no others, and all keywords are supported.
pub(super) fn is_strict(schema: &Value) -> bool {
    let mut properties = 0;
    schema["type"] == "object"
        && schema.get("anyOf").is_none()
        && matches_strict_mode(schema, 1, &mut properties)
        && properties <= PROPERTIES_MAX
}

fn matches_strict_mode(schema: &Value, depth: usize, properties: &mut usize) -> bool {
    let Some(fields) = schema.as_object() else { return false };
    let known = |name: &String| name == "type" || name == "title" || KEYWORDS.contains(&name.as_str());
    if depth > DEPTH_MAX || !fields.keys().all(known) {
        return false;
    }
    let own_reference = |value: &Value| value.as_str().is_some_and(|to| to.starts_with('#'));
    let known_format = |value: &Value| value.as_str().is_some_and(|format| FORMATS.contains(&format));
    if !fields.get("$ref").is_none_or(own_reference) || !fields.get("format").is_none_or(known_format) {
        return false;
    }
    let mut below = fields.get("items").into_iter().collect::<Vec<_>>();
    below.extend(fields.get("anyOf").and_then(Value::as_array).into_iter().flatten());
    for definitions in ["$defs", "definitions"] {
        below.extend(
            fields.get(definitions).and_then(Value::as_object).into_iter().flat_map(|all| all.values()),
        );
    }
    below.into_iter().all(|schema| matches_strict_mode(schema, depth, properties))
        && object_fits(schema, depth, properties)
}

fn object_fits(schema: &Value, depth: usize, count: &mut usize) -> bool {
    let is_object = match &schema["type"] {
        Value::String(kind) => kind == "object",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
        _ => schema.get("properties").is_some(),
    };
    if !is_object {
        return true;
    }
    let empty = serde_json::Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    *count += properties.len();
    schema["additionalProperties"] == false
        && properties.keys().all(|name| required.iter().any(|required| required == name))
        && properties.values().all(|schema| matches_strict_mode(schema, depth + 1, count))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(properties: Value) -> Value {
        let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    #[test]
    fn closed_objects_of_known_keywords_are_strict() {
        let list =
            json!({"type": "array", "items": object(json!({"path": {"type": "string", "format": "date"}}))});
        let mut schema = object(json!({
            "verdict": {"enum": ["pass", "fail"], "description": "which"},
            "list": list,
            "note": {"type": ["string", "null"]},
            "either": {"anyOf": [{"type": "integer", "minimum": 0}, {"$ref": "#/$defs/x"}]},
        }));
        schema["$defs"] = json!({"x": object(json!({"a": {"const": 1}}))});
        schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        assert!(is_strict(&schema));
        assert!(is_strict(&object(json!({}))));
    }

    #[test]
    fn other_schemas_are_not_strict() {
        let inner = |schema: Value| object(json!({"a": schema}));
        let mut optional = inner(json!({"type": "string"}));
        optional["required"] = json!([]);
        let mut open = inner(json!({"type": "string"}));
        open.as_object_mut().unwrap().remove("additionalProperties");
        let deep = (0..10).fold(json!({"type": "string"}), |schema, _| inner(schema));
        assert!(is_strict(deep["properties"].get("a").unwrap()) && !is_strict(&inner(deep.clone())));
        for schema in [
            optional.clone(),
            open,
            inner(optional),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"anyOf": [object(json!({}))]}),
            inner(json!({"type": "string", "minLength": 1})),
            inner(json!({"type": "string", "format": "uri"})),
            inner(json!({"allOf": []})),
            inner(json!({"not": {}})),
            inner(json!(true)),
            inner(json!({"$ref": "other.json"})),
            inner(json!({"type": "object"})),
            inner(json!({"properties": {}})),
            inner(json!({"type": "array", "items": {"type": ["object", "null"]}})),
            json!(true),
        ] {
            assert!(!is_strict(&schema), "{schema}");
        }
    }
}
