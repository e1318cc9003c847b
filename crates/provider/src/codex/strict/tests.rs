use serde_json::json;

use super::*;

fn kept(schema: Value) -> String {
    convert_to_strict(&schema).map_or_else(|| "-".to_owned(), |schema| schema.to_string())
}

/// The schema as a required property.
fn property(schema: Value) -> String {
    let whole = json!({ "type": "object", "properties": { "a": schema }, "required": ["a"] });
    convert_to_strict(&whole).map_or_else(|| "-".to_owned(), |schema| schema["properties"]["a"].to_string())
}

#[test]
fn objects_require_all_their_properties() {
    assert_eq!(
        kept(json!({
            "$schema": "x", "$id": "y", "title": "t", "description": "d",
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": { "type": "string" },
                "b": { "type": "integer", "minimum": 1 },
                "c": { "enum": ["x", "y"] },
                "d": { "type": ["string", "null"] },
            },
        })),
        r#"{"description":"d","type":"object","properties":{"a":{"type":"string"},"b":{"type":["integer","null"],"minimum":1},"c":{"type":["string","null"],"enum":["x","y",null]},"d":{"type":["string","null"]}},"required":["a","b","c","d"],"additionalProperties":false}"#
    );
}

#[test]
fn unsupported_constraints_are_dropped() {
    assert_eq!(property(json!({ "type": "string", "minLength": 3, "default": "x" })), r#"{"type":"string"}"#);
    assert_eq!(property(json!({ "type": "string", "format": "uri" })), r#"{"type":"string"}"#);
    assert_eq!(
        property(json!({ "type": "string", "format": "date" })),
        r#"{"type":"string","format":"date"}"#
    );
    assert_eq!(property(json!({ "type": "string", "pattern": "^a(?=b)" })), r#"{"type":"string"}"#);
    assert_eq!(property(json!({ "type": "string", "pattern": "^a" })), r#"{"type":"string","pattern":"^a"}"#);
    assert_eq!(property(json!({ "const": 1 })), r#"{"type":"integer","enum":[1]}"#);
    assert_eq!(
        property(json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] })),
        r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#
    );
    assert_eq!(
        property(
            json!({ "type": "array", "items": { "type": "number" }, "minItems": 1, "uniqueItems": true })
        ),
        r#"{"type":"array","minItems":1,"items":{"type":"number"}}"#
    );
}

#[test]
fn unsupported_schemas_are_rejected() {
    for schema in [
        json!(true),
        json!({}),
        json!({ "type": "array", "items": { "type": "string" } }),
        json!({ "type": "object" }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": true }),
        json!({ "type": "object", "properties": { "a": {} } }),
        json!({ "type": "object", "properties": { "a": { "type": "array" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "array", "prefixItems": [] } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/properties/b" } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "other.json" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["b"] }),
    ] {
        assert_eq!(kept(schema.clone()), "-", "{schema}");
    }
    let mut deep = json!({ "type": "string" });
    for _ in 0..12 {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    assert_eq!(kept(deep), "-");
}

#[test]
fn used_definitions_are_kept() {
    assert_eq!(
        kept(json!({
            "type": "object",
            "required": ["tree"],
            "properties": { "tree": { "$ref": "#/definitions/node" }, "more": { "$ref": "#/definitions/leaf" } },
            "definitions": {
                "node": {
                    "type": "object",
                    "required": ["children"],
                    "properties": { "children": { "type": "array", "items": { "$ref": "#/definitions/node" } } },
                },
                "leaf": { "type": "string" },
                "unused": { "type": "object" },
            },
        })),
        concat!(
            r##"{"type":"object","properties":{"tree":{"$ref":"#/$defs/node"},"##,
            r##""more":{"anyOf":[{"$ref":"#/$defs/leaf"},{"type":"null"}]}},"##,
            r##""required":["tree","more"],"additionalProperties":false,"##,
            r##""$defs":{"node":{"type":"object","properties":{"children":{"type":"array","##,
            r##""items":{"$ref":"#/$defs/node"}}},"required":["children"],"additionalProperties":false},"##,
            r##""leaf":{"type":"string"}}}"##
        )
    );
}

#[test]
fn all_of_parts_are_merged() {
    let whole = json!({
        "type": "object",
        "allOf": [{ "$ref": "#/$defs/base" }],
        "required": ["b"],
        "properties": { "b": { "type": "string" } },
        "$defs": {
            "base": { "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } },
        },
    });
    assert_eq!(
        kept(whole),
        r#"{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["b","a"],"additionalProperties":false}"#
    );
    let closed = json!({
        "type": "object",
        "allOf": [{ "properties": { "a": { "type": "integer" }, "c": { "type": "integer" } } }],
        "properties": { "a": { "type": "integer" } },
        "additionalProperties": false,
    });
    assert_eq!(
        kept(closed),
        r#"{"type":"object","properties":{"a":{"type":["integer","null"]}},"required":["a"],"additionalProperties":false}"#
    );
    let conditional = json!({
        "type": "object",
        "allOf": [{ "if": { "properties": {} } }],
        "properties": { "a": { "type": "integer" } },
    });
    assert_eq!(kept(conditional), "-");
}

#[test]
fn nulls_of_absent_properties_are_pruned() {
    let schema = json!({
        "type": "object",
        "required": ["list", "must"],
        "properties": {
            "must": { "type": ["string", "null"] },
            "may": { "type": "string" },
            "either": { "type": ["string", "null"] },
            "list": { "type": "array", "items": { "$ref": "#/$defs/item" } },
        },
        "$defs": { "item": { "type": "object", "properties": { "x": { "type": "integer" } } } },
    });
    let mut value = json!({ "must": null, "may": null, "either": null, "list": [{ "x": null }, { "x": 1 }], "new": null });
    prune_absent_nulls(&mut value, &schema);
    assert_eq!(value, json!({ "must": null, "either": null, "list": [{}, { "x": 1 }], "new": null }));
}

#[test]
fn alternatives_with_optional_properties_are_rejected() {
    let either = |required: Value| {
        json!({ "anyOf": [
            { "type": "object", "properties": { "x": { "type": "integer" } }, "required": required },
            { "type": "string" },
        ] })
    };
    assert_eq!(property(either(json!([]))), "-");
    assert_ne!(property(either(json!(["x"]))), "-");
}
