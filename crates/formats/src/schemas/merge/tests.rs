use super::{PropertyMergeMode, merge_schemas};
use cuegate_flow::model::Schema;
use serde_json::{Value, json};

fn merged(parts: &[Value]) -> Value {
    let (own, bases) = parts.split_last().expect("at least one");
    Value::Object(merge_schemas(
        bases.to_vec(),
        own.as_object().expect("a schema").clone(),
        PropertyMergeMode::Together,
    ))
}

#[test]
fn one_keyword_says_what_two_do() {
    for (parts, expected) in [
        (
            json!([{"minLength": 3}, {"minLength": 5, "maxLength": 9}, {"maxLength": 7}]),
            json!({"minLength": 5, "maxLength": 7}),
        ),
        (json!([{"type": ["string", "null"]}, {"type": "string"}]), json!({"type": "string"})),
        (json!([{"type": "number"}, {"type": ["integer", "null"]}]), json!({"type": "integer"})),
        (json!([{"enum": ["a", "b", "c"]}, {"enum": ["c", "b", "x"]}]), json!({"enum": ["c", "b"]})),
        (json!([{"minimum": 1}, {"minimum": 1.5}]), json!({"minimum": 1.5})),
        (json!([{"required": ["a"]}, {"required": ["b", "a"]}]), json!({"required": ["a", "b"]})),
        (
            json!([{"items": {"type": "string"}}, {"items": {"minLength": 1}}]),
            json!({"items": {"type": "string", "minLength": 1}}),
        ),
        (
            json!([{"if": {"minLength": 1}, "then": false}, {"if": {"minLength": 1}, "then": false}]),
            json!({"if": {"minLength": 1}, "then": false}),
        ),
        (json!([{"title": "a"}, {"title": "b"}]), json!({"title": "a"})),
        (
            json!([{"patternProperties": {"^a": {"type": "string"}}}, {"patternProperties": {"^a": {"maxLength": 2}, "^b": true}}]),
            json!({"patternProperties": {"^a": {"type": "string", "maxLength": 2}, "^b": true}}),
        ),
        (
            json!([true, {"properties": {"a": true}}, {"properties": {"a": {"type": "null"}}}]),
            json!({"properties": {"a": {"type": "null"}}}),
        ),
    ] {
        assert_eq!(merged(parts.as_array().expect("parts")), expected, "{parts}");
    }
}

#[test]
fn what_is_said_of_a_property_holds_together() {
    let base = json!({"properties": {"plan": {"type": "string", "minLength": 20, "description": "general", "title": "x"},
        "size": {"enum": ["s", "m", "l"]}, "more": {"type": "object", "properties": {"a": {}}, "required": ["a"]}}});
    let own = json!({"properties": {"plan": {"description": "this one"}, "size": {"type": "string"},
        "more": {"properties": {"b": {"type": "null"}}}}});
    assert_eq!(
        merged(&[base, own]),
        json!({"properties": {
        "plan": {"type": "string", "minLength": 20, "description": "this one"},
        "size": {"enum": ["s", "m", "l"], "type": "string"},
        "more": {"type": "object", "properties": {"a": {}, "b": {"type": "null"}}, "required": ["a"]}}})
    );
}

#[test]
fn what_a_step_says_anew_of_a_property_counts() {
    let base = json!({"properties": {"plan": {"type": "string", "minLength": 20}, "size": {"enum": ["s"]}}});
    let own = json!({"properties": {"plan": {"type": "string"}}}).as_object().expect("one").clone();
    let expected = json!({"properties": {"plan": {"type": "string"}, "size": {"enum": ["s"]}}});
    assert_eq!(Value::Object(merge_schemas(vec![base], own, PropertyMergeMode::Anew)), expected);
}

#[test]
fn what_no_keyword_can_say_is_kept() {
    for (parts, expected) in [
        (json!([{"pattern": "a"}, {"pattern": "b"}]), json!({"pattern": "a", "allOf": [{"pattern": "b"}]})),
        (
            json!([{"type": "string"}, {"type": "null", "title": "x"}]),
            json!({"type": "string", "title": "x", "allOf": [{"type": "null"}]}),
        ),
        (json!([{"enum": ["a"]}, {"enum": ["b"]}]), json!({"enum": ["a"], "allOf": [{"enum": ["b"]}]})),
        (json!([{"enum": [1]}, {"enum": [1.0]}]), json!({"enum": [1], "allOf": [{"enum": [1.0]}]})),
        (
            json!([{"if": {"minLength": 1}, "then": false}, {"if": {"minLength": 2}, "else": false}]),
            json!({"if": {"minLength": 1}, "then": false, "allOf": [{"if": {"minLength": 2}, "else": false}]}),
        ),
        (
            json!([{"minimum": 1, "exclusiveMinimum": true}, {"minimum": 1}]),
            json!({"minimum": 1, "exclusiveMinimum": true, "allOf": [{"minimum": 1}]}),
        ),
        (
            json!([{"prefixItems": [{}], "items": false}, {"items": {"type": "string"}}]),
            json!({"prefixItems": [{}], "items": false, "allOf": [{"items": {"type": "string"}}]}),
        ),
        (
            json!([{"allOf": [{"not": {}}]}, false, {"pattern": "a"}]),
            json!({"pattern": "a", "allOf": [{"not": {}}, false]}),
        ),
    ] {
        assert_eq!(merged(parts.as_array().expect("parts")), expected, "{parts}");
    }
}

/// Some schemas of keywords that meet each other.
fn some() -> Vec<Value> {
    let inner = [
        json!({"type": "string"}),
        json!({"enum": ["a", "bb", 1]}),
        json!({"minimum": 2}),
        json!(true),
        json!({"const": 1}),
    ];
    let mut all: Vec<Value> = inner.to_vec();
    for schema in &inner {
        all.push(json!({"properties": {"p": schema}}));
        all.push(json!({"items": schema}));
        all.push(json!({"items": schema, "prefixItems": [{"type": "number"}]}));
        all.push(json!({"if": schema, "then": {"type": "string"}}));
        all.push(json!({"contains": schema, "minContains": 2}));
        all.push(json!({"type": ["array", "object", "integer"], "maxItems": 2, "not": schema}));
    }
    all
}

#[test]
fn what_is_merged_says_what_its_parts_say() {
    let values = [
        json!("a"),
        json!("bb"),
        json!("c"),
        json!(1),
        json!(2),
        json!(3.5),
        json!(null),
        json!({}),
        json!({"p": "a"}),
        json!({"p": 1}),
        json!({"p": 2}),
        json!({"p": null}),
        json!([]),
        json!(["a"]),
        json!([1, 1]),
        json!([1, "a"]),
        json!([1, "a", "bb"]),
        json!(["x"]),
        json!([3, 1, 1]),
    ];
    let fits = |schema: &Value, value: &Value| {
        Schema::new(schema.clone()).expect("it compiles").problems(value).is_empty()
    };
    for one in some() {
        for other in some() {
            let Value::Object(own) = &other else { continue };
            let both =
                Value::Object(merge_schemas(vec![one.clone()], own.clone(), PropertyMergeMode::Together));
            for value in &values {
                let expected = fits(&one, value) && fits(&other, value);
                assert_eq!(fits(&both, value), expected, "{value} in {both} of {one} and {other}");
            }
        }
    }
}

/// Schemas that say something of what they do not name.
fn of_others() -> Vec<Value> {
    let parts = json!([
        {"additionalProperties": {"type": "string"}},
        {"properties": {"p": {"type": "integer"}}},
        {"properties": {"p": true, "q": {"type": "null"}}, "additionalProperties": {"maxLength": 1}},
        {"patternProperties": {"^q": {"type": "null"}}, "additionalProperties": {"type": "integer"}},
        {"patternProperties": {"^p": {"type": "integer"}}},
        {"properties": {"p": true}, "unevaluatedProperties": false},
        {"unevaluatedProperties": {"type": "string"}},
        {"additionalProperties": true},
        {"anyOf": [{"properties": {"r": {"type": "string"}}}, {"required": ["q"]}]},
        {"prefixItems": [{}, {}]},
        {"unevaluatedItems": false},
        {"prefixItems": [{"type": "string"}], "unevaluatedItems": {"type": "integer"}},
        {"items": {"type": "string"}},
        {"contains": {"const": "a"}},
        {"anyOf": [{"prefixItems": [true]}, {"minItems": 3}]}
    ]);
    parts.as_array().expect("parts").clone()
}

#[test]
fn what_is_said_of_others_is_what_a_validator_takes_it_for() {
    let values = json!([
        {}, {"p": 1}, {"p": "a"}, {"p": "bb"}, {"q": null}, {"q": "bb"}, {"q": 1}, {"r": "bb"}, {"r": 3},
        {"p": 1, "r": "x"}, {"p": 1, "q": null}, {"q": null, "r": "xx"},
        [], ["a"], ["a", 1], ["a", "b"], [1, 2, 3], ["a", "b", "c"], ["a", "b", 1]
    ]);
    let draft = "https://json-schema.org/draft/2020-12/schema";
    for base in of_others() {
        for own in of_others() {
            let own = own.as_object().expect("a schema");
            let mut written = json!({"$schema": draft, "$defs": {"base": base}, "$ref": "#/$defs/base"});
            written.as_object_mut().expect("a schema").extend(own.clone());
            let mut both =
                Value::Object(merge_schemas(vec![base.clone()], own.clone(), PropertyMergeMode::Together));
            both["$schema"] = draft.into();
            let compiled = |schema: &Value| Schema::new(schema.clone()).expect("it compiles");
            let (written, merged) = (compiled(&written), compiled(&both));
            for value in values.as_array().expect("values") {
                let expected = written.problems(value).is_empty();
                assert_eq!(merged.problems(value).is_empty(), expected, "{value} in {both} of {written:?}");
            }
        }
    }
}

/// Closed is what is merged around all that its parts name, whichever part is closed.
#[test]
fn what_is_closed_stays_closed() {
    let closed = |name: &str, rest: Value| json!({"properties": {name: true}, "additionalProperties": rest});
    for (base, own) in [
        (closed("a", json!(false)), json!({"properties": {"b": true}})),
        (closed("a", json!(true)), closed("b", json!(false))),
        (closed("a", json!({"type": "null"})), closed("b", json!(false))),
        (closed("a", json!(false)), closed("b", json!({"type": "null"}))),
    ] {
        let schema = merged(&[base, own]);
        assert_eq!(schema["additionalProperties"], false, "{schema}");
        let fits = |value: Value| Schema::new(schema.clone()).expect("one").problems(&value).is_empty();
        assert!(fits(json!({"a": null, "b": null})) && !fits(json!({"c": null})), "{schema}");
    }
}

#[test]
fn types_of_parts_hold_together() {
    let parts = |types: [&str; 2]| {
        let part = |kind: &str| json!({"type": kind}).as_object().expect("one").clone();
        Schema::new(Value::Object(merge_schemas(
            vec![Value::Object(part(types[0]))],
            part(types[1]),
            PropertyMergeMode::Anew,
        )))
        .unwrap()
    };
    assert!(parts(["string", "string"]).problems(&json!("x")).is_empty());
    assert!(parts(["integer", "number"]).problems(&json!(1)).is_empty());
    for value in [json!("x"), json!(1)] {
        assert!(!parts(["string", "integer"]).problems(&value).is_empty(), "{value}");
    }
}
