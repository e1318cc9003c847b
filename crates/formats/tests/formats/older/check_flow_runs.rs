//! What keys of a check flow do in a run: which files are asked, and what a check is held to.

use cuegate_engine::{Answer, AskKind, EndState, Event};
use cuegate_formats::AgentOptions;
use serde_json::{Value, json};

use crate::older::check_flow::{DIR, sound};
use crate::registry::drive::{Drive, put};
use crate::support::Project;

/// A check flow with more in a file of it, `null` taking a key away.
fn more(files: &Project, file: &str, what: Value) -> Project {
    let mut files = files.clone();
    let path = format!("{DIR}/{file}");
    let mut json: Value = serde_json::from_slice(&files[&path]).unwrap();
    put(&mut json, what);
    files.insert(path, json.to_string().into_bytes());
    files
}

/// The sound check flow with these changes of its registry, one after another.
fn with(changes: &[Value]) -> Project {
    changes.iter().fold(sound(), |files, change| more(&files, "steps_registry.json", change.clone()))
}

/// Puts a file into the agent's folder.
fn file(files: &mut Project, path: &str, text: &str) {
    files.insert(format!("{DIR}/{path}"), text.as_bytes().to_vec());
}

fn drive(files: &Project) -> Drive {
    let options = AgentOptions { agent_dir: DIR.to_owned(), ..AgentOptions::default() };
    Drive::start(files, &options, &[("topic", "parsers")], Some("mend the roof"))
}

fn done() -> Answer {
    Answer { text: "done".to_owned(), ..Answer::default() }
}

#[test]
fn a_prompt_is_the_file_that_its_reference_names() {
    let parts = |more: Value| {
        let mut parts = json!({"c1": "a", "c2": "b", "c3": "c"});
        put(&mut parts, more);
        parts
    };
    let none = || json!({});
    // The registry, the agent, the reference, and where the prompt lies then.
    let cases: [(Value, Value, Value, &str); 9] = [
        (none(), none(), json!({"path": "one.md"}), "prompts/one.md"),
        (json!({"basePath": "texts"}), none(), json!({"path": "one.md"}), "texts/one.md"),
        (
            json!({"basePath": "texts"}),
            json!({"prompts": {"fallbackDir": "old"}}),
            json!({"path": "one.md"}),
            "old/one.md",
        ),
        (none(), none(), parts(none()), "prompts/a/b/c/f_default.md"),
        (none(), none(), parts(json!({"edition": "short"})), "prompts/a/b/c/f_short.md"),
        (
            none(),
            none(),
            parts(json!({"edition": "short", "adaptation": "red"})),
            "prompts/a/b/c/f_short_red.md",
        ),
        (
            json!({"editions": {"short": "brief"}}),
            none(),
            parts(json!({"edition": "short"})),
            "prompts/a/b/c/f_brief.md",
        ),
        (none(), none(), json!({"path": "none.md", "fallback": "two.md"}), "prompts/two.md"),
        (none(), none(), parts(json!({"fallback": "two.md"})), "prompts/two.md"),
    ];
    for (registry, agent, reference, path) in cases {
        // A step's own prompt, and in the same way its check's.
        for of_check in [false, true] {
            let other = json!({"path": "other.md"});
            let (own, check) = if of_check { (other, reference.clone()) } else { (reference.clone(), other) };
            let step = json!({"id": "s_a8f3", "name": "Analyze", "prompt": own, "check": {"prompt": check,
                "onPass": {"complete": true}, "onFail": {"fallback": "s_a8f3"}}});
            let alone = json!({"steps": {"s_a8f3": step}});
            let flow = with(&[json!({"steps": null, "editions": null}), alone, registry.clone()]);
            let mut files = more(&flow, "agent.json", agent.clone());
            files.retain(|path, _| path.ends_with(".json") || path.ends_with("system.md"));
            for place in ["prompts", "texts", "old"] {
                file(&mut files, &format!("{place}/other.md"), "Other.");
            }
            file(&mut files, path, "Here I am.");
            let mut run = drive(&files);
            if of_check {
                assert_eq!(run.prompt(), "Other.");
                run.answer(done());
                assert_eq!(run.asked().ask.kind, AskKind::Check);
            }
            assert_eq!(run.prompt(), "Here I am.", "{reference}");
        }
    }
}

#[test]
fn prompts_of_a_check_flow_read_its_parameters_and_the_task() {
    let mut files = with(&[json!({"steps": {"s_a8f3": {"usesStdin": true, "variables": ["topic"]}}})]);
    file(&mut files, "prompts/analyze.md", "Analyze {uv-topic}, {uv-iteration}: {input_text}.");
    assert_eq!(drive(&files).prompt(), "Analyze parsers, 1: mend the roof.");
}

#[test]
fn a_check_flow_begins_with_its_entry() {
    assert_eq!(drive(&sound()).step(), "s_a8f3");
    assert_eq!(drive(&with(&[json!({"entryStep": "s_b2c1de"})])).step(), "s_b2c1de");
}

/// What `responseFormat` says is what the check is sent, and what its answer is held to.
#[test]
fn a_check_answers_in_its_response_format() {
    let sent = |run: &Drive| {
        let schema = run.asked().ask.schema.unwrap();
        run.flow.schemas[schema.0 as usize].value().to_string()
    };
    let mut run = drive(&sound());
    let schema = sent(run.answer(done()));
    for part in [r#""enum":["pass","fail","ok","ng"]"#, r#""message":{"type":"string"}"#] {
        assert!(schema.contains(part), "{schema}");
    }
    run.output(json!({"result": "pass", "message": "fine"}));
    assert_eq!(run.step(), "s_b2c1de");
    let format = json!({"result": "ok|ng", "score": "number", "sure": "boolean"});
    let mut run = drive(&with(&[json!({"steps": {"s_a8f3": {"check": {"responseFormat": format}}}})]));
    let schema = sent(run.answer(done()));
    for part in [r#""score":{"type":"number"}"#, r#""sure":{"type":"boolean"}"#] {
        assert!(schema.contains(part), "{schema}");
    }
}

/// Every property of a transition, for a check that passes and for one that does not.
/// The message beside a result is read of the object that says the result, though another one stands before it.
#[test]
fn a_message_is_read_beside_the_result_wherever_that_stands() {
    let reason = |text: &str| {
        let mut run = drive(&sound());
        run.answer(done()).answer(Answer { text: text.to_owned(), ..Answer::default() });
        let mut reasons = run.events.iter().filter_map(|event| match event {
            Event::Decided { reason, .. } => reason.clone(),
            _ => None,
        });
        reasons.next_back().map(|reason| reason.to_string())
    };
    let first = "The tests said:\n\n```json\n{\"passed\": 12}\n```\n\nso all is well.\n\n";
    let second = "```json\n{\"result\": \"ok\", \"message\": \"fine\"}\n```\n";
    assert_eq!(reason(&format!("{first}{second}")).as_deref(), Some("fine"));
    assert_eq!(reason("{\"passed\": 12} result: ok").as_deref(), Some("{\"passed\": 12} result: ok"));
}

#[test]
fn each_property_of_a_transition_leads_where_it_says() {
    // The transition, after how many results, and where it has led.
    let cases: [(Value, usize, &str); 7] = [
        (json!({"next": "s_b2c1de"}), 1, "s_b2c1de"),
        (json!({"fallback": "s_b2c1de"}), 1, "s_b2c1de"),
        (json!({"complete": true}), 1, "Completed"),
        (json!({"complete": true, "next": "s_b2c1de"}), 1, "Completed"),
        (json!({"retry": true, "maxRetries": 2}), 2, "s_a8f3"),
        (json!({"retry": true, "maxRetries": 2}), 3, "Failed"),
        (json!({"retry": true, "maxRetries": 2, "fallback": "s_b2c1de"}), 3, "s_b2c1de"),
    ];
    for (way, results, expected) in &cases {
        for (key, other, word) in [("onPass", "onFail", "ok"), ("onFail", "onPass", "ng")] {
            let none = json!({"steps": {"s_a8f3": {"check": {"onPass": null, "onFail": null}}}});
            let both = json!({"steps": {"s_a8f3": {"check": { key: way, other: {"next": "s_b2c1de"} }}}});
            let mut run = drive(&with(&[none, both]));
            for _ in 0..*results {
                run.answer(done()).output(json!({"result": word, "message": ""}));
            }
            let at = run.end().map_or_else(|| run.step(), |(state, _)| format!("{state:?}"));
            assert_eq!(at, *expected, "{key}: {way}");
        }
    }
}

/// `maxRetries` 0, or none, is no limit of its own: that of the document holds, 100 executions.
#[test]
fn retries_without_a_limit_end_at_the_limit_of_the_document() {
    for max in [json!(0), Value::Null] {
        let none = json!({"steps": {"s_a8f3": {"check": {"onFail": null}}}});
        let way = json!({"steps": {"s_a8f3": {"check": {"onFail": {"retry": true, "maxRetries": max}}}}});
        let mut run = drive(&with(&[none, way]));
        for _ in 0..99 {
            run.answer(done()).output(json!({"result": "ng"}));
            assert_eq!(run.step(), "s_a8f3");
        }
        run.answer(done()).output(json!({"result": "ng"}));
        assert_eq!(run.end().unwrap().0, EndState::Exhausted);
    }
}

/// Each of the two is 1 where it is not written.
#[test]
fn a_step_is_executed_as_often_as_its_iterations_say() {
    let of = |iterations: Value| {
        let none = json!({"entryStep": "s_b2c1de", "steps": {"s_b2c1de": {"iterations": null}}});
        drive(&with(&[none, json!({"steps": {"s_b2c1de": {"iterations": iterations}}})]))
    };
    for (iterations, least, most) in [
        (Value::Null, 1, 1),
        (json!({"min": 1}), 1, 1),
        (json!({"max": 2}), 1, 2),
        (json!({"min": 2, "max": 2}), 2, 2),
        (json!({"min": 2, "max": 4}), 2, 4),
    ] {
        let mut run = of(iterations.clone());
        for execution in 1..=most {
            assert_eq!(run.asked().ask.kind, AskKind::Work, "{iterations}");
            run.answer(done());
            if execution >= least {
                assert_eq!(run.asked().ask.kind, AskKind::Check, "{iterations}");
                run.output(json!({"result": "ng"}));
            }
        }
        assert_eq!(run.step(), "s_a8f3", "{iterations}: `onFail` acts");
    }
}
