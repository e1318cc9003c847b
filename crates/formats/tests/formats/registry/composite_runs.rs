//! Several verdicts in one: each operator over each type with its keys, as a run ends by it.

use cuegate_engine::{Answer, EndState};
use cuegate_formats::Generation;
use serde_json::{Value, json};

use crate::registry::drive::small;

/// The conditions, their keys, and how the end names each.
fn conditions() -> [(Value, &'static str); 4] {
    [
        (json!({"type": "count:iteration", "config": {"maxIterations": 1}}), "1 iteration done"),
        (json!({"type": "count:check", "config": {"maxChecks": 1}}), "1 check done"),
        (json!({"type": "detect:keyword", "config": {"verdictKeyword": "ALL DONE"}}), "said `ALL DONE`"),
        (
            json!({"type": "detect:structured", "config": {"signalType": "ready", "requiredFields": ["score"]}}),
            "gave the signal `ready`",
        ),
    ]
}

/// How a run ends whose first answer, of a step that checks, says everything.
fn end(operator: &str, conditions: &[Value], says: bool) -> Option<(EndState, String)> {
    let config = json!({"operator": operator, "conditions": conditions, "maxIterations": 9});
    let mut drive = small(Generation::Closing)
        .step("verification.look", json!({"next": {"target": "continuation.fix"}}))
        .field("verification.look", json!({"signal": {"type": "string"}, "score": {"type": "number"}}))
        .registry(json!({"entryStep": "verification.look"}))
        .verdict("meta:composite", config)
        .drive();
    let mut output = json!({"next_action": {"action": "next"}});
    let mut answer = Answer::default();
    if says {
        (output["signal"], output["score"]) = (json!("ready"), json!(3));
        answer.text = "ALL DONE".to_owned();
    }
    answer.output = Some(output);
    drive.answer(answer);
    drive.end()
}

#[test]
fn every_operator_acts_on_every_type_of_condition() {
    let never = json!({"type": "detect:keyword", "config": {"verdictKeyword": "NEVER"}});
    for (condition, why) in conditions() {
        let nested =
            json!({"type": "meta:composite", "config": {"operator": "and", "conditions": [condition]}});
        for one in [condition, nested] {
            for operator in ["or", "first"] {
                let (state, reason) = end(operator, &[never.clone(), one.clone()], true).unwrap();
                assert!(state == EndState::Completed && reason.contains(why), "{operator} {one}: {reason}");
            }
            assert_eq!(end("and", &[never.clone(), one.clone()], true), None, "{one}");
            assert_eq!(
                end("and", &[one.clone(), one.clone()], true).unwrap().0,
                EndState::Completed,
                "{one}"
            );
        }
    }
    // Nothing is said.
    for (condition, _) in &conditions()[2..] {
        assert_eq!(end("or", std::slice::from_ref(condition), false), None, "{condition}");
    }
}

#[test]
fn conditions_that_look_outside_of_the_answer_act_in_a_composite() {
    let never = json!({"type": "detect:keyword", "config": {"verdictKeyword": "NEVER"}});
    for condition in [
        json!({"type": "poll:state", "config": {"resourceType": "file", "targetState": "exists"}}),
        json!({"type": "meta:custom", "config": {"handlerPath": "done.sh"}}),
    ] {
        for holds in [true, false] {
            let config = json!({"operator": "or", "conditions": [never, condition], "maxIterations": 9});
            let mut drive = small(Generation::Closing)
                .file("done.sh", "#!/bin/sh\n")
                .given("file", "out.txt")
                .verdict("meta:composite", config)
                .drive();
            drive.say("next").look(holds);
            let ended = drive.end().map(|(state, _)| state);
            assert_eq!(ended, holds.then_some(EndState::Completed), "{condition}");
        }
    }
}
