//! What a schema lets an answer say, against what a gate does with it. The sound definitions, in which nothing is found,
//! are the corrected twins.

use cuegate_testkit::definitions::{CHECK_FLOW, CLOSING, COMPLETE, edit, project};

use crate::support::findings;

type Edits<'e> = &'e [(&'e str, &'e str)];

fn found(definition: &str, dir: &str, edits: Edits<'_>) -> String {
    let files = edits.iter().fold(project(definition), |files, (from, to)| edit(&files, from, to));
    findings(&files, dir)
}

fn closing(edits: Edits<'_>) -> String {
    found(CLOSING, ".agent/fixer", edits)
}

fn complete(edits: Edits<'_>) -> String {
    found(COMPLETE, ".agent/solver", edits)
}

/// One finding, which says this.
fn says(found: &str, finding: &str) {
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(found.contains(finding), "{found} is not {finding}");
}

const PLAN: &str = r#""required": ["next_action", "plan"]"#;
const ACTION: &str = r#""type": "string", "enum": ["next", "repeat"]"#;

#[test]
fn a_schema_that_no_answer_fits() {
    let no = |edits: Edits<'_>, why: &str| {
        says(
            &closing(edits),
            &format!("error[impossible-schema]: no answer fits the schema `initial.fix`: {why}"),
        );
    };
    let none = "which is none of the `properties` that it allows";
    let action = "`/properties/next_action/properties/action`";
    no(&[(PLAN, r#""required": ["next_action", "plan", "zork"]"#)], &format!("it requires `zork`, {none}"));
    no(
        &[(r#""required": ["approach"]"#, r#""required": ["approach", "why"]"#)],
        &format!("`/properties/plan` requires `why`, {none}"),
    );
    let own = "refuses every value of its own `enum`";
    no(&[(ACTION, r#""type": "integer", "enum": ["next", "repeat"]"#)], &format!("{action} {own}"));
    no(&[(ACTION, r#""enum": ["next", "repeat"], "pattern": "^zzz$""#)], &format!("{action} {own}"));
    no(&[(ACTION, r#""enum": []"#)], &format!("{action} has an empty `enum`"));
    let approach = "`/properties/plan/properties/approach`";
    let text = r#""approach": { "type": "string" }"#;
    for (rest, why) in [
        (r#""type": "string", "minLength": 5, "maxLength": 2"#, "has `minLength` 5 and `maxLength` 2"),
        (r#""type": "string", "const": 5"#, "refuses its own `const`"),
        (r#""not": {}"#, "has a `not` that excludes every value"),
    ] {
        no(&[(text, &format!(r#""approach": {{ {rest} }}"#))], &format!("{approach} {why}"));
    }
    no(&[(PLAN, &format!(r#""maxProperties": 1, {PLAN}"#))], "it requires 2 properties and allows 1");
    no(
        &[(&format!(r#""type": "object", {PLAN}"#), &format!(r#""type": "array", {PLAN}"#))],
        "it is of type `array`, and every answer is an object",
    );
}

#[test]
fn a_part_that_no_schema_file_has_wrong_is_found_where_it_stands() {
    let edits = [(r#""required": ["approach"]"#, r#""required": ["approach", "why"]"#)];
    says(&closing(&edits), "fix.json:8:9 error[impossible-schema]");
    says(&closing(&[(ACTION, r#""type": "objekt""#)]), "fix.json:7:23 error[unresolved-schema]");
}

#[test]
fn what_a_complete_step_requires_and_does_not_allow() {
    says(
        &complete(&[(r#""stepId": { "const": "initial.fix" }, "#, "")]),
        "error[impossible-schema]: no answer fits the schema `#/definitions/initial.fix`: it requires `stepId`",
    );
    says(
        &complete(&[(r#"{ "const": "complete" }"#, r#"{ "const": "repeat" }"#)]),
        "error[schema-gate-mismatch]: `complete.fix` allows `complete`, and its schema lists only `repeat`",
    );
}

#[test]
fn an_intent_that_answers_may_leave_out() {
    let warned =
        "warning[schema-gate-mismatch]: intent field `next_action.action` of `initial.fix` is not required";
    says(&closing(&[(PLAN, r#""required": ["plan"]"#)]), warned);
    let nullable = r#""type": ["string", "null"], "enum": ["next", "repeat", null]"#;
    assert!(closing(&[(ACTION, nullable)]).contains("[schema-gate-mismatch]"));
    let falls_back = (
        "\"intentField\": \"next_action.action\",\n        \"handoffFields\": [\"plan.approach\"]",
        "\"intentField\": \"next_action.action\", \"failFast\": false, \"fallbackIntent\": \"repeat\",\n        \"handoffFields\": [\"plan.approach\"]",
    );
    assert_eq!(closing(&[(PLAN, r#""required": ["plan"]"#), falls_back]), "");
    says(
        &complete(&[
            (
                r#""intentField": "next_action.action""#,
                r#""intentField": "next_action.action", "handoffFields": []"#,
            ),
            (r#"["next", "wait", "complete"] }"#, r#"["next", "wait", "complete", null] }"#),
        ]),
        "[",
    );
}

#[test]
fn a_complete_step_whose_schema_lists_no_words() {
    says(
        &complete(&[(r#"{ "enum": ["next", "wait", "complete"] }"#, r#"{ "type": "string" }"#)]),
        "warning[schema-gate-mismatch]: the schema of `continuation.fix` takes any text at `next_action.action`",
    );
    says(
        &complete(&[(r#"{ "enum": ["next", "wait", "complete"] }"#, r#"{ "type": "integer" }"#)]),
        "error[schema-gate-mismatch]: the schema of `continuation.fix` takes no text at `next_action.action`",
    );
}

#[test]
fn a_listed_word_may_stand_in_any_part_of_the_schema() {
    for action in [
        r#""anyOf": [{ "const": "next" }, { "const": "repeat" }]"#,
        r#""type": "string", "enum": ["next", "repeat", null]"#,
        r#""enum": ["next", "repeat", "jump"], "not": { "const": "jump" }"#,
    ] {
        assert_eq!(closing(&[(ACTION, action)]), "", "{action}");
    }
}

/// A `jump` in place of `repeat`, and what the schema says about where to.
fn jumps(approach: &str, required: &str) -> String {
    closing(&[
        (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
        (
            r#""allowedIntents": ["next", "repeat"]"#,
            r#""allowedIntents": ["next", "jump"], "targetField": "plan.to""#,
        ),
        (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
        (
            r#""required": ["approach"], "properties": { "approach": { "type": "string" } }"#,
            &format!(
                r#""required": ["approach"{required}], "properties": {{ "approach": {{ "type": "string" }}, "to": {{ {approach} }} }}"#
            ),
        ),
    ])
}

#[test]
fn jumps_that_are_refused() {
    let to = r#", "to""#;
    assert_eq!(jumps(r#""type": "string""#, to), "");
    assert_eq!(jumps(r#""enum": ["continuation.fix", "initial.fix"]"#, to), "");
    let allowed = "allowed are `initial.fix`, `continuation.fix`";
    says(
        &jumps(r#""type": "integer""#, to),
        &format!(
            "error[schema-gate-mismatch]: every `jump` of `initial.fix` is refused: `plan.to` can be no name of a step, and {allowed}"
        ),
    );
    says(&jumps(r#""enum": ["closure.fix"]"#, to), "error[");
    says(
        &jumps(r#""enum": ["continuation.fix", "closure.fix"]"#, to),
        "warning[schema-gate-mismatch]: a `jump` of `initial.fix` to `closure.fix` is refused",
    );
    says(
        &jumps(r#""type": "string""#, ""),
        "note[schema-gate-mismatch]: answers of `initial.fix` may leave out `plan.to`, and then a `jump` names no step",
    );
}

/// Selects by `status`, which the schema describes so, with a case for each word.
fn selects(status: &str, cases: &str) -> String {
    closing(&[
        (r#"{ "enum": ["ready", "blocked"] }"#, status),
        (
            r#""continuation.fix": {
      "type": "object", "required": ["next_action"]"#,
            r#""continuation.fix": {
      "type": "object", "required": ["next_action", "status"]"#,
        ),
        (
            r#""handoff": { "target": "closure.fix" }"#,
            r#""handoff": { "target": "closure.fix" }, "next": { "condition": "status", "targets": CASES }"#,
        ),
        ("CASES", cases),
        (r#""allowedIntents": ["repeat", "handoff"]"#, r#""allowedIntents": ["repeat", "handoff", "next"]"#),
        (r#""enum": ["repeat", "handoff"]"#, r#""enum": ["repeat", "handoff", "next"]"#),
    ])
}

#[test]
fn values_are_compared_as_an_answer_holds_them() {
    let cases = r#"{ "1": "initial.fix", "2": "initial.fix" }"#;
    for status in [
        r#"{ "enum": [1.0, 2] }"#,
        r#"{ "enum": ["1", "2"] }"#,
        r#"{ "anyOf": [{ "const": "1" }, { "enum": ["2"] }] }"#,
        r#"{ "enum": ["1", "2", "3"], "not": { "const": "3" } }"#,
        r#"{ "type": "string", "enum": ["1", "2", null] }"#,
    ] {
        assert_eq!(selects(status, cases), "", "{status}");
    }
    assert!(
        selects(r#"{ "enum": [1.5, 2] }"#, cases)
            .contains("warning[unreachable-transition]: `status` is never `1`")
    );
    for kind in ["array", "object"] {
        let found = selects(&format!(r#"{{ "type": "{kind}" }}"#), cases);
        assert_eq!(found.matches("[unreachable-transition]").count(), 2, "{found}");
    }
}

#[test]
fn what_each_part_of_a_schema_requires_is_required() {
    let plan = r#""plan": { "type": "object", "required": ["approach"], "properties": { "approach": { "type": "string" } } }"#;
    let either = r#""plan": { "type": "object", "properties": { "approach": { "type": "string" } }, "anyOf": [{ "required": ["approach"] }, { "required": ["approach", "x"] }] }"#;
    assert_eq!(closing(&[(plan, either)]), "");
}

#[test]
fn a_check_may_answer_in_capital_letters_or_in_its_own_words() {
    let check = |result: &str| {
        found(
            CHECK_FLOW,
            ".agent/improver",
            &[(r#""result": "pass|fail""#, &format!(r#""result": "{result}""#))],
        )
    };
    assert_eq!(check("OK|NG"), "");
    assert_eq!(check("Pass | FAIL"), "");
    assert_eq!(check("string"), "");
    says(&check("good|bad"), "error[invalid-value]: `good|bad` says neither what is well nor what is not");
    says(&check("pass|ok"), "error[invalid-value]: `pass|ok` does not say what is not well");
    says(&check("NG"), "error[invalid-value]: `NG` does not say what is well");
    says(&check("ok|maybe"), "`maybe` of `ok|maybe` means neither that it is well nor that it is not");
}
