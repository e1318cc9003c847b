//! What the older places of an agent's settings do in a run: the same as the newer ones.

use cuegate_engine::EndState;
use cuegate_flow::model::{Permission, Tools};
use cuegate_formats::{AgentOptions, Generation};
use serde_json::{Value, json};

use crate::registry::drive::{DIR, Drive, Small, put, small};
use crate::support::{Project, load};

/// The small agent with its settings in the older places.
fn older(small: &Small, agent: Value) -> Project {
    let mut files = small.files();
    let mut all = json!({
        "version": "1.0.0", "name": "small", "displayName": "Small",
        "behavior": {"systemPromptPath": "prompts/system.md", "completionType": "stepMachine",
            "permissionMode": "acceptEdits"}
    });
    put(&mut all, agent);
    files.insert(format!("{DIR}/agent.json"), all.to_string().into_bytes());
    files
}

fn drive(files: &Project, given: &[(&str, &str)]) -> Drive {
    Drive::start(files, &AgentOptions { agent_dir: DIR.to_owned(), ..AgentOptions::default() }, given, None)
}

#[test]
fn behavior_says_who_is_asked_with_what() {
    let small = small(Generation::Closing).file("who.md", "You are another.");
    let plain = drive(&older(&small, json!({})), &[]).asked();
    assert_eq!((&*plain.system, plain.ask.boundary.permission), ("You fix things.", Permission::AcceptEdits));
    assert_eq!(plain.ask.boundary.tools, Tools::All);
    let settings = json!({"behavior": {"systemPromptPath": "who.md", "permissionMode": "plan", "allowedTools": ["Read"]}});
    let other = drive(&older(&small, settings), &[]).asked();
    assert_eq!((&*other.system, other.ask.boundary.permission), ("You are another.", Permission::Plan));
    assert_eq!(other.ask.boundary.tools, Tools::Only(vec!["Read".into()]));
}

/// Each type by its older name, in `behavior.completionType`: when the run is done, and why.
#[test]
fn each_completion_type_completes_a_run() {
    let handler = json!({"handlerPath": "done.sh"});
    let composite = json!({"operator": "and", "conditions": [
        {"type": "keywordSignal", "config": {"completionKeyword": "ALL DONE"}},
        {"type": "iterationBudget", "config": {"maxIterations": 1}}]});
    let cases: [(&str, Value, &str); 6] = [
        ("iterationBudget", json!({"maxIterations": 1}), "1 iteration done"),
        ("checkBudget", json!({"maxChecks": 1}), "1 check done"),
        ("keywordSignal", json!({"completionKeyword": "ALL DONE"}), "said `ALL DONE`"),
        ("keywordSignal", json!({"verdictKeyword": "ALL DONE"}), "said `ALL DONE`"),
        (
            "structuredSignal",
            json!({"signalType": "ready", "requiredFields": ["score"]}),
            "gave the signal `ready`",
        ),
        ("composite", composite, ""),
    ];
    for (kind, config, why) in cases {
        let small = small(Generation::Closing)
            .step("verification.look", json!({"next": {"target": "continuation.fix"}}));
        let small = small
            .field("verification.look", json!({"signal": {"type": "string"}, "score": {"type": "number"}}));
        let small = small.registry(json!({"entryStep": "verification.look"}));
        let files = older(&small, json!({"behavior": {"completionType": kind, "completionConfig": config}}));
        let mut run = drive(&files, &[]);
        let mut answer = cuegate_engine::Answer { text: "ALL DONE".to_owned(), ..Default::default() };
        answer.output = Some(json!({"next_action": {"action": "next"}, "signal": "ready", "score": 3}));
        run.answer(answer);
        let (state, reason) = run.end().unwrap_or_else(|| panic!("{kind}"));
        assert_eq!(state, EndState::Completed, "{kind}");
        assert!(reason.contains(why), "{kind}: {reason}");
    }
    // What is looked at outside of the answer.
    let small = small(Generation::Closing).file("done.sh", "#!/bin/sh\n");
    for (kind, config, param) in [
        ("custom", handler, None),
        ("externalState", json!({"resourceType": "file", "targetState": "exists"}), Some("file")),
    ] {
        let mut agent = json!({"behavior": {"completionType": kind, "completionConfig": config}});
        if let Some(param) = param {
            agent["parameters"] = json!({ param: {"type": "string", "description": "Which", "required": true, "cli": "--file"} });
        }
        let given: Vec<(&str, &str)> = param.map(|param| (param, "out.txt")).into_iter().collect();
        let mut run = drive(&older(&small, agent), &given);
        run.say("next").look(true);
        assert_eq!(run.end().unwrap().0, EndState::Completed, "{kind}");
    }
    // And the ends of the flow.
    let mut run = drive(&older(&small, json!({})), &[]);
    run.say("next").say("handoff").say("closing");
    assert_eq!(run.end().unwrap().0, EndState::Completed);
}

/// Each condition by its older name, in a composite that stands in another one.
#[test]
fn older_conditions_act_in_a_composite() {
    let cases = [
        (json!({"type": "iterationBudget", "config": {"maxIterations": 1}}), "1 iteration done"),
        (json!({"type": "checkBudget", "config": {"maxChecks": 1}}), "1 check done"),
        (json!({"type": "keywordSignal", "config": {"completionKeyword": "ALL DONE"}}), "said `ALL DONE`"),
        (json!({"type": "keywordSignal", "config": {"verdictKeyword": "ALL DONE"}}), "said `ALL DONE`"),
        (
            json!({"type": "structuredSignal", "config": {"signalType": "ready", "requiredFields": ["score"]}}),
            "gave the signal `ready`",
        ),
    ];
    let never = json!({"type": "keywordSignal", "config": {"completionKeyword": "NEVER"}});
    let composite = |conditions: Value| json!({"operator": "or", "conditions": conditions});
    for (condition, why) in cases {
        let inner = json!({"type": "composite", "config": composite(json!([condition]))});
        let config = composite(json!([never, inner]));
        let small = small(Generation::Closing)
            .step("verification.look", json!({"next": {"target": "continuation.fix"}}))
            .field("verification.look", json!({"signal": {"type": "string"}, "score": {"type": "number"}}))
            .registry(json!({"entryStep": "verification.look"}));
        let agent = json!({"behavior": {"completionType": "composite", "completionConfig": config}});
        let mut run = drive(&older(&small, agent), &[]);
        let mut answer = cuegate_engine::Answer { text: "ALL DONE".to_owned(), ..Default::default() };
        answer.output = Some(json!({"next_action": {"action": "next"}, "signal": "ready", "score": 3}));
        run.answer(answer);
        let (state, reason) = run.end().unwrap_or_else(|| panic!("{condition}"));
        assert!(state == EndState::Completed && reason.contains(why), "{condition}: {reason}");
    }
    let small = small(Generation::Closing).file("done.sh", "#!/bin/sh\n");
    for condition in [
        json!({"type": "custom", "config": {"handlerPath": "done.sh"}}),
        json!({"type": "externalState", "config": {"resourceType": "file", "targetState": "exists"}}),
    ] {
        let file = json!({"type": "string", "description": "Which", "default": "out.txt", "cli": "--file"});
        let agent = json!({"parameters": {"file": file},
            "behavior": {"completionType": "composite", "completionConfig": composite(json!([never, condition]))}});
        for holds in [true, false] {
            let mut run = drive(&older(&small, agent.clone()), &[("file", "out.txt")]);
            run.say("next").look(holds);
            let ended = run.end().map(|(state, _)| state);
            assert_eq!(ended, holds.then_some(EndState::Completed), "{condition}");
        }
    }
}

#[test]
fn a_step_machine_may_name_another_registry_and_another_entry() {
    let base = small(Generation::Closing);
    let other = String::from_utf8(base.files()[&format!("{DIR}/steps_registry.json")].clone()).unwrap();
    let other = other.replace("\"entryStep\":\"initial.fix\"", "\"entryStep\":\"continuation.fix\"");
    let named = base.clone().file("graphs/other.json", &other);
    let agent = |config: Value| json!({"behavior": {"completionConfig": config}});
    let files = older(&named, agent(json!({"registryPath": "graphs/other.json"})));
    assert_eq!(drive(&files, &[]).step(), "continuation.fix");
    let files = older(&base, agent(json!({"entryStep": "continuation.fix"})));
    assert_eq!(drive(&files, &[]).step(), "continuation.fix");
}

#[test]
fn prompts_worktree_and_logging_stand_beside_behavior() {
    let small = small(Generation::Closing)
        .without("prompts/steps/initial/fix/f_default.md")
        .file("old/steps/initial/fix/f_default.md", "From the old place.");
    let mut files = older(
        &small,
        json!({
            "prompts": {"registry": "flows/main.json", "fallbackDir": "old"},
            "worktree": {"enabled": true, "root": "../trees"},
            "logging": {"directory": "tmp/logs", "format": "text", "maxFiles": 3}
        }),
    );
    let registry = files.remove(&format!("{DIR}/steps_registry.json")).unwrap();
    files.insert(format!("{DIR}/flows/main.json"), registry);
    for (c2, id) in [("continuation", "continuation.fix"), ("closure", "closure.fix")] {
        files.insert(format!("{DIR}/old/steps/{c2}/fix/f_default.md"), id.as_bytes().to_vec());
    }
    assert_eq!(drive(&files, &[]).prompt(), "From the old place.");
    let run = load(&files, DIR).run;
    assert_eq!((run.worktree.enabled, run.worktree.root.as_deref()), (true, Some("../trees")));
    let log = run.log.unwrap();
    assert_eq!((&*log.directory, log.files_max), ("tmp/logs", Some(3)));
}

/// `github` chooses the closure prompt and gives the label of requirements; `actions` note the blocks of answers.
#[test]
fn github_and_actions_stand_beside_behavior() {
    let small = small(Generation::Closing)
        .file("prompts/steps/closure/fix/f_default_label-only.md", "Label, see {uv-label_requirements}.");
    let files = older(
        &small,
        json!({
            "github": {"enabled": true, "labels": {"requirements": "docs"}, "defaultClosureAction": "label-only"},
            "actions": {"enabled": true, "types": ["note"], "outputFormat": "json", "handlers": {"note": "log"}}
        }),
    );
    let mut run = drive(&files, &[]);
    let mut answer = cuegate_engine::Answer {
        text: "```json\n{\"action\": \"note\", \"n\": 1}\n```".to_owned(),
        ..Default::default()
    };
    answer.output = Some(json!({"next_action": {"action": "next"}}));
    run.answer(answer);
    let found =
        run.events.iter().filter(|event| matches!(event, cuegate_engine::Event::ActionFound { .. })).count();
    assert_eq!(found, 1);
    assert_eq!(run.say("handoff").prompt(), "Label, see docs.");
}
