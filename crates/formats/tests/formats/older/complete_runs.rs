//! What only the "complete" generation has, in runs: steps that stand in `completionSteps`, and its limit.

use cuegate_engine::EndState;
use cuegate_formats::Generation;
use serde_json::{Value, json};

use crate::registry::drive::{Drive, Small, small};

/// The small agent whose last step stands in `completionSteps` alone.
fn moved(more: Value) -> Small {
    let mut step = json!({"stepId": "complete.fix", "name": "Report",
        "outputSchemaRef": {"file": "all.json", "schema": "complete.fix"}});
    crate::registry::drive::put(&mut step, more);
    small(Generation::Complete)
        .registry(json!({"steps": {"complete.fix": null}, "completionSteps": {"complete.fix": step}}))
        .field("complete.fix", json!({"next_action": {"properties": {"action": {"enum": ["complete"]}}}}))
}

fn at_the_end(all: &Small) -> Drive {
    let mut drive = all.drive();
    drive.say("next").say("complete");
    drive
}

#[test]
fn a_step_of_the_completion_steps_is_what_its_keys_say() {
    let path = |part: &str| format!("prompts/steps/{part}.md");
    for (step, prompt) in [
        (json!({}), "complete/fix/f_default"),
        (json!({"c2": "close", "c3": "all"}), "close/all/f_default"),
        (json!({"edition": "short"}), "complete/fix/f_short"),
        (json!({"adaptation": "red"}), "complete/fix/f_default_red"),
    ] {
        let all =
            moved(step.clone()).without(&path("complete/fix/f_default")).file(&path(prompt), "Here I am.");
        let mut drive = at_the_end(&all);
        assert_eq!((drive.step(), drive.prompt()), ("complete.fix".into(), "Here I am.".into()), "{step}");
        let named = drive.flow.steps.iter().find(|step| &*step.name == "complete.fix").unwrap();
        assert_eq!(&*named.title, "Report");
        drive.output(json!({"next_action": {"action": "complete"}, "more": "than the schema has"}));
        assert_eq!((drive.rejected(), drive.end()), (1, None));
        assert_eq!(drive.say("complete").end().unwrap().0, EndState::Completed);
    }
    let built_in =
        moved(json!({"fallbackKey": "issue_closure_default", "usesStdin": true})).task("mend the roof");
    let built_in = built_in.without(&path("complete/fix/f_default"));
    let prompt = at_the_end(&built_in).prompt();
    assert!(
        prompt.starts_with("The work on an issue is said to be done.") && prompt.contains("mend the roof"),
        "{prompt}"
    );
    let reading = moved(json!({"inputs": {"how": {"from": "initial.fix.approach"}}, "uvVariables": ["how"]}))
        .with("initial.fix", json!({"structuredGate": {"handoffFields": ["approach"]}}))
        .field("initial.fix", json!({"approach": {"type": "string"}}))
        .prompt("complete.fix", "Done {uv-how}.");
    let mut drive = reading.drive();
    assert_eq!(
        drive.say_with("next", json!({"approach": "by tests"})).say("complete").prompt(),
        "Done by tests."
    );
    let looping = moved(json!({
        "structuredGate": {"allowedIntents": ["complete", "repeat"], "intentField": "way"},
        "transitions": {"complete": {"target": "complete.fix"}, "repeat": {"target": "continuation.fix"}}
    }))
    .field("complete.fix", json!({"way": {"enum": ["complete", "repeat"]}, "next_action": null}));
    let mut drive = at_the_end(&looping);
    drive.output(json!({"way": "repeat"}));
    assert_eq!(drive.step(), "continuation.fix");
    drive.say("complete").output(json!({"way": "complete"}));
    assert_eq!(drive.end().unwrap().0, EndState::Completed);
}

#[test]
fn an_older_step_without_a_file_is_asked_with_the_built_in_prompt() {
    let all = small(Generation::Complete)
        .without("prompts/steps/initial/fix/f_default.md")
        .with(
            "initial.fix",
            json!({"fallbackKey": "initial_issue", "usesStdin": true, "uvVariables": ["issue"]}),
        )
        .given("issue", "12")
        .task("mend the roof");
    let prompt = all.drive().prompt();
    assert!(prompt.starts_with("Work on issue #12.") && prompt.contains("mend the roof"), "{prompt}");
    let found = all.findings();
    assert!(found.contains("warning[missing-prompt]"), "{found}");
}

#[test]
fn an_older_run_without_a_limit_is_stopped_after_twenty() {
    for verdict in [Value::Null, json!({"type": "detect:graph"})] {
        let mut drive = small(Generation::Complete).runner(json!({ "verdict": verdict })).drive();
        for _ in 0..20 {
            assert_eq!(drive.end(), None);
            drive.say("repeat");
        }
        assert_eq!(drive.end().unwrap().0, EndState::Exhausted);
    }
}
