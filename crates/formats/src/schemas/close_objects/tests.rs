use super::close_object_schemas;
use cuegate_flow::model::Schema;
use serde_json::{Value, json};

fn closed(mut schema: Value) -> Value {
    close_object_schemas(&mut schema);
    schema
}

#[test]
fn an_object_is_closed_around_all_that_is_said_of_it() {
    let schema = closed(json!({
        "type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["a", "b"]}},
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}, "left": {"type": "string"}}, "required": ["left"]},
            {"properties": {"kind": {"const": "b"}}}
        ],
        "if": {"type": "object", "properties": {"kind": {"const": "b"}}},
        "then": {"properties": {"right": {"type": "object", "properties": {"x": {}}}}, "required": ["right"]}
    }));
    let schema = Schema::new(schema).unwrap();
    let fits = |value| schema.problems(&value).is_empty();
    assert!(fits(json!({"kind": "a", "left": "x"})));
    assert!(fits(json!({"kind": "b", "right": {"x": 1}})));
    assert!(!fits(json!({"kind": "b"})), "`then` still holds");
    assert!(!fits(json!({"kind": "a", "left": "x", "other": 1})), "it is closed");
    assert!(!fits(json!({"kind": "b", "right": {"y": 1}})), "so is what is in it");
}

#[test]
fn schemas_for_names_are_about_the_object_that_has_them() {
    let depends = |inner: Value| {
        let inner = json!({"a": inner, "b": ["a"]});
        let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"a": {}, "b": {}}, "dependencies": inner});
        closed(schema)
    };
    let schema =
        Schema::new(depends(json!({"type": "object", "properties": {"c": {"minLength": 1}}}))).unwrap();
    let fits = |value| schema.problems(&value).is_empty();
    assert!(fits(json!({"a": 1, "b": 2, "c": "x"})), "`c` is named beside");
    assert!(!fits(json!({"a": 1, "c": ""})), "what is said of `c` holds");
    assert!(!fits(json!({"b": 2})), "so does the list of names");
    assert!(!fits(json!({"a": 1, "other": 2})), "it is closed");
    let open = depends(json!({"patternProperties": {"^x-": {}}}));
    assert!(open.get("additionalProperties").is_none());
}

#[test]
fn objects_in_parts_are_closed_where_the_whole_names_them() {
    let inner = |kind: &str| json!({"type": "object", "properties": {"kind": {"const": kind}}});
    let whole = |beside: Value| {
        let mut whole = json!({"type": "object", "required": ["next"], "properties": {
            "next": {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "why": {"type": "string"}}},
            "plan": {"type": "string"}}});
        whole.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        Schema::new(closed(whole)).unwrap()
    };
    let fits = |schema: &Schema, value: Value| schema.problems(&value).is_empty();
    let says = |kind: &str| json!({"properties": {"next": inner(kind)}});
    let a = |rest: Value| {
        let mut answer = json!({"next": {"kind": "a", "why": "so"}});
        answer.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        answer
    };
    let schema = whole(json!({"if": says("a"), "then": {"required": ["plan"]}}));
    assert!(!fits(&schema, a(json!({}))), "what tells apart is not closed: `then` holds");
    assert!(fits(&schema, a(json!({"plan": "x"}))));
    let schema = whole(json!({"not": says("a")}));
    assert!(!fits(&schema, a(json!({}))));
    let schema = whole(json!({"oneOf": [says("a"), says("b")]}));
    assert!(fits(&schema, a(json!({}))), "`why` is named by the whole");
    let more = json!({"next": {"kind": "a", "other": 1}});
    assert!(!fits(&schema, more.clone()), "it is closed");
    let extra =
        json!({"properties": {"next": {"type": "object", "properties": {"other": {"type": "integer"}}}}});
    let schema = whole(json!({"anyOf": [extra, says("b")]}));
    assert!(fits(&schema, more), "what a part names in it is named");
    assert!(!fits(&schema, json!({"next": {"kind": "a", "another": 1}})));
}

#[test]
fn alternatives_are_closed_each_by_itself() {
    let one = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}});
    let schema = Schema::new(closed(json!({"anyOf": [one("a"), one("b")]}))).unwrap();
    assert!(schema.problems(&json!({"a": "x"})).is_empty());
    assert!(!schema.problems(&json!({"a": "x", "b": "y"})).is_empty());
}

#[test]
fn where_names_cannot_be_listed_it_stays_open() {
    let schema = closed(json!({
        "type": "object", "properties": {"a": {}}, "allOf": [{"patternProperties": {"^x-": {}}}]
    }));
    assert!(schema.get("additionalProperties").is_none());
}

/// What fits a schema before and after it is closed.
#[track_caller]
fn still_fits(schema: Value, value: Value) {
    let open = Schema::new(schema.clone()).unwrap();
    assert!(open.problems(&value).is_empty(), "it fits while open");
    let shut = Schema::new(closed(schema)).unwrap();
    assert_eq!(shut.problems(&value), Vec::<String>::new(), "{}", shut.value());
}

#[track_caller]
fn fits_no_more(schema: Value, value: Value) {
    let shut = Schema::new(closed(schema)).unwrap();
    assert!(!shut.problems(&value).is_empty(), "{}", shut.value());
}

fn object(names: &[&str]) -> Value {
    let named: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    json!({"type": "object", "required": names, "properties": named})
}

#[test]
fn one_object_of_several_schemas_has_the_names_of_all() {
    let answer = json!({"next": {"a": 1, "b": 2}});
    let says = |inner: Value| json!({"properties": {"next": inner}});
    for schema in [
        json!({"type": "object", "allOf": [says(object(&["a"])), says(object(&["b"]))]}),
        json!({"allOf": [{"anyOf": [says(object(&["a"])), {"required": ["x"]}]}, says(object(&["b"]))]}),
        json!({"properties": {"next": {"anyOf": [{"type": "null"}, object(&["a"])]}}, "required": ["next"],
            "then": says(object(&["b"])), "if": {"required": ["next"]}}),
        json!({"properties": {"next": {"type": ["object", "null"], "properties": {"a": {}}}},
            "anyOf": [says(object(&["b"]))]}),
        json!({"allOf": [says(object(&["a"])), {"additionalProperties": object(&["b"])}]}),
        json!({"properties": {"next": object(&["a"])}, "patternProperties": {"^n": object(&["b"])}}),
        json!({"patternProperties": {"^n": object(&["a"]), "t$": object(&["b"])}}),
    ] {
        still_fits(schema.clone(), answer.clone());
        fits_no_more(schema, json!({"next": {"a": 1, "b": 2, "c": 3}}));
    }
}

#[test]
fn items_that_several_schemas_speak_of_have_the_names_of_all() {
    let answer = json!({"list": [{"a": 1, "b": 2}]});
    let says = |inner: Value| json!({"type": "object", "properties": {"list": inner}});
    let whole = |inner: Value, beside: Value| {
        let mut whole = says(inner);
        whole.as_object_mut().unwrap().insert("anyOf".to_owned(), json!([says(beside)]));
        whole
    };
    for schema in [
        whole(json!({"items": object(&["a"])}), json!({"items": object(&["b"])})),
        whole(json!({"items": object(&["a"])}), json!({"prefixItems": [object(&["b"])]})),
        says(json!({"items": object(&["a"]), "contains": object(&["b"])})),
    ] {
        still_fits(schema.clone(), answer.clone());
        fits_no_more(schema, json!({"list": [{"a": 1, "b": 2, "c": 3}]}));
    }
    let schema = whole(
        json!({"prefixItems": [{}], "items": object(&["a"])}),
        json!({"prefixItems": [object(&["b"])]}),
    );
    still_fits(schema, json!({"list": [{"b": 2}, {"a": 1}]}));
}

#[test]
fn what_too_many_schemas_speak_of_stays_open() {
    let many: Vec<Value> = (0..2_000).map(|n| object(&[&format!("p{n}")])).collect();
    let schema = closed(json!({"anyOf": many}));
    assert!(schema["anyOf"][0].get("additionalProperties").is_none());
}
