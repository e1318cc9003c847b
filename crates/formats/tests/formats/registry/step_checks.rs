//! What is checked in a registry's steps, gates, transitions, schemas and inputs.

use crate::registry::drive::small;
use crate::support::{DIR, Project, broken, dump, edge, edit, findings_of, load, sound, table};
use cuegate_formats::{AgentOptions, Generation, load_agent};
use serde_json::json;

#[test]
fn registry() {
    insta::assert_snapshot!(table(&[
        ("unknown key", &[("\"c1\": \"steps\"", "\"c1\": \"steps\", \"entrySteps\": \"x\"")]),
        ("missing keys", &[("\"c1\": \"steps\",", "")]),
        ("no entry", &[("\"entryStep\": \"initial.fix\",", "")]),
        ("entry by verdict type", &[("\"entryStep\": \"initial.fix\",",
                                     "\"entryStepMapping\": {\"detect:graph\": \"initial.fix\"},")]),
        ("unknown verdict type", &[("\"entryStep\": \"initial.fix\",",
            "\"entryStep\": \"initial.fix\", \"entryStepMapping\": {\"detect:grph\": \"initial.fix\", \"externalState\": \"initial.fix\"},")]),
        ("entry that is no step", &[("\"entryStep\": \"initial.fix\"", "\"entryStep\": \"initial.fx\"")]),
        ("schema base outside", &[("\"schemasBase\": \".agent/fixer/schemas\"", "\"schemasBase\": \"../../../s\"")]),
        ("path template", &[("\"c1\": \"steps\"", "\"c1\": \"steps\", \"pathTemplate\": \"{c4}/{c2}.md\"")]),
        ("complete generation", &[("\"c1\": \"steps\"", "\"c1\": \"steps\", \"completionSteps\": {}")]),
        ("complete intent", &[("\"allowedIntents\": [\"next\", \"repeat\"]", "\"allowedIntents\": [\"next\", \"complete\"]")]),
        ("check flow", &[("\"usesStdin\": true", "\"check\": {}")]),
        ("check flow ids", &[("\"section.context\": {", "\"s_a1b2\": {")]),
        ("piece", &[("\"c1\": \"steps\"", "\"movements\": []")]),
    ]), @"
    # unknown key
    steps_registry.json:4:18 error[unknown-key]: unknown key `entrySteps` in the registry
    # missing keys
    steps_registry.json:1:1 error[missing-key]: `c1` is missing in the registry
    # no entry
    steps_registry.json:1:1 error[no-entry]: no entry step configured for the verdict type `detect:graph`
    # entry by verdict type
    nothing
    # unknown verdict type
    steps_registry.json:7:52 error[unknown-name]: `detect:grph` in `entryStepMapping` is no verdict type
    steps_registry.json:7:82 error[mixed-generations]: `externalState` in `entryStepMapping` is a type of the “complete” generation, and this registry is of the “closing” generation
    # entry that is no step
    steps_registry.json:7:16 error[unknown-target]: the entry leads to the undefined step `initial.fx`
    # schema base outside
    steps_registry.json:6:18 error[escapes-root]: `../../../s` leads out of the project
    # path template
    steps_registry.json:4:34 error[invalid-value]: a path template has no `c4`
    # complete generation
    steps_registry.json:4:18 error[mixed-generations]: this registry mixes generations: the “closing” generation has `failurePatterns` (line 8), `validationSteps` (line 21), `stepKind` of `initial.fix` (line 30), `intentSchemaRef` of `initial.fix` (line 35), 8 more; the “complete” generation has `completionSteps` (line 4)
    # complete intent
    steps_registry.json:34:36 error[mixed-generations]: this registry mixes generations: the “closing” generation has `failurePatterns` (line 8), `validationSteps` (line 21), `stepKind` of `initial.fix` (line 30), `intentSchemaRef` of `initial.fix` (line 35), 8 more; the “complete” generation has `complete` of `initial.fix` (line 34)
    # check flow
    steps_registry.json:31:47 error[mixed-generations]: this registry mixes generations: the “closing” generation has `failurePatterns` (line 8), `validationSteps` (line 21), `stepKind` of `initial.fix` (line 30), `intentSchemaRef` of `initial.fix` (line 35), 8 more; the check flow has `check` of `initial.fix` (line 31)
    # check flow ids
    f_default.md:7:1 error[unknown-target]: there is no step `section.context`
    steps_registry.json:66:27 error[id-mismatch]: the step of key `s_a1b2` calls itself `section.context`
    # piece
    steps_registry.json:4:3 error[unsupported-yet]: this is a piece, not a step registry: it has `movements`
    ");
}

#[test]
fn steps() {
    insta::assert_snapshot!(table(&[
        ("other id", &[("\"stepId\": \"initial.fix\"", "\"stepId\": \"initial.fx\"")]),
        ("unknown kind", &[("\"stepKind\": \"work\"", "\"stepKind\": \"worker\"")]),
        ("no kind", &[("\"c2\": \"continuation\"", "\"c2\": \"retry\"")]),
        ("unknown key", &[("\"usesStdin\": true", "\"useStdin\": true, \"usesStdin\": true")]),
        ("stray keys", &[("\"usesStdin\": true", "\"type\": \"prompt\", \"priority\": 1, \"condition\": \"x\", \"usesStdin\": true")]),
        ("no section of that name", &[("\"section.context\": { \"stepId\": \"section.context\"", "\"spare\": { \"stepId\": \"spare\"")]),
        ("lacks one part", &[("\"outputSchemaRef\": { \"file\": \"fix.json\", \"schema\": \"#/$defs/closure.fix\" },", "")]),
        ("lacks all parts", &[("\"section.context\": {", "\"closure.spare\": {\"stepId\": \"closure.spare\", \"c2\": \"closure\", \"c3\": \"fix\"}, \"section.context\": {")]),
        ("gated section", &[("\"c2\": \"section\", \"c3\": \"context\"", "\"c2\": \"section\", \"c3\": \"context\", \"structuredGate\": {}")]),
        ("permission", &[("\"permissionMode\": \"plan\"", "\"permissionMode\": \"full\"")]),
    ]), @"
    # other id
    steps_registry.json:30:17 error[id-mismatch]: the step of key `initial.fix` calls itself `initial.fx`
    # unknown kind
    steps_registry.json:30:60 error[invalid-value]: `worker` is no `stepKind`
    # no kind
    steps_registry.json:41:5 error[missing-key]: `continuation.fix` has no `stepKind`, and `retry` as `c2` implies none
    steps_registry.json:41:5 error[missing-prompt]: `continuation.fix` has no prompt: no file `.agent/fixer/prompts/steps/retry/fix/f_default.md`
    # unknown key
    steps_registry.json:31:47 error[unknown-key]: unknown key `useStdin` in a step
    # stray keys
    steps_registry.json:31:47 warning[unused-key]: `type` has no effect in a step
    steps_registry.json:31:65 warning[unused-key]: `priority` has no effect in a step
    steps_registry.json:31:80 warning[unused-key]: `condition` has no effect in a step
    # no section of that name
    f_default.md:7:1 error[unknown-target]: there is no step `section.context`
    # lacks one part
    steps_registry.json:54:5 error[missing-key]: `closure.fix` lacks `outputSchemaRef`
    # lacks all parts
    steps_registry.json:66:5 error[missing-key]: `closure.spare` lacks `structuredGate`, `transitions`, `outputSchemaRef`
    steps_registry.json:66:5 warning[unreachable-step]: `closure.spare` is unreachable
    # gated section
    steps_registry.json:66:5 error[missing-key]: `section.context` has no `stepKind`, and `section` as `c2` implies none
    steps_registry.json:66:5 error[missing-key]: `section.context` lacks `transitions`, `outputSchemaRef`
    steps_registry.json:66:5 warning[unreachable-step]: `section.context` is unreachable
    steps_registry.json:66:126 error[missing-key]: `allowedIntents`, `intentSchemaRef`, `intentField` are missing in `structuredGate`
    # permission
    steps_registry.json:56:25 error[invalid-value]: `full` is no `permissionMode`
    ");
}

#[test]
fn intents() {
    insta::assert_snapshot!(table(&[
        ("not of its kind", &[("\"allowedIntents\": [\"next\", \"repeat\"]", "\"allowedIntents\": [\"next\", \"escalate\", \"closing\"]")]),
        ("unknown", &[("\"allowedIntents\": [\"next\", \"repeat\"]", "\"allowedIntents\": [\"next\", \"repeat\", \"finish\"]")]),
        ("schema lists fewer", &[("\"enum\": [\"next\", \"repeat\"]", "\"enum\": [\"next\"]")]),
        ("schema lists more", &[("\"enum\": [\"repeat\", \"handoff\"]", "\"enum\": [\"repeat\", \"handoff\", \"next\"]")]),
        ("other case", &[("\"enum\": [\"repeat\", \"handoff\"]", "\"enum\": [\"Repeat\", \"handoff\"]")]),
        ("abort counts on neither side", &[("\"enum\": [\"next\", \"repeat\"]", "\"enum\": [\"next\", \"repeat\", \"abort\"]")]),
        ("no enum", &[("\"enum\": [\"next\", \"repeat\"]", "\"minLength\": 1")]),
        ("pointer into another file", &[("\"allowedIntents\": [\"next\", \"repeat\"],\n        \"intentSchemaRef\": \"#/",
            "\"allowedIntents\": [\"next\", \"repeat\"],\n        \"intentSchemaRef\": \"common.json#/")]),
        ("field that the schema has not", &[("\"intentField\": \"next_action.action\",\n        \"handoffFields\": [\"plan.approach\"]",
            "\"intentField\": \"action\",\n        \"handoffFields\": [\"plan.approach\"]")]),
        ("no path", &[("\"intentField\": \"next_action.action\",\n        \"failFast\"", "\"intentField\": \"a..b\",\n        \"failFast\"")]),
        ("no field, no pointer", &[("\"allowedIntents\": [\"closing\", \"repeat\"],\n        \"intentSchemaRef\": \"#/properties/next_action/properties/action\",\n        \"intentField\": \"next_action.action\",",
            "\"allowedIntents\": [\"closing\", \"repeat\"],")]),
        ("without transition", &[("\"next\": { \"target\": \"continuation.fix\" }, ", "")]),
        ("abort needs none", &[("\"allowedIntents\": [\"next\", \"repeat\"]", "\"allowedIntents\": [\"next\", \"repeat\", \"abort\"]")]),
        ("transition without intent", &[("\"allowedIntents\": [\"repeat\", \"handoff\"]", "\"allowedIntents\": [\"handoff\"]"),
            ("\"enum\": [\"repeat\", \"handoff\"]", "\"enum\": [\"handoff\"]")]),
        ("fallback that is not allowed", &[("\"fallbackIntent\": \"repeat\"", "\"fallbackIntent\": \"next\"")]),
        ("no fallback", &[("\"failFast\": false, \"fallbackIntent\": \"repeat\"", "\"failFast\": false")]),
        ("inert fallback", &[("\"failFast\": false, \"fallbackIntent\": \"repeat\"", "\"fallbackIntent\": \"repeat\"")]),
    ]), @"
    # not of its kind
    steps_registry.json:34:36 error[intent-not-of-kind]: `initial.fix` is a work step, which cannot decide `escalate`
    steps_registry.json:34:36 error[missing-transition]: `initial.fix` allows `escalate`, but no transition says where that leads
    steps_registry.json:34:48 error[intent-not-of-kind]: `initial.fix` is a work step, which cannot decide `closing`
    steps_registry.json:34:48 error[missing-transition]: `initial.fix` allows `closing`, but no transition says where that leads
    steps_registry.json:35:28 error[schema-gate-mismatch]: `initial.fix` allows `next`, `escalate`, `closing`, but the schema does not list `escalate`, `closing`
    steps_registry.json:39:66 error[unreachable-transition]: `initial.fix` has a transition for `repeat`, which it does not allow
    # unknown
    steps_registry.json:34:46 error[invalid-value]: `finish` is no intent
    # schema lists fewer
    steps_registry.json:35:28 error[schema-gate-mismatch]: `initial.fix` allows `next`, `repeat`, but the schema does not list `repeat`
    # schema lists more
    steps_registry.json:48:28 error[schema-gate-mismatch]: `continuation.fix` allows `repeat`, `handoff`, but the schema also lists `next`
    # other case
    steps_registry.json:48:28 error[schema-gate-mismatch]: `continuation.fix` allows `repeat`, `handoff`, but the schema lists `Repeat` instead of `repeat`
    # abort counts on neither side
    nothing
    # no enum
    steps_registry.json:35:28 error[schema-gate-mismatch]: `#/properties/next_action/properties/action` leads to no `enum` in the schema of `initial.fix`
    # pointer into another file
    steps_registry.json:35:28 error[invalid-value]: `intentSchemaRef` is `common.json#/properties/next_action/properties/action`, which does not begin with `#/`
    # field that the schema has not
    steps_registry.json:36:24 error[schema-gate-mismatch]: `intentField` of `initial.fix` is `action`, where the schema allows no value
    # no path
    steps_registry.json:61:24 error[invalid-value]: `a..b` in `intentField` is no dotted path
    # no field, no pointer
    steps_registry.json:58:25 error[missing-key]: `intentSchemaRef`, `intentField` are missing in `structuredGate`
    # without transition
    steps_registry.json:34:28 error[missing-transition]: `initial.fix` allows `next`, but no transition says where that leads
    # abort needs none
    nothing
    # transition without intent
    steps_registry.json:52:24 error[unreachable-transition]: `continuation.fix` has a transition for `repeat`, which it does not allow
    # fallback that is not allowed
    steps_registry.json:62:46 error[invalid-value]: `fallbackIntent` is `next`, which `closure.fix` does not allow
    # no fallback
    steps_registry.json:62:21 warning[unused-key]: `failFast` is false, but no `fallbackIntent` says what an unreadable intent means
    # inert fallback
    steps_registry.json:62:27 warning[unused-key]: `fallbackIntent` is ignored because `failFast` is true
    ");
}

#[test]
fn transitions() {
    insta::assert_snapshot!(table(&[
        ("unknown target", &[("\"next\": { \"target\": \"continuation.fix\" }", "\"next\": { \"target\": \"continuation.fx\" }")]),
        ("next to closure", &[("\"next\": { \"target\": \"continuation.fix\" }", "\"next\": { \"target\": \"closure.fix\" }")]),
        ("repeat to closure", &[("\"repeat\": { \"target\": \"continuation.fix\" }", "\"repeat\": { \"target\": \"closure.fix\" }")]),
        ("next to itself", &[("\"next\": { \"target\": \"continuation.fix\" }", "\"next\": { \"target\": \"initial.fix\" }")]),
        ("handoff to work", &[("\"handoff\": { \"target\": \"closure.fix\" }", "\"handoff\": { \"target\": \"continuation.fix\" }")]),
        ("handoff to an entry", &[("\"handoff\": { \"target\": \"closure.fix\" }", "\"handoff\": { \"target\": \"initial.fix\" }")]),
        ("null elsewhere", &[("\"repeat\": { \"target\": \"continuation.fix\" }", "\"repeat\": { \"target\": null }")]),
        ("closing with target", &[("\"closing\": { \"target\": null }", "\"closing\": { \"target\": \"initial.fix\" }")]),
        ("abort as written", &[("\"closing\": { \"target\": null }", "\"closing\": { \"target\": null }, \"abort\": { \"target\": null }")]),
        ("abort with target", &[("\"closing\": { \"target\": null }", "\"closing\": { \"target\": null }, \"abort\": { \"target\": \"initial.fix\" }")]),
        ("no target", &[("\"repeat\": { \"target\": \"continuation.fix\" }", "\"repeat\": {}")]),
        ("both", &[("\"repeat\": { \"target\": \"continuation.fix\" }", "\"repeat\": { \"target\": \"continuation.fix\", \"condition\": \"x\", \"targets\": {} }")]),
        ("fallback", &[("\"repeat\": { \"target\": \"continuation.fix\" }", "\"repeat\": { \"target\": \"continuation.fix\", \"fallback\": \"x\" }")]),
        ("unknown intent", &[("\"repeat\": { \"target\": \"continuation.fix\" }", "\"repeat\": { \"target\": \"continuation.fix\" }, \"hand-off\": {}")]),
    ]), @"
    # unknown target
    steps_registry.json:39:44 error[unknown-target]: `initial.fix` on `next` leads to the undefined step `continuation.fx`
    # next to closure
    steps_registry.json:39:44 error[wrong-direction]: `next` of `initial.fix` leads to `closure.fix`, a closure step
    # repeat to closure
    steps_registry.json:52:46 error[wrong-direction]: `repeat` of `continuation.fix` leads to `closure.fix`, a closure step
    # next to itself
    steps_registry.json:29:5 error[no-way-to-end]: from `initial.fix` no path leads to an end
    steps_registry.json:39:44 warning[self-next]: `next` of `initial.fix` leads to itself
    steps_registry.json:41:5 warning[unreachable-step]: `continuation.fix` is unreachable
    steps_registry.json:54:5 warning[unreachable-step]: `closure.fix` is unreachable
    # handoff to work
    steps_registry.json:29:5 error[no-way-to-end]: from `initial.fix`, `continuation.fix` no path leads to an end
    steps_registry.json:52:91 warning[wrong-direction]: `handoff` of `continuation.fix` leads to `continuation.fix`, a work step that is no flow's entry
    steps_registry.json:54:5 warning[unreachable-step]: `closure.fix` is unreachable
    # handoff to an entry
    steps_registry.json:29:5 error[no-way-to-end]: from `initial.fix`, `continuation.fix` no path leads to an end
    steps_registry.json:54:5 warning[unreachable-step]: `closure.fix` is unreachable
    # null elsewhere
    steps_registry.json:52:46 error[missing-transition]: `repeat` of `continuation.fix` leads nowhere
    # closing with target
    steps_registry.json:64:47 error[wrong-direction]: `closing` ends the run, so that it cannot lead to `initial.fix`
    # abort as written
    nothing
    # abort with target
    steps_registry.json:64:76 error[wrong-direction]: `abort` ends the run, so that it cannot lead to `initial.fix`
    # no target
    steps_registry.json:52:34 error[missing-key]: `target` is missing in `transitions.repeat`
    # both
    steps_registry.json:52:84 error[invalid-value]: `transitions.repeat` has both `target` and `targets`
    # fallback
    steps_registry.json:52:66 warning[unused-key]: `fallback` has no effect in `transitions.repeat`
    # unknown intent
    steps_registry.json:52:68 error[invalid-value]: `hand-off` in `transitions` is no intent
    ");
}

#[test]
fn conditional_transitions() {
    let from = "\"repeat\": { \"target\": \"continuation.fix\" }, \"handoff\"";
    let with = |rule: &str| {
        let to = format!("\"repeat\": {rule}, \"handoff\"");
        let loaded = load(&edit(&sound(), from, &to), DIR);
        let repeat = loaded.draft.steps[1].edges[0].clone();
        format!("# {rule}\n{}{}\n", findings_of(loaded), edge(&repeat))
    };
    let text = [
        with(
            r#"{"condition": "status", "targets": {"ready": "initial.fix", "blocked": "continuation.fix"}}"#,
        ),
        with(
            r#"{"condition": "status", "targets": {"ready": "initial.fix", "default": "continuation.fix"}}"#,
        ),
        with(r#"{"condition": "status", "targets": {"ready": "initial.fix"}}"#),
        with(r#"{"condition": "approach", "targets": {"a": "initial.fix"}}"#),
        with(r#"{"condition": "stats", "targets": {"a": "initial.fix"}}"#),
        with(r#"{"condition": "stats", "targets": {"a": "initial.fix", "default": "initial.fix"}}"#),
        with(r#"{"condition": "status", "targets": {"ready": "closure.fix", "x": null, "default": 3}}"#),
        with(r#"{"targets": {"ready": "initial.fix"}}"#),
    ]
    .concat();
    insta::assert_snapshot!(text, @r#"
    # {"condition": "status", "targets": {"ready": "initial.fix", "blocked": "continuation.fix"}}
    steps_registry.json:52:24 warning[transition-without-default]: an answer need not have `status`, and then nothing selects
    repeat → select by handoff status {ready: initial.fix, blocked: continuation.fix}
    # {"condition": "status", "targets": {"ready": "initial.fix", "default": "continuation.fix"}}
    repeat → select by handoff status {ready: initial.fix}, else continuation.fix
    # {"condition": "status", "targets": {"ready": "initial.fix"}}
    steps_registry.json:52:24 warning[transition-without-default]: `status` can be `blocked`, which no entry of `targets` names
    repeat → select by handoff status {ready: initial.fix}
    # {"condition": "approach", "targets": {"a": "initial.fix"}}
    steps_registry.json:52:24 warning[transition-without-default]: `continuation.fix` selects by `approach`, which can be anything as `initial.fix` leaves it, and no entry of `targets` names that
    repeat → select by handoff approach {a: initial.fix}
    # {"condition": "stats", "targets": {"a": "initial.fix"}}
    steps_registry.json:52:48 error[unassigned-value]: `condition` names `stats`, which no step leaves
    repeat → select by handoff stats {a: initial.fix}
    # {"condition": "stats", "targets": {"a": "initial.fix", "default": "initial.fix"}}
    steps_registry.json:52:48 warning[unassigned-value]: `condition` names `stats`, which no step leaves
    repeat → select by handoff stats {a: initial.fix}, else initial.fix
    # {"condition": "status", "targets": {"ready": "closure.fix", "x": null, "default": 3}}
    steps_registry.json:52:79 error[wrong-direction]: `repeat` of `continuation.fix` leads to `closure.fix`, a closure step
    steps_registry.json:52:99 error[missing-transition]: `x` in `targets` leads nowhere
    steps_registry.json:52:116 error[wrong-type]: `default` must be the name of a step, not a number
    repeat → select by handoff status {ready: closure.fix}
    # {"targets": {"ready": "initial.fix"}}
    steps_registry.json:52:34 error[missing-key]: `condition` is missing in `transitions.repeat`
    handoff → closure.fix, hands off
    "#);
}

/// Two fields that end alike are kept under their whole paths: the end alone names neither.
#[test]
fn a_condition_that_could_be_two() {
    let two = |condition: &str| {
        let field = json!({"type": "object", "properties": {"st": {"type": "string"}}});
        let gate = json!({"handoffFields": ["a.st", "b.st"]});
        let repeat = json!({"target": null, "condition": condition, "targets": {"x": "initial.fix", "default": "continuation.fix"}});
        small(Generation::Closing)
            .field("continuation.fix", json!({"a": field, "b": field}))
            .with("continuation.fix", json!({"structuredGate": gate, "transitions": {"repeat": repeat}}))
            .findings()
    };
    let found = two("st");
    assert!(
        found.contains(
            "warning[unassigned-value]: `condition` names `st`, which is ambiguous: there are `a.st`, `b.st`"
        ),
        "{found}"
    );
    assert!(!two("a.st").contains("unassigned-value"), "{}", two("a.st"));
}

#[test]
fn jumps() {
    // A work step that jumps; the target field and mode, and the transition, are what varies.
    let with = |gate: &str, transition: &str, listed: &str| {
        let files = edit(&sound(), "\"enum\": [\"next\", \"repeat\"]", "\"enum\": [\"next\", \"jump\"]");
        let files = edit(&files, "\"reason\": { \"type\": \"string\" }", &format!("\"to\": {{{listed}}}"));
        let files = edit(
            &files,
            "\"allowedIntents\": [\"next\", \"repeat\"],",
            &format!("\"allowedIntents\": [\"next\", \"jump\"], {gate}"),
        );
        let comma = if transition.is_empty() { "" } else { ", " };
        let from = ", \"repeat\": { \"target\": \"initial.fix\" } }";
        let files = edit(&files, from, &format!("{comma}{transition} }}"));
        let loaded = load(&files, DIR);
        let jump = loaded.draft.steps[0].edges.iter().find(|edge| edge.on.to_string() == "jump").map(edge);
        format!("# {gate} {transition} {listed}\n{}{}\n", findings_of(loaded), jump.unwrap_or_default())
    };
    const FIELD: &str = r#""targetField": "next_action.to","#;
    let text = [
        with(FIELD, "", ""),
        with(FIELD, "", r#""enum": ["continuation.fix", "closure.fix"]"#),
        with(FIELD, "", r#""enum": ["closure.fix"]"#),
        with("", "", ""),
        with("", r#""jump": {"target": "continuation.fix"}"#, ""),
        with(FIELD, r#""jump": {"target": "continuation.fix"}"#, ""),
        with(FIELD, r#""jump": {"target": "closure.fix"}"#, ""),
        with(FIELD, r#""jump": {"target": null}"#, ""),
        with(
            r#""targetField": "next_action.to", "targetMode": "dynamic","#,
            r#""jump": {"target": "continuation.fix"}"#,
            "",
        ),
        with(
            r#""targetField": "next_action.to", "targetMode": "conditional","#,
            r#""jump": {"targets": {"a": "initial.fix", "default": "continuation.fix"}}"#,
            "",
        ),
        with(
            r#""targetField": "next_action.to", "targetMode": "conditional","#,
            r#""jump": {"targets": {"a": "initial.fix"}}"#,
            r#""enum": ["a", "b"]"#,
        ),
        with(r#""targetMode": "conditional","#, r#""jump": {"target": "continuation.fix"}"#, ""),
        with("", r#""jump": {"targets": {"a": "initial.fix"}}"#, ""),
        with("", r#""jump": {"condition": "approach", "targets": {"a": "initial.fix"}}"#, ""),
    ]
    .concat();
    insta::assert_snapshot!(text, @r#"
    # "targetField": "next_action.to",  
    steps_registry.json:34:60 note[schema-gate-mismatch]: answers of `initial.fix` may leave out `next_action.to`, and then a `jump` names no step
    jump → jump by next_action.to among initial.fix | continuation.fix
    # "targetField": "next_action.to",  "enum": ["continuation.fix", "closure.fix"]
    steps_registry.json:34:60 warning[schema-gate-mismatch]: a `jump` of `initial.fix` to `closure.fix` is refused: allowed are `continuation.fix`
    steps_registry.json:34:60 note[schema-gate-mismatch]: answers of `initial.fix` may leave out `next_action.to`, and then a `jump` names no step
    jump → jump by next_action.to among continuation.fix
    # "targetField": "next_action.to",  "enum": ["closure.fix"]
    steps_registry.json:34:36 error[missing-transition]: the schema lists no work or verification step at `next_action.to`
    jump → Aborted
    #   
    steps_registry.json:34:36 error[missing-transition]: `jump` is allowed, but has no target
    jump → Aborted
    #  "jump": {"target": "continuation.fix"} 
    jump → continuation.fix
    # "targetField": "next_action.to", "jump": {"target": "continuation.fix"} 
    jump → jump by next_action.to among continuation.fix, else continuation.fix
    # "targetField": "next_action.to", "jump": {"target": "closure.fix"} 
    steps_registry.json:39:85 error[wrong-direction]: `jump` of `initial.fix` leads to `closure.fix`, a closure step
    jump → jump by next_action.to among closure.fix, else closure.fix
    # "targetField": "next_action.to", "jump": {"target": null} 
    steps_registry.json:39:85 error[missing-transition]: `jump` of `initial.fix` leads nowhere
    jump → Aborted
    # "targetField": "next_action.to", "targetMode": "dynamic", "jump": {"target": "continuation.fix"} 
    jump → jump by next_action.to among initial.fix | continuation.fix, else continuation.fix
    # "targetField": "next_action.to", "targetMode": "conditional", "jump": {"targets": {"a": "initial.fix", "default": "continuation.fix"}} 
    jump → select by field next_action.to {a: initial.fix}, else continuation.fix
    # "targetField": "next_action.to", "targetMode": "conditional", "jump": {"targets": {"a": "initial.fix"}} "enum": ["a", "b"]
    steps_registry.json:39:66 warning[transition-without-default]: `next_action.to` can be `b`, which no entry of `targets` names
    jump → select by field next_action.to {a: initial.fix}
    # "targetMode": "conditional", "jump": {"target": "continuation.fix"} 
    steps_registry.json:34:36 error[missing-transition]: `targetMode` is `conditional`, but nothing selects a target
    jump → Aborted
    #  "jump": {"targets": {"a": "initial.fix"}} 
    steps_registry.json:34:36 error[missing-transition]: nothing selects among the `targets` of `jump`
    jump → Aborted
    #  "jump": {"condition": "approach", "targets": {"a": "initial.fix"}} 
    steps_registry.json:39:66 warning[transition-without-default]: `approach` can hold a value that no entry of `targets` names
    jump → select by handoff approach {a: initial.fix}
    "#);
}

#[test]
fn schemas() {
    insta::assert_snapshot!(table(&[
        ("no file", &[("\"file\": \"fix.json\", \"schema\": \"initial.fix\"", "\"file\": \"fx.json\", \"schema\": \"initial.fix\"")]),
        ("no schema", &[("\"file\": \"fix.json\", \"schema\": \"initial.fix\"", "\"file\": \"fix.json\", \"schema\": \"initial.fx\"")]),
        ("malformed", &[("\"#/$defs/closure.fix\"", "\"##/$defs/closure.fix\"")]),
        ("outside the base", &[("\"file\": \"fix.json\", \"schema\": \"initial.fix\"", "\"file\": \"../x.json\", \"schema\": \"initial.fix\"")]),
        ("no schema at all", &[("\"plan\": { \"type\": \"object\"", "\"plan\": { \"type\": \"objekt\"")]),
        ("reference to nothing", &[("\"status\": { \"enum\": [\"ready\", \"blocked\"] }", "\"status\": { \"$ref\": \"#/x\" }")]),
        ("fetched", &[("\"status\": { \"enum\": [\"ready\", \"blocked\"] }", "\"status\": { \"$ref\": \"https://x/y\" }")]),
        ("as a text", &[("\"outputSchemaRef\": { \"file\": \"fix.json\", \"schema\": \"initial.fix\" }", "\"outputSchemaRef\": \"fix.json\"")]),
        ("keys", &[("\"file\": \"fix.json\", \"schema\": \"initial.fix\"", "\"file\": \"fix.json\", \"name\": \"initial.fix\"")]),
    ]), @r#"
    # no file
    steps_registry.json:32:36 error[unresolved-schema]: no schema file `.agent/fixer/schemas/fx.json`
    # no schema
    steps_registry.json:32:58 error[unresolved-schema]: no schema `initial.fx` in `fix.json`
    # malformed
    steps_registry.json:57:58 error[unresolved-schema]: malformed schema identifier `##/$defs/closure.fix`: a double `##` is no JSON pointer
    # outside the base
    steps_registry.json:32:36 error[escapes-root]: schema file `../x.json` lies outside the schema base
    # no schema at all
    fix.json:8:19 error[unresolved-schema]: `initial.fix` is no valid JSON Schema: "objekt" is not valid under any of the schemas listed in the 'anyOf' keyword
    # reference to nothing
    fix.json:16:29 error[unresolved-schema]: no schema `#/x` in `.agent/fixer/schemas/fix.json`
    # fetched
    fix.json:16:29 error[unresolved-schema]: `$ref` to `https://x/y`: schemas are never fetched
    # as a text
    steps_registry.json:32:26 error[wrong-type]: `outputSchemaRef` must be an object, not a text
    # keys
    steps_registry.json:32:48 error[unknown-key]: unknown key `name` in `outputSchemaRef`; `schema` is missing in `outputSchemaRef`
    "#);
}

#[test]
fn handoffs_and_inputs() {
    insta::assert_snapshot!(table(&[
        ("nothing of that name", &[("\"handoffFields\": [\"status\"]", "\"handoffFields\": [\"state\"]")]),
        ("closed object", &[("\"plan\": { \"type\": \"object\"", "\"plan\": { \"additionalProperties\": false, \"type\": \"object\""),
            ("[\"plan.approach\"]", "[\"plan.approach\", \"plan.risks\"]")]),
        ("open object", &[("[\"plan.approach\"]", "[\"plan.approach\", \"plan.risks\"]")]),
        ("below a text", &[("[\"plan.approach\"]", "[\"plan.approach\", \"plan.approach.x\"]")]),
        ("unknown step", &[("\"from\": \"initial.fix.approach\"", "\"from\": \"initial.fx.approach\""),
            (" / {uv-initial_fix_approach}", "")]),
        ("unknown key", &[("\"from\": \"initial.fix.approach\"", "\"from\": \"initial.fix.plan\""),
            (" / {uv-initial_fix_approach}", "")]),
        ("by its whole path", &[("\"from\": \"initial.fix.approach\"", "\"from\": \"initial.fix.plan.approach\"")]),
        ("no key", &[("\"from\": \"initial.fix.approach\"", "\"from\": \"approach\"")]),
        ("no from", &[("{ \"from\": \"initial.fix.approach\" }", "{ \"form\": \"initial.fix.approach\" }")]),
        ("around the producer", &[("\"entryStep\": \"initial.fix\"", "\"entryStep\": \"continuation.fix\"")]),
        ("optional", &[("{ \"from\": \"initial.fix.approach\" }", "{ \"from\": \"initial.fix.approach\", \"required\": false, \"default\": [] }")]),
    ]), @"
    # nothing of that name
    steps_registry.json:50:27 error[schema-gate-mismatch]: handoff field `state` of `continuation.fix` is not in its output schema
    # closed object
    steps_registry.json:37:44 error[schema-gate-mismatch]: handoff field `plan.risks` of `initial.fix` is not in its output schema
    # open object
    steps_registry.json:37:44 warning[schema-gate-mismatch]: handoff field `plan.risks` of `initial.fix` is not in its output schema
    # below a text
    steps_registry.json:37:44 error[schema-gate-mismatch]: handoff field `plan.approach.x` of `initial.fix` is not in its output schema
    # unknown step
    steps_registry.json:43:41 error[unassigned-value]: `continuation.fix` reads `initial.fx.approach`, but `initial.fx` is no step
    # unknown key
    steps_registry.json:43:41 error[unassigned-value]: `continuation.fix` reads `initial.fix.plan`, which `initial.fix` does not leave
    # by its whole path
    nothing
    # no key
    steps_registry.json:43:41 error[invalid-value]: `approach` names no step and key
    # no from
    steps_registry.json:43:31 error[missing-key]: `from` is missing in `inputs.approach`
    steps_registry.json:43:33 error[unknown-key]: unknown key `form` in `inputs.approach`
    # around the producer
    f_default.md:1:60 error[unassigned-value]: `continuation.fix` reads `previous_summary`, but at its first visit nothing has been answered
    steps_registry.json:29:5 warning[unreachable-step]: `initial.fix` is unreachable
    steps_registry.json:43:41 error[unassigned-value]: `continuation.fix` reads `initial.fix.approach`, but a run can get here without passing `initial.fix`
    # optional
    steps_registry.json:43:95 error[wrong-type]: `default` must be a text, a number or `true` or `false`, not a list
    ");
}

#[test]
fn names_from_set_count_as_declared() {
    let files = edit(&sound(), "Approach: ", "Approach {uv-depth}: ");
    let loaded = |set: &[&str]| {
        let set = set.iter().map(|name| (*name).to_owned()).collect();
        load_agent(&files, &AgentOptions { agent_dir: DIR.to_owned(), registry: None, set })
    };
    insta::assert_snapshot!(findings_of(loaded(&[])), @"f_default.md:1:10 error[unknown-variable]: undefined variable `depth` in the prompt of `continuation.fix`");
    insta::assert_snapshot!(findings_of(loaded(&["depth", "base-branch"])), @"f_default.md:1:10 warning[undeclared-variable]: the prompt of `continuation.fix` reads `depth`, which its `uvVariables` do not list");
    let params: Vec<String> =
        loaded(&["depth", "base-branch"]).draft.params.iter().map(|p| p.name.to_string()).collect();
    assert_eq!(params, ["issue", "baseBranch", "depth"]);
}

#[test]
fn a_registry_named_alone() {
    let mut files = sound();
    let named = |files: &Project| {
        let registry = Some(".agent/fixer/steps_registry.json".to_owned());
        load_agent(
            files,
            &AgentOptions {
                agent_dir: DIR.to_owned(),
                registry,
                set: vec!["issue".to_owned(), "baseBranch".to_owned()],
            },
        )
    };
    assert_eq!(findings_of(named(&files)), "");
    files.remove(".agent/fixer/agent.json");
    let loaded = named(&files);
    assert_eq!((&*loaded.draft.name, loaded.draft.limits.iterations_max), ("fixer", 10));
    insta::assert_snapshot!(findings_of(loaded), @"steps_registry.json:22:5 warning[closure-skipped]: `count:iteration` can complete the run after 10 iterations before its validators run");
    files.remove(".agent/fixer/steps_registry.json");
    insta::assert_snapshot!(findings_of(named(&files)), @"steps_registry.json:1:1 error[unreadable-file]: there is no registry `.agent/fixer/steps_registry.json`");
}

#[test]
fn many_things_at_once() {
    insta::assert_snapshot!(broken(&[
        ("\"displayName\": \"Fixer\"", "\"displayname\": \"Fixer\""),
        ("\"c1\": \"steps\"", "\"c1\": 3"),
        ("\"stepKind\": \"closure\"", "\"stepKind\": \"work\""),
        ("\"enum\": [\"next\", \"repeat\"]", "\"enum\": [\"next\"]"),
        ("Be kind. ", "Be kind to {uv-nobody}. "),
    ]), @"
    agent.json:1:1 error[missing-key]: `displayName` is missing in the agent
    agent.json:4:3 error[unknown-key]: unknown key `displayname` in the agent
    f_default.md:1:12 error[unknown-variable]: undefined variable `nobody` in the prompt of `initial.fix`
    steps_registry.json:4:9 error[wrong-type]: `c1` must be text, not a number
    steps_registry.json:35:28 error[schema-gate-mismatch]: `initial.fix` allows `next`, `repeat`, but the schema does not list `repeat`
    steps_registry.json:59:28 error[intent-not-of-kind]: `closure.fix` is a work step, which cannot decide `closing`
    ");
}

/// The sound agent with another registry.
fn with_registry(registry: &serde_json::Value) -> Project {
    let mut files = sound();
    files.insert(format!("{DIR}/steps_registry.json"), serde_json::to_vec_pretty(registry).unwrap());
    files
}

/// The registry of the sound agent with the keys of Climpt 1.13.27 and later.
fn later() -> serde_json::Value {
    let mut registry: serde_json::Value =
        serde_json::from_slice(&sound()[&format!("{DIR}/steps_registry.json")]).unwrap();
    let entry = registry.as_object_mut().unwrap().remove("entryStep").unwrap();
    registry["entryStepMapping"] = json!({"detect:graph": {"initial": entry, "continuation": entry}});
    let c1 = registry.as_object_mut().unwrap().remove("c1").unwrap();
    for step in registry["steps"].as_object_mut().unwrap().values_mut() {
        let step = step.as_object_mut().unwrap();
        let mut address = json!({"c1": c1});
        for part in ["c2", "c3", "edition", "adaptation"] {
            if let Some(value) = step.remove(part) {
                address[part] = value;
            }
        }
        step.insert("address".into(), address);
        if let Some(kind) = step.remove("stepKind") {
            step.insert("kind".into(), kind);
        }
    }
    for validator in registry["validators"].as_object_mut().unwrap().values_mut() {
        validator["phase"] = "postllm".into();
    }
    for validation in registry["validationSteps"].as_object_mut().unwrap().values_mut() {
        let mut conditions = validation.as_object_mut().unwrap().remove("validationConditions").unwrap();
        conditions[0]["params"] = json!({});
        validation["postLLMConditions"] = conditions;
        validation["preflightConditions"] = json!([]);
    }
    registry
}

#[test]
fn later_keys_mean_the_same() {
    let loaded = load(&with_registry(&later()), DIR);
    assert_eq!(dump(&loaded.draft), dump(&load(&sound(), DIR).draft));
    assert_eq!(findings_of(loaded), "");
}

#[test]
fn later_keys_without_a_meaning_here_are_found() {
    let changed = |pointer: &str, value: serde_json::Value| {
        let mut registry = later();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        registry.pointer_mut(parent).unwrap()[key] = value;
        findings_of(load(&with_registry(&registry), DIR))
    };
    for (pointer, value, message) in [
        (
            "/steps/initial.fix/address/c1",
            json!("other"),
            "`c1` of `continuation.fix` is `steps`, that of other steps `other`",
        ),
        ("/steps/initial.fix/address/c4", json!("x"), "unknown key `address` in a step"),
        (
            "/entryStepMapping/detect:graph/continuation",
            json!("closure.fix"),
            "`continuation` of `detect:graph` is not used",
        ),
        (
            "/validationSteps/closure.fix/preflightConditions",
            json!([{"validator": "git-clean"}]),
            "`preflightConditions` of `closure.fix` are not supported yet",
        ),
    ] {
        let found = changed(pointer, value);
        assert!(found.contains(message), "{pointer}: {found}");
    }
}
