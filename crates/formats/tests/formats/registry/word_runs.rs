//! Words: what agents answer, what it means in each generation, which kind of step may decide it, and where that leads.

use cuegate_engine::EndState;
use cuegate_formats::Generation;
use serde_json::{Value, json};

use crate::registry::drive::{Small, small};

const BOTH: [Generation; 2] = [Generation::Closing, Generation::Complete];

/// A step that may decide these intents, each with its transition, is the first one.
fn first(generation: Generation, transitions: &Value) -> Small {
    let id = "initial.first";
    small(generation).step(id, transitions.clone()).registry(json!({ "entryStep": id }))
}

/// Where an answer of the first step leads; `None` when it is no answer.
fn leads(small: &Small, word: &str) -> Option<String> {
    let mut drive = small.drive();
    drive.say(word);
    match drive.end() {
        Some((state, _)) => Some(format!("{state:?}")),
        None if drive.rejected() > 0 => None,
        None => Some(drive.step()),
    }
}

#[test]
fn every_word_of_an_answer_means_its_intent() {
    let work = json!({"next": {"target": "continuation.fix"}, "repeat": {"target": "initial.fix"}, "handoff": {"target": "closure.fix"}});
    let closing = first(Generation::Closing, &work);
    let closure = small(Generation::Closing).registry(json!({"entryStep": "closure.fix"}));
    let older = json!({"next": {"target": "continuation.fix"}, "repeat": {"target": "initial.fix"}, "complete": {"target": "complete.fix"}});
    let complete = first(Generation::Complete, &older);
    let ending = small(Generation::Complete).registry(json!({"entryStep": "complete.fix"}));
    let cases: [(&Small, &str, Option<&str>); 34] = [
        (&closing, "next", Some("continuation.fix")),
        (&closing, "continue", Some("continuation.fix")),
        (&closing, "pass", Some("continuation.fix")),
        (&closing, "repeat", Some("initial.fix")),
        (&closing, "retry", Some("initial.fix")),
        (&closing, "wait", Some("initial.fix")),
        (&closing, "fail", Some("initial.fix")),
        (&closing, "handoff", Some("closure.fix")),
        (&closing, " Next\n", Some("continuation.fix")),
        (&closing, "CONTINUE", Some("continuation.fix")),
        (&closing, "abort", Some("Aborted")),
        (&closing, "closing", None),
        (&closing, "done", None),
        (&closing, "escalate", None),
        (&closing, "complete", None),
        (&closing, "fly", None),
        (&closure, "closing", Some("Completed")),
        (&closure, "done", Some("Completed")),
        (&closure, "finished", Some("Completed")),
        (&closure, "fail", Some("closure.fix")),
        (&closure, "next", None),
        (&complete, "next", Some("continuation.fix")),
        (&complete, "continue", Some("continuation.fix")),
        (&complete, "repeat", Some("initial.fix")),
        (&complete, "retry", Some("initial.fix")),
        (&complete, "wait", Some("initial.fix")),
        (&complete, "complete", Some("complete.fix")),
        (&complete, "escalate", Some("Aborted")),
        (&complete, "abort", Some("Aborted")),
        (&complete, "pass", None),
        (&complete, "done", None),
        (&complete, "handoff", None),
        (&ending, "complete", Some("Completed")),
        (&ending, "closing", None),
    ];
    for (small, word, expected) in cases {
        assert_eq!(leads(small, word).as_deref(), expected, "{word}");
    }
}

/// The tables of 14.1, 14.4.1 and 14.4.2: which kind of step has which intents. Those that it has act in a run, the others
/// are refused when the definition is loaded; whether `stepKind` says the kind or `c2` implies it.
#[test]
fn each_kind_of_step_decides_what_its_row_says() {
    let target = |intent: &str| match intent {
        "handoff" => json!({"target": "closure.fix"}),
        "closing" => json!({"target": null}),
        _ => json!({"target": "continuation.fix"}),
    };
    let kinds = [
        ("work", "initial", ["next", "repeat", "jump", "handoff"].as_slice()),
        ("work", "continuation", &["next", "repeat", "jump", "handoff"]),
        ("verification", "verification", &["next", "repeat", "jump", "escalate"]),
        ("closure", "closure", &["closing", "repeat"]),
    ];
    for (kind, c2, allowed) in kinds {
        for intent in ["next", "repeat", "jump", "handoff", "closing", "escalate", "abort"] {
            let transitions = if intent == "abort" { json!({}) } else { json!({ intent: target(intent) }) };
            let implied = small(Generation::Closing)
                .step(&format!("{c2}.first"), transitions.clone())
                .registry(json!({"entryStep": format!("{c2}.first")}));
            let written = implied.clone().with(&format!("{c2}.first"), json!({"stepKind": kind}));
            for all in [implied, written] {
                if intent == "abort" {
                    // It needs no row: another intent is there, and giving up is always allowed.
                    let way = allowed[0];
                    let all = all.step(&format!("{c2}.first"), json!({ way: target(way) }));
                    assert_eq!(leads(&all, "abort").as_deref(), Some("Aborted"), "{kind}");
                    continue;
                }
                let expected = match intent {
                    "handoff" => "closure.fix",
                    "closing" => "Completed",
                    _ => "continuation.fix",
                };
                if allowed.contains(&intent) {
                    assert_eq!(leads(&all, intent).as_deref(), Some(expected), "{kind} {intent}");
                } else {
                    let found = all.findings();
                    assert!(
                        found.contains("error[") && found.contains(&format!("`{intent}`")),
                        "{kind} {intent}: {found}"
                    );
                }
            }
        }
    }
}

/// A kind that is written counts, whatever the name and `c2` say.
#[test]
fn a_written_kind_comes_before_the_one_that_c2_implies() {
    let all = small(Generation::Closing)
        .step("initial.last", json!({"closing": {"target": null}}))
        .with("initial.last", json!({"stepKind": "closure"}))
        .registry(json!({"entryStep": "initial.last"}));
    assert_eq!(leads(&all, "closing").as_deref(), Some("Completed"));
}

#[test]
fn an_intent_is_read_where_the_gate_says() {
    for generation in BOTH {
        let all = small(generation)
            .with("initial.fix", json!({"structuredGate": {"intentField": "result.way"}}))
            .field(
                "initial.fix",
                json!({"result": {"type": "object", "properties": {"way": {"type": "string", "enum": ["next", "repeat"]}}}, "next_action": null}),
            );
        let all = if generation == Generation::Closing {
            all.with(
                "initial.fix",
                json!({"structuredGate": {"intentSchemaRef": "#/properties/result/properties/way"}}),
            )
        } else {
            all
        };
        let mut drive = all.drive();
        drive.output(json!({"result": {"way": "next"}}));
        assert_eq!(drive.step(), "continuation.fix");
        let mut drive = all.drive();
        drive.output(json!({"next_action": {"action": "next"}}));
        assert_eq!((drive.step(), drive.rejected()), ("initial.fix".into(), 1));
    }
    // The "complete" generation has a place of its own where none is written.
    let unsaid =
        small(Generation::Complete).with("initial.fix", json!({"structuredGate": {"intentField": null}}));
    assert_eq!(leads(&unsaid, "next").as_deref(), Some("continuation.fix"));
}

/// `failFast` is the default; without it `fallbackIntent` acts after the repairs, however often. In the "complete"
/// generation it acts in the first iteration only.
#[test]
fn an_unreadable_intent_fails_the_run_or_falls_back() {
    let silent = json!({"summary": "nothing decided"});
    let strict = small(Generation::Closing);
    let spelled =
        small(Generation::Closing).with("initial.fix", json!({"structuredGate": {"failFast": true}}));
    for all in [strict, spelled] {
        let mut drive = all.drive();
        drive.output(silent.clone());
        assert_eq!(drive.output(silent.clone()).end().unwrap().0, EndState::Failed);
    }
    let falls = json!({"structuredGate": {"failFast": false, "fallbackIntent": "repeat"}});
    let mut drive = small(Generation::Closing).with("initial.fix", falls).drive();
    for _ in 0..3 {
        drive.output(silent.clone()).output(silent.clone());
        assert_eq!(drive.step(), "initial.fix");
    }
    assert_eq!(drive.way(), ["initial.fix → initial.fix"; 3]);
    let older = json!({"structuredGate": {"fallbackIntent": "repeat"}});
    let mut drive = small(Generation::Complete).with("initial.fix", older).drive();
    drive.output(silent.clone()).output(silent.clone());
    assert_eq!(drive.way(), ["initial.fix → initial.fix"]);
    drive.output(silent.clone()).output(silent);
    let (state, reason) = drive.end().unwrap();
    assert!(
        state == EndState::Failed && reason.starts_with("[StepFlow] No intent produced for iteration 2"),
        "{reason}"
    );
}

/// What a schema says around the field was written for the words that it lists.
#[test]
fn who_gives_up_fits_where_another_word_would() {
    let action =
        |word: &str| json!({"properties": {"next_action": {"properties": {"action": {"const": word}}}}});
    let answer = |word: &str| json!({"next_action": {"action": word}});
    let schemas = [
        json!({"oneOf": [action("next"), action("repeat")]}),
        json!({"if": action("next"), "then": {"minProperties": 1}, "else": action("repeat")}),
        json!({"enum": [answer("next"), answer("repeat")]}),
        json!({"not": action("abort")}),
    ];
    for generation in BOTH {
        for schema in &schemas {
            let small = small(generation).schema("initial.fix", schema.clone());
            assert!(!small.findings().contains("error["), "{}", small.findings());
            assert_eq!(leads(&small, "abort").as_deref(), Some("Aborted"), "{generation:?} {schema}");
            assert_eq!(leads(&small, "next").as_deref(), Some("continuation.fix"), "{schema}");
        }
        // Whatever else is wrong with it is wrong all the same.
        let small = small(generation)
            .field("initial.fix", json!({"plan": {"type": "string"}}))
            .schema("initial.fix", json!({"oneOf": [action("next"), action("repeat")]}));
        let mut drive = small.drive();
        drive.say_with("abort", json!({"plan": 1}));
        assert_eq!(drive.rejected(), 1);
    }
}

/// `abort` is always allowed, so that it may stand in for an intent that cannot be read without being listed.
#[test]
fn giving_up_may_stand_in_for_an_unreadable_intent() {
    let silent = json!({"summary": "nothing decided"});
    for (generation, gate) in [
        (Generation::Closing, json!({"failFast": false, "fallbackIntent": "abort"})),
        (Generation::Complete, json!({"fallbackIntent": "abort"})),
    ] {
        let mut drive = small(generation).with("initial.fix", json!({ "structuredGate": gate })).drive();
        drive.output(silent.clone()).output(silent.clone());
        assert_eq!(drive.end().unwrap().0, EndState::Aborted);
    }
}

/// `escalate` leads a verification step to work or to verification.
#[test]
fn escalate_leads_a_verification_step_to_work_or_verification() {
    let all = small(Generation::Closing)
        .step(
            "verification.first",
            json!({"escalate": {"target": "verification.second"}, "next": {"target": "continuation.fix"}}),
        )
        .step("verification.second", json!({"escalate": {"target": "continuation.fix"}}))
        .registry(json!({"entryStep": "verification.first"}));
    let mut drive = all.drive();
    drive.say("escalate").say("escalate").say("handoff").say("closing");
    assert_eq!(
        drive.way(),
        [
            "verification.first → verification.second",
            "verification.second → continuation.fix",
            "continuation.fix → closure.fix",
            "closure.fix → @completed"
        ]
    );
}

/// What an answer names as its target, and where that leads; `None` when it is a bad answer.
type Led<'a> = (&'a str, Option<&'a str>);

/// What `targetMode` lets a `jump` lead to, and what it does where it is not written; in both generations.
#[test]
fn a_jump_leads_where_its_mode_says() {
    let field = |more: Value| {
        let mut gate = json!({"targetField": "next_action.to"});
        crate::registry::drive::put(&mut gate, more);
        gate
    };
    let named = json!({"targets": {"continuation.fix": "continuation.fix"}});
    let selected = json!({"targets": {"go": "continuation.fix", "default": "initial.fix"}});
    // The gate, the transition, and for each answer where it leads.
    let cases: [(Value, Value, [Led<'_>; 3]); 6] = [
        (
            field(json!({"targetMode": "explicit"})),
            named.clone(),
            [("continuation.fix", Some("continuation.fix")), ("initial.fix", None), ("go", None)],
        ),
        (
            field(json!({})),
            named.clone(),
            [("continuation.fix", Some("continuation.fix")), ("initial.fix", None), ("go", None)],
        ),
        (
            field(json!({"targetMode": "dynamic"})),
            Value::Null,
            [
                ("continuation.fix", Some("continuation.fix")),
                ("initial.fix", Some("initial.fix")),
                ("END", None),
            ],
        ),
        (
            field(json!({})),
            Value::Null,
            [
                ("continuation.fix", Some("continuation.fix")),
                ("initial.fix", Some("initial.fix")),
                ("END", None),
            ],
        ),
        (
            field(json!({"targetMode": "conditional"})),
            selected,
            [("go", Some("continuation.fix")), ("other", Some("initial.fix")), ("END", Some("initial.fix"))],
        ),
        (
            json!({}),
            json!({"target": "continuation.fix"}),
            [
                ("continuation.fix", Some("continuation.fix")),
                ("END", Some("continuation.fix")),
                ("go", Some("continuation.fix")),
            ],
        ),
    ];
    for generation in BOTH {
        for (gate, jump, answers) in &cases {
            let all = small(generation)
                .with(
                    "initial.fix",
                    json!({"structuredGate": {"allowedIntents": ["next", "repeat", "jump"]}}),
                )
                .with("initial.fix", json!({ "structuredGate": gate, "transitions": {"jump": jump} }))
                .field(
                    "initial.fix",
                    json!({"next_action": {"properties": {"to": {"type": "string"},
                    "action": {"enum": ["next", "repeat", "jump"]}}}}),
                );
            let end = all.end();
            for (to, expected) in answers {
                let to = if *to == "END" { end } else { to };
                let mut drive = all.drive();
                drive.say_with("jump", json!({"next_action": {"to": to}}));
                let led = (drive.rejected() == 0).then(|| drive.step());
                assert_eq!(led.as_deref(), *expected, "{generation:?}: {gate} {jump} {to}");
            }
        }
    }
}

/// A handed-on value leads on, for every intent; `default` for all others; `null` ends only what ends.
#[test]
fn a_transition_leads_to_its_target_or_by_a_value() {
    for generation in BOTH {
        let by_value = json!({"condition": "status", "target": null,
            "targets": {"ready": "continuation.fix", "default": "initial.fix"}});
        for intent in ["next", "repeat"] {
            let all = small(generation)
                .with("initial.fix", json!({"transitions": { intent: by_value.clone() }}))
                .with("initial.fix", json!({"structuredGate": {"handoffFields": ["status"]}}))
                .field("initial.fix", json!({"status": {"type": "string"}}));
            for (status, expected) in [("ready", "continuation.fix"), ("blocked", "initial.fix")] {
                let mut drive = all.drive();
                assert_eq!(drive.say_with(intent, json!({ "status": status })).step(), expected);
            }
        }
        let (to_end, ending) = small(generation).ending();
        let mut drive = small(generation).drive();
        drive.say("next").say(to_end).say("repeat").say(ending);
        let end = small(generation).end();
        let way = [
            "initial.fix → continuation.fix".to_owned(),
            format!("continuation.fix → {end}"),
            format!("{end} → {end}"),
            format!("{end} → @completed"),
        ];
        assert_eq!((drive.way(), drive.end().unwrap().0), (way.to_vec(), EndState::Completed));
    }
}

/// An answer that cannot be used names no step.
#[test]
fn a_fallback_to_jump_needs_a_step_of_its_own() {
    let to = json!({"to": {"enum": ["continuation.fix"]},
        "next_action": {"properties": {"action": {"enum": ["next", "repeat", "jump"]}}}});
    for (mode, jump, acts) in [
        ("dynamic", Value::Null, false),
        ("explicit", json!({"targets": {"continuation.fix": "continuation.fix"}}), false),
        ("conditional", json!({"targets": {"continuation.fix": "continuation.fix"}}), false),
        ("explicit", json!({"target": "continuation.fix"}), true),
        (
            "conditional",
            json!({"targets": {"continuation.fix": "initial.fix", "default": "continuation.fix"}}),
            true,
        ),
    ] {
        for generation in BOTH {
            let fails_fast = if generation == Generation::Complete { Value::Null } else { json!(false) };
            let gate = json!({"allowedIntents": ["next", "repeat", "jump"], "targetField": "to",
                "targetMode": mode, "failFast": fails_fast, "fallbackIntent": "jump"});
            let small = small(generation)
                .field("initial.fix", to.clone())
                .with("initial.fix", json!({"structuredGate": gate, "transitions": {"jump": jump}}));
            let found = small.findings();
            let said = found.contains("warning[unused-key]: `fallbackIntent` has no effect");
            assert_eq!(said, !acts, "{mode}: {found}");
            let mut drive = small.drive();
            while drive.end().is_none() && drive.step() == "initial.fix" {
                drive.output(json!({"next_action": {"action": "?"}}));
            }
            let failed = drive.end().is_some_and(|(state, _)| state == EndState::Failed);
            assert_eq!(failed, !acts, "{mode} {generation:?}: {:?}", drive.end());
        }
    }
}
