//! Values that select a target, against what a schema lets answers hold: each value has to lead somewhere, and each
//! case has to be a value.

use insta::assert_snapshot;

use crate::support::{DIR, edit, findings, sound};

/// What is found when the field `status` of an answer has this schema and selects among these values.
fn selects(schema: &str, values: &str, required: bool) -> String {
    let cases: Vec<String> =
        values.split_whitespace().map(|value| format!("\"{value}\": \"initial.fix\"")).collect();
    let rule =
        format!("\"repeat\": {{ \"condition\": \"status\", \"targets\": {{ {} }} }}", cases.join(", "));
    let files = edit(&sound(), "\"repeat\": { \"target\": \"continuation.fix\" }", &rule);
    let files =
        edit(&files, "\"status\": { \"enum\": [\"ready\", \"blocked\"] }", &format!("\"status\": {schema}"));
    let words =
        r##""words": { "enum": ["a", "b"] }, "more": { "allOf": [{ "$ref": "#/words" }] }, "$defs": {"##;
    let files = edit(&files, "\"$defs\": {", words);
    let from = "\"continuation.fix\": {\n      \"type\": \"object\", \"required\": [\"next_action\"]";
    let to = from.replace("[\"next_action\"]", "[\"next_action\", \"status\"]");
    let files = if required { edit(&files, from, &to) } else { files };
    let found = findings(&files, DIR);
    let found: String =
        found.lines().map(|line| format!("    {}\n", line.split_once(' ').unwrap().1)).collect();
    format!("{schema} → {values}{}\n{found}", if required { "" } else { " (optional)" })
}

#[test]
fn every_value_leads_somewhere_and_every_case_is_a_value() {
    let all = [
        (r#"{ "enum": ["a", "b"] }"#, "a b"),
        (r#"{ "enum": ["a", "b", "c"] }"#, "a b"),
        (r#"{ "enum": ["a"] }"#, "a b"),
        (r#"{ "enum": ["A", "b"] }"#, "a b"),
        (r#"{ "const": "a" }"#, "a b"),
        (r#"{ "enum": ["a", "b"], "const": "a" }"#, "a b"),
        (r#"{ "enum": [1, 2] }"#, "1 2"),
        (r#"{ "enum": [1, 2] }"#, "1 3 default"),
        (r#"{ "type": "boolean" }"#, "true false"),
        (r#"{ "type": "boolean" }"#, "true"),
        (r#"{ "type": "boolean" }"#, "yes default"),
        (r#"{ "type": ["string", "null"], "enum": ["a", "b", null] }"#, "a b"),
        (r#"{ "type": ["boolean", "null"] }"#, "true false"),
        (r#"{ "anyOf": [{ "enum": ["a", "b"] }, { "type": "null" }] }"#, "a b default"),
        (r#"{ "type": "integer", "minimum": 1, "maximum": 2 }"#, "1 2"),
        (r#"{ "type": "integer", "minimum": 1, "maximum": 3 }"#, "1 2"),
        (r#"{ "type": "integer" }"#, "1 x default"),
        (r#"{ "anyOf": [{ "const": "a" }, { "const": "b" }] }"#, "a b"),
        (r#"{ "oneOf": [{ "enum": ["a"] }, { "enum": ["b", "c"] }] }"#, "a b"),
        (r#"{ "anyOf": [{ "const": "a" }, { "const": "x" }] }"#, "a b"),
        (r#"{ "anyOf": [{ "const": "a" }, { "type": "string" }] }"#, "a b"),
        (r#"{ "allOf": [{ "enum": ["a", "b", "c"] }, { "enum": ["a", "b"] }] }"#, "a b"),
        (r##"{ "$ref": "#/words" }"##, "a b"),
        (r##"{ "$ref": "#/more" }"##, "a b"),
        (r##"{ "$ref": "#/more" }"##, "a c"),
        (r#"{ "type": "string" }"#, "a b"),
        (r#"{ "type": "string", "pattern": "^a" }"#, "a b default"),
        (r#"{ "type": "object" }"#, "a default"),
        (r#"{ "not": { "const": "a" } }"#, "a default"),
    ];
    let mut text: String = all.iter().map(|(schema, values)| selects(schema, values, true)).collect();
    text += &selects(r#"{ "enum": ["a", "b"] }"#, "a b", false);
    text += &selects(r#"{ "enum": ["a", "b"] }"#, "a b default", false);
    assert_snapshot!(text, @r##"
    { "enum": ["a", "b"] } → a b
    { "enum": ["a", "b", "c"] } → a b
        warning[transition-without-default]: `status` can be `c`, which no entry of `targets` names
    { "enum": ["a"] } → a b
        warning[unreachable-transition]: `status` is never `b`, so `initial.fix` is not selected by it
    { "enum": ["A", "b"] } → a b
        warning[transition-without-default]: `status` can be `A`, which no entry of `targets` names
        warning[unreachable-transition]: `status` is never `a`, so `initial.fix` is not selected by it
    { "const": "a" } → a b
        warning[unreachable-transition]: `status` is never `b`, so `initial.fix` is not selected by it
    { "enum": ["a", "b"], "const": "a" } → a b
        warning[unreachable-transition]: `status` is never `b`, so `initial.fix` is not selected by it
    { "enum": [1, 2] } → 1 2
    { "enum": [1, 2] } → 1 3 default
        warning[unreachable-transition]: `status` is never `3`, so `initial.fix` is not selected by it
    { "type": "boolean" } → true false
    { "type": "boolean" } → true
        warning[transition-without-default]: `status` can be `false`, which no entry of `targets` names
    { "type": "boolean" } → yes default
        warning[unreachable-transition]: `status` is never `yes`, so `initial.fix` is not selected by it
    { "type": ["string", "null"], "enum": ["a", "b", null] } → a b
        warning[transition-without-default]: `status` can be `null`, which counts as absent, and then nothing selects
    { "type": ["boolean", "null"] } → true false
        warning[transition-without-default]: `status` can be `null`, which counts as absent, and then nothing selects
    { "anyOf": [{ "enum": ["a", "b"] }, { "type": "null" }] } → a b default
    { "type": "integer", "minimum": 1, "maximum": 2 } → 1 2
    { "type": "integer", "minimum": 1, "maximum": 3 } → 1 2
        warning[transition-without-default]: `status` can be `3`, which no entry of `targets` names
    { "type": "integer" } → 1 x default
        warning[unreachable-transition]: `status` is never `x`, so `initial.fix` is not selected by it
    { "anyOf": [{ "const": "a" }, { "const": "b" }] } → a b
    { "oneOf": [{ "enum": ["a"] }, { "enum": ["b", "c"] }] } → a b
        warning[transition-without-default]: `status` can be `c`, which no entry of `targets` names
    { "anyOf": [{ "const": "a" }, { "const": "x" }] } → a b
        warning[transition-without-default]: `status` can be `x`, which no entry of `targets` names
        warning[unreachable-transition]: `status` is never `b`, so `initial.fix` is not selected by it
    { "anyOf": [{ "const": "a" }, { "type": "string" }] } → a b
        warning[transition-without-default]: `status` can hold a value that no entry of `targets` names
    { "allOf": [{ "enum": ["a", "b", "c"] }, { "enum": ["a", "b"] }] } → a b
    { "$ref": "#/words" } → a b
    { "$ref": "#/more" } → a b
    { "$ref": "#/more" } → a c
        warning[transition-without-default]: `status` can be `b`, which no entry of `targets` names
        warning[unreachable-transition]: `status` is never `c`, so `initial.fix` is not selected by it
    { "type": "string" } → a b
        warning[transition-without-default]: `status` can hold a value that no entry of `targets` names
    { "type": "string", "pattern": "^a" } → a b default
        warning[unreachable-transition]: `status` is never `b`, so `initial.fix` is not selected by it
    { "type": "object" } → a default
        warning[unreachable-transition]: `status` is never `a`, so `initial.fix` is not selected by it
    { "not": { "const": "a" } } → a default
        warning[unreachable-transition]: `status` is never `a`, so `initial.fix` is not selected by it
    { "enum": ["a", "b"] } → a b (optional)
        warning[transition-without-default]: an answer need not have `status`, and then nothing selects
    { "enum": ["a", "b"] } → a b default (optional)
    "##);
}
