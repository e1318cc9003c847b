//! Nothing is read and ignored: what can have no effect is told. The sound agent, in which nothing is found, is the
//! corrected twin of each case; where a twin of its own shows more, it stands below the case and finds nothing.

use crate::support::{DIR, edit, findings, load, sound, table};

#[test]
fn parameters() {
    insta::assert_snapshot!(table(&[
        ("list with a comma in it", &[("\"type\": \"string\", \"description\": \"Base\", \"default\": \"main\"",
            "\"type\": \"array\", \"description\": \"Base\", \"default\": [\"a,b\", \"c\"]")]),
        ("list in a list", &[("\"type\": \"string\", \"description\": \"Base\", \"default\": \"main\"",
            "\"type\": \"array\", \"description\": \"Base\", \"default\": [[\"a\"], {}, null, 3]")]),
        ("list for a text", &[("\"default\": \"main\"", "\"default\": [\"a\"]")]),
        ("list without either", &[("\"type\": \"string\", \"description\": \"Base\", \"default\": \"main\"",
            "\"type\": \"array\", \"description\": \"Base\", \"default\": [\"a\", 3, true]")]),
        ("in a validation", &[("\"default\": \"main\"", "\"default\": \"main\", \"validation\": {\"min\": \"1\", \"max\": 3, \"pattern\": \"x\", \"enum\": [\"main\"], \"mx\": 3}")]),
        ("choices that are none", &[("\"type\": \"string\", \"description\": \"Base\", \"default\": \"main\"",
            "\"type\": \"number\", \"description\": \"Base\", \"default\": 2, \"validation\": {\"max\": 3, \"enum\": [\"2\", \"many\", \"5\"]}")]),
        ("no choice at all", &[("\"default\": \"main\"", "\"default\": \"main\", \"validation\": {\"pattern\": \"^x\", \"enum\": [\"main\", \"dev\"]}")]),
    ]), @"
    # list with a comma in it
    agent.json:8:73 warning[invalid-value]: `a,b` in the default of `baseBranch` holds a comma, which separates items
    # list in a list
    agent.json:8:73 error[wrong-type]: the default of `baseBranch` must hold texts, numbers, `true` or `false` only
    agent.json:8:80 error[wrong-type]: the default of `baseBranch` must hold texts, numbers, `true` or `false` only
    agent.json:8:84 error[wrong-type]: the default of `baseBranch` must hold texts, numbers, `true` or `false` only
    # list for a text
    agent.json:8:73 error[wrong-type]: the default of `baseBranch` is no string
    # list without either
    nothing
    # in a validation
    agent.json:8:96 warning[unused-key]: `min` has no effect in `parameters.baseBranch.validation`
    agent.json:8:103 error[wrong-type]: `min` must be a number, not a text
    agent.json:8:108 warning[unused-key]: `max` has no effect in `parameters.baseBranch.validation`
    agent.json:8:143 error[invalid-value]: `main` of `enum` does not match `x`, so that no value is allowed
    agent.json:8:152 error[unknown-key]: unknown key `mx` in `parameters.baseBranch.validation`
    # choices that are none
    agent.json:8:115 error[invalid-value]: `many` of `enum` is no number
    agent.json:8:123 error[invalid-value]: `5` of `enum` is more than 3
    # no choice at all
    agent.json:8:122 error[invalid-value]: `main` of `enum` does not match `^x`, so that no value is allowed
    ");
}

#[test]
fn settings_of_the_agent() {
    insta::assert_snapshot!(table(&[
        ("model of nobody", &[("\"defaultModel\": \"sonnet\"", "\"defaultModel\": \"sonet\"")]),
        ("model of a provider", &[("\"model\": \"haiku\"", "\"model\": \"gpt-5-codex\"")]),
        ("model of the format", &[("\"model\": \"haiku\"", "\"model\": \"opus\"")]),
        ("tools beside all tools", &[("[\"*\"]", "[\"Read\", \"*\"]")]),
        ("tools twice", &[("[\"*\"]", "[\"Read\", \"Edit\", \"Read\"]")]),
        ("wider permission of a step", &[("\"permissionMode\": \"plan\"", "\"permissionMode\": \"bypassPermissions\"")]),
        ("the same permission", &[("\"permissionMode\": \"plan\"", "\"permissionMode\": \"acceptEdits\"")]),
        ("asking permission of a step", &[("\"permissionMode\": \"plan\"", "\"permissionMode\": \"default\"")]),
        ("two registries", &[("{ \"type\": \"detect:graph\" }", "{ \"type\": \"detect:graph\", \"config\": { \"registryPath\": \"./steps_registry.json\" } }")]),
        ("one registry named twice", &[("{ \"type\": \"detect:graph\" }", "{ \"type\": \"detect:graph\", \"config\": { \"registryPath\": \"steps_registry.json\" } }")]),
        ("two schema bases", &[("\"defaultModel\": \"sonnet\"", "\"schemas\": { \"base\": \"other\" }")]),
        ("one schema base named twice", &[("\"defaultModel\": \"sonnet\"", "\"schemas\": { \"base\": \"schemas/\" }")]),
        ("a remote for nothing", &[("\"verdict\": {", "\"execution\": {\"finalize\": {\"autoMerge\": false, \"remote\": \"origin\", \"prTarget\": \"main\"}}, \"verdict\": {")]),
        ("merge or propose", &[("\"verdict\": {", "\"execution\": {\"finalize\": {\"autoMerge\": true, \"createPr\": true, \"remote\": \"origin\", \"prTarget\": \"main\"}}, \"verdict\": {")]),
    ]), @"
    # model of nobody
    agent.json:14:23 warning[unknown-model]: `sonet` in `defaultModel` is none of the models that the format names
    # model of a provider
    steps_registry.json:42:96 warning[unknown-model]: `gpt-5-codex` in `model` is none of the models that the format names
    # model of the format
    nothing
    # tools beside all tools
    agent.json:17:38 warning[unused-key]: `Read` in `allowedTools` has no effect: `*` allows every tool
    # tools twice
    agent.json:17:54 warning[duplicate-item]: `Read` is listed twice in `allowedTools`
    # wider permission of a step
    steps_registry.json:56:25 warning[weak-permission]: `closure.fix` asks for `bypassPermissions`, but its agent may do `acceptEdits` at most
    # the same permission
    nothing
    # asking permission of a step
    steps_registry.json:56:25 warning[weak-permission]: `default` asks a person before each action, and an unattended run has none: writing is denied
    # two registries
    agent.json:13:32 warning[unused-key]: `steps_registry.json` has no effect: the verdict names `./steps_registry.json`
    # one registry named twice
    nothing
    # two schema bases
    agent.json:14:28 warning[unused-key]: `other` has no effect: the registry's `schemasBase` is `.agent/fixer/schemas`
    # one schema base named twice
    nothing
    # a remote for nothing
    agent.json:16:52 warning[unused-key]: `remote` has no effect in `runner.execution.finalize`
    agent.json:16:72 warning[unused-key]: `prTarget` has no effect in `runner.execution.finalize`
    # merge or propose
    agent.json:16:45 warning[unused-key]: `autoMerge` has no effect: `createPr` proposes the change instead of merging it
    ");
}

#[test]
fn entries_and_sections() {
    insta::assert_snapshot!(table(&[
        ("section as the entry", &[("\"entryStep\": \"initial.fix\"", "\"entryStep\": \"section.context\"")]),
        ("section as another entry", &[("\"entryStep\": \"initial.fix\"",
            "\"entryStep\": \"initial.fix\", \"entryStepMapping\": {\"count:iteration\": \"section.context\"}")]),
        ("section as a target", &[("\"repeat\": { \"target\": \"continuation.fix\" }", "\"repeat\": { \"target\": \"section.context\" }")]),
        ("section as a case", &[("\"repeat\": { \"target\": \"continuation.fix\" }",
            "\"repeat\": { \"condition\": \"status\", \"targets\": { \"ready\": \"section.context\", \"default\": \"continuation.fix\" } }")]),
        ("section with parts of a step", &[("\"c2\": \"section\", \"c3\": \"context\"",
            "\"c2\": \"section\", \"c3\": \"context\", \"usesStdin\": true, \"model\": \"opus\", \"permissionMode\": \"plan\", \"transitions\": {\"next\": {\"target\": \"initial.fix\"}}, \"inputs\": {\"x\": {\"from\": \"initial.fix.approach\"}}, \"outputSchemaRef\": {\"file\": \"fix.json\", \"schema\": \"initial.fix\"}")]),
        ("section that says nothing needless", &[("\"c2\": \"section\", \"c3\": \"context\"", "\"c2\": \"section\", \"c3\": \"context\", \"usesStdin\": false, \"description\": \"x\"")]),
    ]), @"
    # section as the entry
    steps_registry.json:7:16 error[unknown-target]: the entry leads to `section.context`, a section, which only other prompts include
    # section as another entry
    steps_registry.json:7:71 error[unknown-target]: an entry leads to `section.context`, a section, which only other prompts include
    # section as a target
    steps_registry.json:52:46 error[unknown-target]: `continuation.fix` on `repeat` leads to `section.context`, a section, which only other prompts include
    # section as a case
    steps_registry.json:52:81 error[unknown-target]: `continuation.fix` on `repeat` leads to `section.context`, a section, which only other prompts include
    # section with parts of a step
    steps_registry.json:66:121 warning[unused-key]: `usesStdin` has no effect in the section `section.context`
    steps_registry.json:66:127 warning[unused-key]: `model`, `permissionMode`, `transitions`, `inputs`, `outputSchemaRef` have no effect in a step
    # section that says nothing needless
    nothing
    ");
}

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

#[test]
fn intents_and_transitions() {
    insta::assert_snapshot!(table(&[
        ("a word of answers", &[("\"allowedIntents\": [\"next\", \"repeat\"]", "\"allowedIntents\": [\"continue\", \"repeat\"]")]),
        ("a word of answers in transitions", &[("\"closing\": { \"target\": null }", "\"done\": { \"target\": null }")]),
        ("a word of answers in the schema", &[("\"enum\": [\"next\", \"repeat\"]", "\"enum\": [\"next\", \"retry\"]")]),
        ("a word of answers as the fallback", &[("\"fallbackIntent\": \"repeat\"", "\"fallbackIntent\": \"retry\"")]),
        ("intent twice", &[("\"allowedIntents\": [\"next\", \"repeat\"]", "\"allowedIntents\": [\"next\", \"repeat\", \"next\"]")]),
        ("condition with one target", &[("\"repeat\": { \"target\": \"continuation.fix\" }", "\"repeat\": { \"target\": \"continuation.fix\", \"condition\": \"status\" }")]),
        ("no targets", &[("\"closing\": { \"target\": null }", "\"closing\": { \"condition\": \"x\", \"targets\": {} }")]),
        ("only a default", &[("\"repeat\": { \"target\": \"continuation.fix\" }", "\"repeat\": { \"condition\": \"status\", \"targets\": { \"default\": \"continuation.fix\" } }")]),
        ("a case that never is", &[("\"repeat\": { \"target\": \"continuation.fix\" }",
            "\"repeat\": { \"condition\": \"status\", \"targets\": { \"redy\": \"initial.fix\", \"default\": \"continuation.fix\" } }")]),
        ("a case for `null`", &[("\"repeat\": { \"target\": \"continuation.fix\" }",
            "\"repeat\": { \"condition\": \"status\", \"targets\": { \"null\": \"initial.fix\", \"ready\": \"continuation.fix\", \"blocked\": \"continuation.fix\" } }"),
            ("[\"ready\", \"blocked\"]", "[\"ready\", \"blocked\", null]")]),
        ("a case of an answer that need not fit", &[("\"repeat\": { \"target\": \"continuation.fix\" }",
            "\"repeat\": { \"condition\": \"status\", \"targets\": { \"redy\": \"initial.fix\", \"default\": \"continuation.fix\" } }"),
            ("\"handoffFields\": [\"status\"]", "\"failFast\": false, \"fallbackIntent\": \"repeat\", \"handoffFields\": [\"status\"]")]),
        ("a case that may be left by another step", &[("\"repeat\": { \"target\": \"continuation.fix\" }",
            "\"repeat\": { \"condition\": \"status\", \"targets\": { \"redy\": \"initial.fix\", \"default\": \"continuation.fix\" } }"),
            ("\"approach\": { \"type\": \"string\" }", "\"approach\": { \"type\": \"string\" }, \"status\": { \"type\": \"string\" }"),
            ("[\"plan.approach\"]", "[\"plan.approach\", \"plan.status\"]")]),
        ("required input with default", &[("{ \"from\": \"initial.fix.approach\" }", "{ \"from\": \"initial.fix.approach\", \"required\": true, \"default\": \"x\" }")]),
        ("input with default", &[("{ \"from\": \"initial.fix.approach\" }", "{ \"from\": \"initial.fix.approach\", \"default\": \"x\" }")]),
        ("field handed on twice", &[("[\"plan.approach\"]", "[\"plan.approach\", \"plan.approach\"]")]),
    ]), @"
    # a word of answers
    steps_registry.json:34:28 error[invalid-value]: `continue` is no intent
    # a word of answers in transitions
    steps_registry.json:64:24 error[invalid-value]: `done` in `transitions` is no intent
    # a word of answers in the schema
    steps_registry.json:35:28 error[schema-gate-mismatch]: `initial.fix` allows `next`, `repeat`, but the schema lists `retry` instead of `repeat`
    # a word of answers as the fallback
    steps_registry.json:62:46 error[invalid-value]: `retry` is no intent
    # intent twice
    steps_registry.json:34:46 warning[duplicate-item]: `next` is listed twice in `allowedIntents`
    # condition with one target
    steps_registry.json:52:66 warning[unused-key]: `condition` has no effect in `transitions.repeat`
    # no targets
    steps_registry.json:64:66 error[invalid-value]: `targets` is empty
    # only a default
    steps_registry.json:52:49 warning[unused-key]: `condition` `status` has no effect: every value leads to `default`
    # a case that never is
    steps_registry.json:52:80 warning[unreachable-transition]: `status` is never `redy`, so that `initial.fix` is not selected by it
    # a case for `null`
    steps_registry.json:52:24 warning[transition-without-default]: an answer need not have `status`, and then nothing selects
    steps_registry.json:52:80 warning[unreachable-transition]: `null` counts as absent, so that `initial.fix` is not selected by it
    # a case of an answer that need not fit
    nothing
    # a case that may be left by another step
    nothing
    # required input with default
    steps_registry.json:43:77 warning[unused-key]: `approach` has a default, so that `required` has no effect
    # input with default
    nothing
    # field handed on twice
    steps_registry.json:37:44 warning[duplicate-item]: `plan.approach` is listed twice in `handoffFields`
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
    steps_registry.json:39:102 warning[unreachable-transition]: `next_action.details.to` is never `initial.fix`, so that `initial.fix` is not selected by it
    # "targetField": "next_action.details.to", "targetMode": "conditional", , "jump": {"targets": {"a": "continuation.fix", "default": "initial.fix"}} {"properties": {"to": {"enum": ["b"]}}}
    steps_registry.json:39:92 warning[unreachable-transition]: `next_action.details.to` is never `a`, so that `continuation.fix` is not selected by it
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

#[test]
fn schemas() {
    insta::assert_snapshot!(table(&[
        ("constraints beside a reference", &[("\"status\": { \"enum\": [\"ready\", \"blocked\"] }",
            "\"status\": { \"$ref\": \"#/words\", \"minLength\": 3, \"description\": \"x\", \"type\": \"string\" }"),
            ("\"$defs\": {", "\"words\": { \"enum\": [\"ready\", \"blocked\"] }, \"$defs\": {")]),
        ("notes beside a reference", &[("\"status\": { \"enum\": [\"ready\", \"blocked\"] }", "\"status\": { \"$ref\": \"#/words\", \"description\": \"x\" }"),
            ("\"$defs\": {", "\"words\": { \"enum\": [\"ready\", \"blocked\"] }, \"$defs\": {")]),
        ("what only looks like a reference", &[("\"$defs\": {", "\"words\": { \"properties\": { \"$ref\": { \"type\": \"string\" } }, \"const\": { \"$ref\": \"x\", \"a\": 1 } }, \"$defs\": {")]),
    ]), @"
    # constraints beside a reference
    fix.json:16:40 warning[unused-key]: `minLength`, `type` beside `$ref` to `#/words` has no force
    # notes beside a reference
    nothing
    # what only looks like a reference
    nothing
    ");
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
    use one of `sonnet`, `opus`, `haiku`, or a provider that knows it
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
