//! What is checked in a registry's steps, gates, transitions, schemas and inputs.

use crate::registry::drive::small;
use crate::support::{DIR, Project, broken, dump, edge, edit, findings_of, load, sound};
use cuegate_formats::{AgentOptions, Generation, load_agent};
use serde_json::json;

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
