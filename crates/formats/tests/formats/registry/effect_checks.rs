//! Nothing is read and ignored: what can have no effect is told. The sound agent, in which nothing is found, is the
//! corrected twin of each case; where a twin of its own shows more, it stands below the case and finds nothing.

use crate::support::{DIR, edit, findings, load, sound};

#[test]
fn nothing_to_run() {
    let with = |steps: &str| {
        let registry = format!(
            r#"{{"agentId": "fixer", "version": "1.0.0", "c1": "steps", "entryStep": "a", "steps": {{{steps}}}}}"#
        );
        let mut files = sound();
        files.insert(".agent/fixer/steps_registry.json".to_owned(), registry.into_bytes());
        findings(&files, DIR)
    };
    let section = r#""section.context": {"stepId": "section.context", "c2": "section", "c3": "context"}"#;
    insta::assert_snapshot!([with(""), with(section)].join("--\n"), @"
    steps_registry.json:1:75 error[invalid-value]: `steps` hold no step that could be run
    --
    steps_registry.json:1:75 error[invalid-value]: `steps` hold no step that could be run
    ");
}

/// The sound agent with a first step that jumps.
fn jumping(gate: &str, jump: &str, to: &str) -> String {
    let files = edit(&sound(), "\"enum\": [\"next\", \"repeat\"]", "\"enum\": [\"next\", \"jump\"]");
    let files = edit(&files, "\"reason\": { \"type\": \"string\" }", &format!("\"details\": {to}"));
    let files = edit(
        &files,
        "\"allowedIntents\": [\"next\", \"repeat\"],",
        &format!("\"allowedIntents\": [\"next\", \"jump\"], {gate}"),
    );
    let files = edit(&files, ", \"repeat\": { \"target\": \"initial.fix\" } }", &format!("{jump} }}"));
    let found = findings(&files, DIR);
    format!("# {gate} {jump} {to}\n{}", if found.is_empty() { "nothing\n" } else { &found })
}

#[test]
fn jumps() {
    const FIELD: &str = r#""targetField": "next_action.details.to","#;
    const OPEN: &str = r#"{"type": "object", "properties": {"to": {"type": "string"}}}"#;
    const LISTED: &str = r#"{"properties": {"to": {"enum": ["continuation.fix", "initial.fix"]}}}"#;
    let conditional = format!("{FIELD} \"targetMode\": \"conditional\",");
    let dynamic = format!("{FIELD} \"targetMode\": \"dynamic\",");
    let text = [
        jumping(FIELD, r#", "jump": {"target": "continuation.fix"}"#, r#"{"type": "object"}"#),
        jumping(FIELD, "", r#"{"type": "object", "properties": {"target": {}, "why": {}}}"#),
        jumping(FIELD, "", r#"{"type": "object", "additionalProperties": true}"#),
        jumping(r#""targetField": "to","#, "", OPEN),
        jumping(FIELD, "", OPEN),
        jumping(FIELD, r#", "jump": {"targets": {"a": "continuation.fix"}}"#, OPEN),
        jumping(
            FIELD,
            r#", "jump": {"condition": "approach", "targets": {"continuation.fix": "continuation.fix"}}"#,
            OPEN,
        ),
        jumping(FIELD, r#", "jump": {"targets": {"continuation.fix": "continuation.fix"}}"#, LISTED),
        jumping(
            FIELD,
            r#", "jump": {"targets": {"initial.fix": "initial.fix"}}"#,
            r#"{"properties": {"to": {"enum": ["continuation.fix"]}}}"#,
        ),
        jumping(
            &conditional,
            r#", "jump": {"targets": {"a": "continuation.fix", "default": "initial.fix"}}"#,
            r#"{"properties": {"to": {"enum": ["b"]}}}"#,
        ),
        jumping(
            &conditional,
            r#", "jump": {"condition": "x", "targets": {"a": "continuation.fix", "default": "initial.fix"}}"#,
            OPEN,
        ),
        jumping(&dynamic, r#", "jump": {"targets": {"a": "continuation.fix"}}"#, OPEN),
        jumping(r#""targetMode": "dynamic","#, r#", "jump": {"target": "continuation.fix"}"#, OPEN),
        jumping(&format!("{FIELD} \"targetMode\": \"explicit\","), "", OPEN),
        jumping(FIELD, r#", "jump": {"target": "section.context"}"#, OPEN),
    ]
    .concat();
    insta::assert_snapshot!(text, @r#"
    # "targetField": "next_action.details.to", , "jump": {"target": "continuation.fix"} {"type": "object"}
    nothing
    # "targetField": "next_action.details.to",  {"type": "object", "properties": {"target": {}, "why": {}}}
    steps_registry.json:34:60 warning[schema-gate-mismatch]: `targetField` of `initial.fix` is `next_action.details.to`, which no answer of its schema can have
    # "targetField": "next_action.details.to",  {"type": "object", "additionalProperties": true}
    steps_registry.json:34:60 note[schema-gate-mismatch]: answers of `initial.fix` may leave out `next_action.details.to`, and then a `jump` names no step
    # "targetField": "to",  {"type": "object", "properties": {"to": {"type": "string"}}}
    steps_registry.json:34:60 warning[schema-gate-mismatch]: `targetField` of `initial.fix` is `to`, which no answer of its schema can have
    # "targetField": "next_action.details.to",  {"type": "object", "properties": {"to": {"type": "string"}}}
    steps_registry.json:34:60 note[schema-gate-mismatch]: answers of `initial.fix` may leave out `next_action.details.to`, and then a `jump` names no step
    # "targetField": "next_action.details.to", , "jump": {"targets": {"a": "continuation.fix"}} {"type": "object", "properties": {"to": {"type": "string"}}}
    steps_registry.json:34:60 note[schema-gate-mismatch]: answers of `initial.fix` may leave out `next_action.details.to`, and then a `jump` names no step
    steps_registry.json:39:92 warning[unused-key]: the value `a` of `targets` has no effect: the answer's `targetField` names the step `continuation.fix` itself
    # "targetField": "next_action.details.to", , "jump": {"condition": "approach", "targets": {"continuation.fix": "continuation.fix"}} {"type": "object", "properties": {"to": {"type": "string"}}}
    steps_registry.json:34:60 note[schema-gate-mismatch]: answers of `initial.fix` may leave out `next_action.details.to`, and then a `jump` names no step
    steps_registry.json:39:88 warning[unused-key]: `condition` of `jump` has no effect: the answer's `targetField` selects
    # "targetField": "next_action.details.to", , "jump": {"targets": {"continuation.fix": "continuation.fix"}} {"properties": {"to": {"enum": ["continuation.fix", "initial.fix"]}}}
    steps_registry.json:34:60 warning[schema-gate-mismatch]: a `jump` of `initial.fix` to `initial.fix` is refused: allowed are `continuation.fix`
    steps_registry.json:34:60 note[schema-gate-mismatch]: answers of `initial.fix` may leave out `next_action.details.to`, and then a `jump` names no step
    # "targetField": "next_action.details.to", , "jump": {"targets": {"initial.fix": "initial.fix"}} {"properties": {"to": {"enum": ["continuation.fix"]}}}
    steps_registry.json:34:60 error[schema-gate-mismatch]: every `jump` of `initial.fix` is refused: `next_action.details.to` can be `continuation.fix`, and allowed are `initial.fix`
    steps_registry.json:39:102 warning[unreachable-transition]: `next_action.details.to` is never `initial.fix`, so `initial.fix` is not selected by it
    # "targetField": "next_action.details.to", "targetMode": "conditional", , "jump": {"targets": {"a": "continuation.fix", "default": "initial.fix"}} {"properties": {"to": {"enum": ["b"]}}}
    steps_registry.json:39:92 warning[unreachable-transition]: `next_action.details.to` is never `a`, so `continuation.fix` is not selected by it
    # "targetField": "next_action.details.to", "targetMode": "conditional", , "jump": {"condition": "x", "targets": {"a": "continuation.fix", "default": "initial.fix"}} {"type": "object", "properties": {"to": {"type": "string"}}}
    steps_registry.json:39:88 warning[unused-key]: `condition` of `jump` has no effect: the answer's `targetField` selects
    # "targetField": "next_action.details.to", "targetMode": "dynamic", , "jump": {"targets": {"a": "continuation.fix"}} {"type": "object", "properties": {"to": {"type": "string"}}}
    steps_registry.json:34:60 note[schema-gate-mismatch]: answers of `initial.fix` may leave out `next_action.details.to`, and then a `jump` names no step
    steps_registry.json:39:92 warning[unused-key]: `targets` of `jump` have no effect: with `targetMode` `dynamic` the answer names any work or verification step
    # "targetMode": "dynamic", , "jump": {"target": "continuation.fix"} {"type": "object", "properties": {"to": {"type": "string"}}}
    steps_registry.json:34:59 warning[unused-key]: `targetMode` has no effect: without `targetField` the answer names no target
    # "targetField": "next_action.details.to", "targetMode": "explicit",  {"type": "object", "properties": {"to": {"type": "string"}}}
    steps_registry.json:34:36 error[missing-transition]: `targetMode` is `explicit`, but no transition names the targets of `jump`
    # "targetField": "next_action.details.to", , "jump": {"target": "section.context"} {"type": "object", "properties": {"to": {"type": "string"}}}
    steps_registry.json:39:85 error[unknown-target]: `initial.fix` on `jump` leads to `section.context`, a section, which only other prompts include
    "#);
}

/// What a hint tells to do, where it is more than to remove something.
#[test]
fn hints() {
    let hint = |from: &str, to: &str| {
        let found = load(&edit(&sound(), from, to), DIR).diagnostics;
        found[0].hint.clone().unwrap_or_default().to_string()
    };
    let text = [
        hint("\"allowedIntents\": [\"next\", \"repeat\"]", "\"allowedIntents\": [\"next\", \"retry\"]"),
        hint("\"closing\": { \"target\": null }", "\"closing\": { \"target\": null }, \"Done\": {}"),
        hint("\"enum\": [\"next\", \"repeat\"]", "\"enum\": [\"next\", \"wait\"]"),
        hint("\"entryStep\": \"initial.fix\"", "\"entryStep\": \"section.context\""),
        hint("\"defaultModel\": \"sonnet\"", "\"defaultModel\": \"gpt-5-codex\""),
        hint("\"defaultModel\": \"sonnet\"", "\"defaultModel\": \"Sonnet\""),
    ]
    .join("\n");
    insta::assert_snapshot!(text, @"
    agents may answer `retry` for `repeat`, but definitions say `repeat`
    agents may answer `Done` for `closing`, but definitions say `closing`
    agents may answer `wait` for `repeat`, but definitions say `repeat`
    name a step of the flow: `initial.fix`, `continuation.fix`, `closure.fix`
    use one of `sonnet`, `opus`, `haiku`, or an agent that knows it
    did you mean `sonnet`?
    ");
    let jumps = edit(&sound(), "\"enum\": [\"next\", \"repeat\"]", "\"enum\": [\"jump\", \"repeat\"]");
    let jumps = edit(
        &jumps,
        "\"allowedIntents\": [\"next\", \"repeat\"]",
        "\"allowedIntents\": [\"jump\", \"repeat\"]",
    );
    let jumps = edit(&jumps, "\"next\": { \"target\"", "\"jump\": { \"target\"");
    let with = |field: &str| {
        let field = format!("\"targetField\": \"{field}\", \"handoffFields\": [\"plan.approach\"]");
        let found = load(&edit(&jumps, "\"handoffFields\": [\"plan.approach\"]", &field), DIR);
        found.diagnostics[0].hint.clone().unwrap_or_default().to_string()
    };
    insta::assert_snapshot!([with("next_action.to"), with("to"), with("plan.approach.to")].join("\n"), @"
    `next_action` can have `action`, `reason`: add the field to the schema, or correct the path
    the answer can have `next_action`, `plan`: add the field to the schema, or correct the path
    `plan.approach` can have no fields: add the field to the schema, or correct the path
    ");
}
