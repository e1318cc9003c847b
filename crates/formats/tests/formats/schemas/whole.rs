//! What a schema says as a whole, around what a gate reads and what is handed on, and in the files it is written in.

use crate::support::{self, broken, edit, says};

const REQUIRED: &str = r#""type": "object", "required": ["next_action", "plan"],"#;
const TEXT: &str = r#""approach": { "type": "string" }"#;

#[test]
fn what_is_certain_without_being_required() {
    let leaves = |beside: &str| {
        broken(&[(REQUIRED, &format!(r#""type": "object", "required": ["next_action"], {beside}"#))])
    };
    says(&leaves(""), &["warning[maybe-unassigned]"]);
    for beside in [
        r#""minProperties": 2,"#,
        r#""dependencies": { "next_action": ["plan"] },"#,
        r#""dependentRequired": { "next_action": ["plan"] },"#,
    ] {
        assert_eq!(leaves(beside), "", "{beside}");
    }
    says(&leaves(r#""minProperties": 1,"#), &["warning[maybe-unassigned]"]);
}

#[test]
fn what_bars_an_intent() {
    let says_word = |word: &str| {
        format!(
            r#"{{ "properties": {{ "next_action": {{ "properties": {{ "action": {{ "const": "{word}" }} }} }} }} }}"#
        )
    };
    let (next, repeat, other) = (says_word("next"), says_word("repeat"), says_word("other"));
    let with = |beside: String| broken(&[(REQUIRED, &format!("{beside}, {REQUIRED}"))]);
    for beside in [
        format!(r#""anyOf": [{repeat}, {other}]"#),
        format!(r#""oneOf": [{repeat}, {other}]"#),
        format!(r#""not": {next}"#),
        format!(r#""if": {next}, "then": false"#),
        r#""enum": [{ "next_action": { "action": "repeat" }, "plan": { "approach": "x" } }]"#.to_owned(),
    ] {
        says(
            &with(beside),
            &[
                "steps_registry.json:34:28 error[schema-gate-mismatch]: the schema of `initial.fix` lists `next`",
            ],
        );
    }
    for beside in [
        format!(r#""anyOf": [{next}, {repeat}]"#),
        format!(r#""oneOf": [{next}, {repeat}, {other}]"#),
        format!(r#""not": {other}"#),
        format!(r#""if": {next}, "then": {{ "required": ["plan"] }}"#),
    ] {
        assert_eq!(with(beside.clone()), "", "{beside}");
    }
    let parent = r#""next_action": { "type": "object", "required": ["action"], "properties": {
          "action": { "type": "string", "enum": ["next", "repeat"] }, "reason""#;
    let within = parent.replacen("{ \"type\"", "{ \"const\": { \"action\": \"next\" }, \"type\"", 1);
    says(&broken(&[(parent, &within)]), &["the schema of `initial.fix` lists `repeat`"]);
}

/// What holds the field may be left out, and nothing fits it.
#[test]
fn what_keeps_the_field_out_of_every_answer() {
    let action = r#"{ "type": "object", "required": ["action"], "properties": {
          "action": { "type": "string", "enum": ["next", "repeat"] }, "reason""#;
    let barred = |parent: &str| {
        let changed = action.replace(r#""required": ["action"],"#, parent);
        broken(&[(REQUIRED, r#""type": "object", "required": ["plan"],"#), (action, &changed)])
    };
    for parent in
        [r#""required": ["status"],"#, r#""maxProperties": 0,"#, r#""not": { "required": ["action"] },"#]
    {
        says(&barred(parent), &["error[schema-gate-mismatch]: "]);
    }
    says(&barred(""), &["warning[schema-gate-mismatch]"]);
}

/// That an agent gives up is always allowed; where a gate says so itself, its schema has to let it.
#[test]
fn what_bars_an_abort_that_is_allowed() {
    let beside = REQUIRED.to_owned()
        + r#" "not": { "properties": { "next_action": { "properties": { "action": { "const": "abort" } } } } },"#;
    assert_eq!(broken(&[(REQUIRED, &beside)]), "");
    let allowed = r#""allowedIntents": ["next", "repeat"]"#;
    let found = broken(&[(REQUIRED, &beside), (allowed, r#""allowedIntents": ["next", "repeat", "abort"]"#)]);
    says(&found, &["error[schema-gate-mismatch]: the schema of `initial.fix` lists `abort`"]);
}

#[test]
fn what_admits_no_value() {
    let with = |rest: &str| broken(&[(TEXT, &format!(r#""approach": {{ {rest} }}"#))]);
    for (rest, why) in [
        (r#""type": "integer", "minimum": 1.2, "maximum": 1.8"#, "has no whole number from"),
        (r#""type": "integer", "minimum": 1, "maximum": 4, "multipleOf": 5"#, "has no multiple of 5 from"),
        (r#""type": "string", "pattern": "^abc$", "minLength": 5"#, "which takes 3 characters"),
    ] {
        says(&with(rest), &["error[impossible-schema]", "`/properties/plan/properties/approach`", why]);
    }
    let names = r#""propertyNames": { "enum": ["next_action"] },"#;
    let found = broken(&[(REQUIRED, &format!("{names} {REQUIRED}"))]);
    says(&found, &["error[impossible-schema]", "it requires `plan`, which its `propertyNames` refuses"]);
}

#[test]
fn a_reference_is_wrong_where_it_stands() {
    let with = |reference: &str| broken(&[(TEXT, &format!(r#""approach": {{ "$ref": "{reference}" }}"#))]);
    for (reference, says_it) in [
        ("#/$defs/nowhere", "no schema `#/$defs/nowhere`"),
        ("#/$defs/initial.fix", "leads back to itself"),
        ("other.json#/x", "no schema file"),
        ("https://example.org/x.json", "schemas are never fetched"),
    ] {
        says(&with(reference), &["fix.json:8:101 error[unresolved-schema]", says_it]);
    }
}

/// What several steps name is wrong once, in its own file.
#[test]
fn a_schema_of_several_steps_is_wrong_once() {
    let shared =
        edit(&support::sound(), r##""schema": "#/$defs/closure.fix""##, r#""schema": "continuation.fix""#);
    for (text, code) in [
        (r##"{ "$ref": "#/$defs/nowhere" }"##, "unresolved-schema"),
        (r#"{ "enum": [] }"#, "impossible-schema"),
        (r#"{ "type": "strng" }"#, "unresolved-schema"),
    ] {
        let required = edit(
            &shared,
            r#""type": "object", "required": ["next_action"],
      "properties": {
        "next_action": { "type": "object", "required": ["action"], "properties": {
          "action": { "type": "string", "enum": ["repeat", "handoff"] } } },"#,
            &format!(
                r#""type": "object", "required": ["next_action", "x"],
      "properties": {{ "x": {text},
        "next_action": {{ "type": "object", "required": ["action"], "properties": {{
          "action": {{ "type": "string", "enum": ["repeat", "handoff"] }} }} }},"#
            ),
        );
        let found = support::findings(&required, support::DIR);
        says(&found, &["fix.json:13:", code]);
        assert!(!found.contains("closure.fix"), "{found}");
    }
}

/// What schemas refer to is wrong once, where it is defined: in the same file, in another one, or as a part of all of them.
#[test]
fn a_definition_that_schemas_share_is_wrong_where_it_stands() {
    let part = r#""next_action": { "type": "object", "required": ["action"], "properties": {"#;
    let with = |reference: &str, common: &str| {
        let user = format!(r#""summary": {{ "$ref": "{reference}#/definitions/common" }}, {part}"#);
        let mut files = support::sound();
        for (path, bytes) in files.iter_mut().filter(|(path, _)| path.ends_with("fix.json")) {
            let text = String::from_utf8(bytes.clone()).unwrap().replace(part, &user);
            let text =
                text.replace(r#""required": ["next_action""#, r#""required": ["summary", "next_action""#);
            assert!(text.matches("\"summary\": { \"$ref\"").count() > 1, "several use it: {path}");
            let own = format!("{{\n\"definitions\": {{ \"common\": {common} }},{}", &text[1..]);
            *bytes = if reference.is_empty() { own } else { text }.into_bytes();
        }
        let folder = files.keys().find_map(|path| path.strip_suffix("fix.json")).unwrap().to_owned();
        if !reference.is_empty() {
            let common = format!("{{ \"definitions\": {{\n\"common\": {common} }} }}");
            files.insert(format!("{folder}{reference}"), common.into_bytes());
        }
        support::findings(&files, support::DIR)
    };
    for (common, at, code) in [
        (r#"{ "type": "string", "minLength": 5, "maxLength": 2 }"#, 0, "the schema `common`: it "),
        (r#"{ "type": "strin" }"#, 12, "`common` is not a valid JSON Schema"),
    ] {
        says(&with("", common), &[&format!("fix.json:2:{} error", 18 + at), code]);
        says(&with("common.json", common), &[&format!("common.json:2:{} error", 1 + at), code]);
    }
    assert_eq!(with("", r#"{ "type": "string" }"#), "");
}

const OLDER: &str = "http://json-schema.org/draft-07/schema#";
const NEWER: &str = "https://json-schema.org/draft/2020-12/schema";

/// What is found where `plan` is described so, read by a draft, and the next step needs what stands at a path of it.
fn reads(draft: &str, plan: &str, at: &str, edits: &[(&str, &str)]) -> String {
    let own = r#""plan": { "type": "object", "required": ["approach"], "properties": { "approach": { "type": "string" } } }"#;
    let (schema, plan) = (format!("\"$schema\": \"{draft}\", \"$defs\": {{"), format!("\"plan\": {plan}"));
    let (handoff, input) = (format!("[\"{at}\"]"), format!("{{ \"from\": \"initial.fix.{at}\" }}"));
    let mut all = vec![
        (own, &*plan),
        ("\"$defs\": {", &schema),
        (r#"["plan.approach"]"#, &handoff),
        (r#"{ "from": "initial.fix.approach" }"#, &input),
        (" / {uv-initial_fix_approach}", ""),
    ];
    all.extend(edits);
    broken(&all)
}

#[test]
fn what_stands_in_lists_and_open_maps() {
    for (draft, plan, at) in [
        (NEWER, r#"{ "type": "array", "minItems": 1, "prefixItems": [{ "type": "string" }] }"#, "plan.0"),
        (
            NEWER,
            r#"{ "type": "array", "minItems": 2, "prefixItems": [{}], "items": { "type": "string" } }"#,
            "plan.1",
        ),
        (OLDER, r#"{ "type": "array", "minItems": 1, "items": [{ "type": "string" }] }"#, "plan.0"),
        (
            OLDER,
            r#"{ "type": "object", "required": ["x"], "additionalProperties": { "type": "string" } }"#,
            "plan.x",
        ),
        (
            OLDER,
            r#"{ "type": "object", "required": ["x"], "patternProperties": { "^x$": { "type": "string" } },
                "additionalProperties": false }"#,
            "plan.x",
        ),
        (OLDER, r#"{ "enum": [{ "x": "a" }, { "x": "b" }] }"#, "plan.x"),
        (OLDER, r#"{ "const": { "x": "a" } }"#, "plan.x"),
    ] {
        assert_eq!(reads(draft, plan, at, &[]), "", "{plan}");
    }
    // Without `items` a list holds anything, `null` too.
    let found = reads(OLDER, r#"{ "type": "array", "minItems": 1 }"#, "plan.0", &[]);
    says(&found, &["warning[maybe-unassigned]", "allows `null` there"]);
    let found = reads(OLDER, r#"{ "enum": [{ "x": "a" }, { "x": "b" }] }"#, "plan.y", &[]);
    says(&found, &["error[schema-gate-mismatch]: handoff field `plan.y` of `initial.fix`"]);
    let found =
        reads(NEWER, r#"{ "type": "array", "minItems": 1, "items": { "type": "null" } }"#, "plan.0", &[]);
    assert!(found.contains("always `null`"), "{found}");
    let first = r#"{ "type": "array", "minItems": 1, "prefixItems": [{ "enum": ["x", null] }], "items": { "type": "null" } }"#;
    says(&reads(NEWER, first, "plan.0", &[]), &["warning[maybe-unassigned]", "allows `null` there"]);
}

#[test]
fn what_selects_stands_at_its_own_place() {
    let selects = |draft: &str, plan: &str, at: &str, case: &str| {
        let next = format!(
            r#""next": {{ "condition": "{at}", "targets": {{ "{case}": "continuation.fix", "a": "continuation.fix" }} }}"#
        );
        reads(draft, plan, at, &[(r#""next": { "target": "continuation.fix" }"#, &next)])
    };
    let apart = r#"{ "type": "array", "minItems": 2, "prefixItems": [{ "enum": ["a", "b"] }], "items": { "enum": ["a", "c"] } }"#;
    assert_eq!(selects(NEWER, apart, "plan.0", "b"), "");
    assert_eq!(selects(NEWER, apart, "plan.1", "c"), "");
    assert!(selects(NEWER, apart, "plan.0", "c").contains("[unreachable-transition]: `plan.0` is never `c`"));
    let tuple = r#"{ "type": "array", "minItems": 1, "items": [{ "enum": ["a", "b"] }] }"#;
    assert_eq!(selects(OLDER, tuple, "plan.0", "b"), "");
    let map = r#"{ "type": "object", "required": ["x"], "additionalProperties": { "enum": ["a", "b"] } }"#;
    assert_eq!(selects(OLDER, map, "plan.x", "b"), "");
}

#[test]
fn what_the_rest_excludes() {
    for (rest, why) in [
        (r#""not": { "required": ["plan"] },"#, "it has a `not` that excludes every object"),
        (r#""not": { "minProperties": 2 },"#, "it has a `not` that excludes every object"),
        (r#""oneOf": [{ "minProperties": 5 }],"#, "it has a `oneOf` of which never just one part"),
    ] {
        let found = broken(&[(REQUIRED, &format!("{rest} {REQUIRED}"))]);
        says(&found, &["error[impossible-schema]: no answer fits the schema `initial.fix`", why]);
    }
    let barring = r#""if": { "required": ["plan"], "properties": { "next_action": { "properties": { "action": { "const": "next" } } } } },
        "then": { "propertyNames": { "maxLength": 4 } },"#;
    let found = broken(&[(REQUIRED, &format!("{barring} {REQUIRED}"))]);
    says(&found, &["error[schema-gate-mismatch]: the schema of `initial.fix` lists `next`"]);
}
