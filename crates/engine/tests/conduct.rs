//! Action blocks and their effects, questions, and inspected answers.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::sync::Arc;

use cuegate_engine::{
    Answer, Command, CommandId, Completion, EffectFinished, EffectKind, EffectResult, EffectState, EndState,
    Event, ExecResult, Exit, State, WaitKind,
};
use cuegate_flow::model::{Actions, Conduct, Flow, Reaction, Role};
use cuegate_testkit::{Builder, flows, world::Case};
use serde_json::{Value, json};

/// A flow where `work` hands off to `close`, whose `closing` completes the run.
fn flow(conduct: Conduct) -> Arc<Flow> {
    Builder::new("conduct", "registry-closing", "work")
        .limit(4)
        .ask("work", Role::Work, &["next", "handoff"])
        .to("next", "work")
        .hands_off("handoff", "close")
        .ask("close", Role::Work, &["closing"])
        .to("closing", "@completed")
        .conduct(conduct)
        .flow()
}

fn acting() -> Conduct {
    let exec = |path: &str| Reaction::Exec(flows::program(path));
    Conduct {
        actions: Some(Actions {
            marker: "json".into(),
            types: Some(vec!["note".into(), "label".into(), "post".into()]),
            handlers: vec![
                ("note".into(), Reaction::Log),
                ("label".into(), exec("a/label")),
                ("drop".into(), exec("a/drop")),
            ],
        }),
        ..Conduct::default()
    }
}

fn start(flow: &Flow) -> Case<'_> {
    let mut case = Case::new(flow);
    case.start();
    case
}

fn ask(case: &Case<'_>) -> CommandId {
    let [Command::Ask(ask)] = &case.pending()[..] else { panic!("no ask: {:?}", case.pending()) };
    ask.id
}

fn say(case: &mut Case<'_>, action: &str, text: &str) {
    let answer =
        Answer { output: Some(json!({"action": action})), text: text.to_owned(), ..Answer::default() };
    let ask = ask(case);
    case.complete(Completion::Answered { ask, answer: Box::new(answer), seen: None });
}

fn question(case: &mut Case<'_>) {
    let answer = Answer { asks_person: Some("Which?".to_owned()), ..Answer::default() };
    let ask = ask(case);
    case.complete(Completion::Answered { ask, answer: Box::new(answer), seen: None });
}

fn effect(case: &Case<'_>) -> cuegate_engine::Effect {
    let [Command::Effect(effect)] = &case.pending()[..] else { panic!("no effect: {:?}", case.pending()) };
    effect.effect.clone()
}

fn act(case: &mut Case<'_>, code: i32) {
    let exec =
        ExecResult { exit: Exit::Code(code), stdout: "ok".to_owned(), stderr: String::new(), duration_ms: 1 };
    let id = effect(case).id;
    case.complete(Completion::Acted {
        id,
        attempt: 0,
        result: EffectResult::Ran(exec),
        duration_ms: 1,
        seen: None,
    });
}

fn block(action: &str, n: u32) -> String {
    format!("```json\n{{\"action\": \"{action}\", \"n\": {n}}}\n```\n")
}

/// Every block found: its type, its effect, and whether that is allowed.
fn found(case: &Case<'_>) -> Vec<(String, Option<String>, bool)> {
    let found = |event: &Event| match event {
        Event::ActionFound { action, handler, allowed, .. } => {
            Some((action.to_string(), handler.as_ref().map(ToString::to_string), *allowed))
        }
        _ => None,
    };
    case.events.iter().flatten().filter_map(found).collect()
}

#[test]
fn every_action_block_is_recorded_and_handled_by_the_definition() {
    let flow = flow(acting());
    let mut case = start(&flow);
    let text = ["note", "label", "drop", "post", "other"].map(|action| block(action, 1)).concat();
    say(&mut case, "next", &text);
    let handler = |action: &str, handler: Option<&str>, allowed| {
        (action.to_owned(), handler.map(str::to_owned), allowed)
    };
    assert_eq!(
        found(&case),
        [
            handler("note", Some("log"), true),
            handler("label", Some("exec:a/label"), true),
            handler("drop", None, false),
            handler("post", None, true),
            handler("other", None, false),
        ]
    );
    let effect = effect(&case);
    let path = EffectKind::Exec { path: "a/label".into() };
    assert_eq!((&*effect.action, &effect.kind, effect.visit), ("label", &path, 1));
}

#[test]
fn effects_run_one_by_one_before_the_next_ask() {
    let flow = flow(acting());
    let mut case = start(&flow);
    say(&mut case, "handoff", &[block("label", 1), block("label", 2)].concat());
    let first = effect(&case);
    act(&mut case, 0);
    let second = effect(&case);
    assert_ne!(first.id, second.id);
    // A failed effect is recorded, and the run continues.
    act(&mut case, 3);
    let done: Vec<(bool, &str)> = case
        .events
        .iter()
        .flatten()
        .filter_map(|event| match event {
            Event::EffectFinished(EffectFinished { state, said, .. }) => {
                Some((*state == EffectState::Done, said.as_str()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(done, [(true, "exit 0"), (false, "exit 3")]);
    say(&mut case, "closing", "");
    assert!(case.ended());
}

#[test]
fn an_effect_is_done_once() {
    let flow = flow(acting());
    let mut case = start(&flow);
    say(&mut case, "handoff", &block("label", 1));
    let id = effect(&case).id;
    case.crash();
    assert_eq!(effect(&case).id, id, "what was not done is done under the same name");
    act(&mut case, 0);
    case.crash();
    assert!(matches!(case.pending()[..], [Command::Ask(_)]));
    let exec =
        ExecResult { exit: Exit::Code(0), stdout: String::new(), stderr: String::new(), duration_ms: 1 };
    assert!(
        !case.complete(Completion::Acted {
            id,
            attempt: 0,
            result: EffectResult::Ran(exec),
            duration_ms: 1,
            seen: None
        }),
        "a repeated completion changes nothing"
    );
}

#[test]
fn the_end_waits_for_effects() {
    let flow = flow(acting());
    let mut case = start(&flow);
    say(&mut case, "handoff", "");
    say(&mut case, "closing", &block("label", 1));
    assert_eq!(case.run.state, State::Running);
    case.crash();
    case.complete(Completion::Interrupted { seen: None });
    assert!(case.unblock());
    act(&mut case, 0);
    let State::Ended { state, reason, .. } = &case.run.state else { panic!("{:?}", case.run.state) };
    assert_eq!((*state, reason.as_str()), (EndState::Completed, "`close` completed the workflow"));
}

#[test]
fn a_cancelled_run_has_no_effects() {
    let flow = flow(acting());
    let mut case = start(&flow);
    say(&mut case, "handoff", &block("label", 1));
    case.complete(Completion::Cancelled { seen: None });
    assert!(case.ended() && case.pending().is_empty() && case.run.effects.pending.is_empty());
}

#[test]
fn an_invalid_answer_has_no_action_blocks() {
    let flow = flow(acting());
    let mut case = start(&flow);
    say(&mut case, "fly", &block("label", 1));
    assert_eq!(found(&case), []);
    ask(&case);
}

#[test]
fn without_actions_a_block_is_text() {
    let flow = flow(Conduct::default());
    let mut case = start(&flow);
    say(&mut case, "next", &block("label", 1));
    assert_eq!(found(&case), []);
}

#[test]
fn the_answer_itself_is_not_an_action_block() {
    let mut conduct = acting();
    conduct.actions.as_mut().unwrap().types = None;
    let flow = flow(conduct);
    let mut case = start(&flow);
    let answer = Answer { text: "```json\n{\"action\": \"next\"}\n```".to_owned(), ..Answer::default() };
    let ask = ask(&case);
    case.complete(Completion::Answered { ask, answer: Box::new(answer), seen: None });
    assert_eq!(found(&case), []);
}

/// An answer without structured output, with an action block before it.
#[test]
fn a_block_before_the_answer_is_not_the_answer() {
    for block_first in ["label", "other"] {
        let flow = flow(acting());
        let mut case = start(&flow);
        let ask = ask(&case);
        let text = block(block_first, 1) + "So:\n```json\n{\"action\": \"next\"}\n```\n";
        let answer = Answer { text, ..Answer::default() };
        case.complete(Completion::Answered { ask, answer: Box::new(answer), seen: None });
        let rejected =
            case.events.iter().flatten().any(|event| matches!(event, Event::AnswerRejected { .. }));
        // A word that is neither an outcome nor an action is an invalid answer.
        assert_eq!(rejected, block_first == "other");
        let asked: Vec<String> = found(&case).into_iter().map(|(action, ..)| action).collect();
        assert_eq!(asked, if rejected { vec![] } else { vec!["label"] });
    }
}

#[test]
fn a_question_is_answered_in_the_same_session() {
    let flow = flow(Conduct { auto_response: Some("Decide yourself.".into()), ..Conduct::default() });
    let mut case = start(&flow);
    question(&mut case);
    assert_eq!(case.run.state, State::Running);
    let [Command::Ask(ask)] = &case.pending()[..] else { panic!() };
    let told = format!("{:?}", ask.prompt);
    assert!(told.contains("Decide yourself."), "{told}");
    assert!(!ask.without_session.is_empty(), "who cannot go on with a conversation is told what was said");
    for _ in 0..4 {
        question(&mut case);
    }
    assert_eq!(case.run.state, State::Running);
    question(&mut case);
    let State::Suspended(waiting) = &case.run.state else { panic!("{:?}", case.run.state) };
    assert_eq!(waiting.kind, WaitKind::Person, "an agent that asks on and on needs a person");
}

#[test]
fn without_a_response_a_question_waits_for_a_person() {
    let flow = flow(Conduct::default());
    let mut case = start(&flow);
    question(&mut case);
    assert!(matches!(&case.run.state, State::Suspended(waiting) if waiting.kind == WaitKind::Person));
}

#[test]
fn inspected_answers_are_compared_with_their_schemas() {
    let schema = json!({
        "type": "object", "required": ["action", "plan"],
        "properties": {"action": {"enum": ["next", "handoff"]}, "plan": {"type": "string"}}
    });
    let flow = Builder::new("conduct", "registry-closing", "work")
        .ask("work", Role::Work, &["next", "handoff"])
        .schema(schema)
        .to("next", "work")
        .to("handoff", "@completed")
        .conduct(Conduct { inspects: true, ..Conduct::default() })
        .flow();
    let mut case = start(&flow);
    let inspected = |case: &Case<'_>| {
        case.events.last().unwrap().iter().find_map(|event| match event {
            Event::Inspected { found, problems, .. } => Some((*found, problems.clone())),
            _ => None,
        })
    };
    let mut give = |output: Option<Value>| {
        let ask = ask(&case);
        let answer = Answer { output, text: "prose".to_owned(), ..Answer::default() };
        case.complete(Completion::Answered { ask, answer: Box::new(answer), seen: None });
        inspected(&case)
    };
    assert_eq!(give(Some(json!({"action": " NEXT ", "plan": "x"}))), Some((true, vec![])));
    let problems = vec!["\"plan\" is a required property".to_owned()];
    assert_eq!(give(Some(json!({"action": "next"}))), Some((true, problems)));
    assert_eq!(give(None), Some((false, vec![])));
}

#[test]
fn interrupted_anywhere_effects_are_neither_lost_nor_doubled() {
    let flow = flows::acting();
    for seed in 0..200 {
        let whole = walk(&flow, seed, false);
        assert_eq!(walk(&flow, seed, true), whole, "seed {seed}");
    }
}

/// All effect events of a run, with or without a crash after each record.
fn walk(flow: &Flow, seed: u64, crash: bool) -> Vec<String> {
    let mut case = start(flow);
    for _ in 0..500 {
        if crash {
            case.crash();
        }
        match case.pending().first() {
            Some(command) => {
                let completion = cuegate_testkit::world::respond(&case, seed, command);
                case.complete(completion);
            }
            None if case.ended() || !case.unblock() => break,
            None => {}
        }
    }
    let about = |event: &Event| {
        let of = matches!(
            event,
            Event::ActionFound { .. } | Event::EffectFinished(EffectFinished { .. }) | Event::Ended { .. }
        );
        of.then(|| serde_json::to_string(event).unwrap())
    };
    case.events.iter().flatten().filter_map(about).collect()
}

/// Sandbox denials are recorded and have no other consequence.
#[test]
fn sandbox_denials_are_recorded_during_an_ask() {
    let flow = flow(acting());
    let mut case = start(&flow);
    let ask = ask(&case);
    let refused = || Completion::SandboxDenied { by: ask, to: "a.test:443".to_owned(), why: "no".to_owned() };
    case.complete(refused());
    let told = case.events.last().unwrap().clone();
    let wanted = Event::SandboxDenied {
        by: ask,
        step: "work".into(),
        to: "a.test:443".to_owned(),
        why: "no".to_owned(),
    };
    assert_eq!(told, [wanted]);
    assert_eq!(self::ask(&case), ask, "the ask is pending as before");
    let before = case.events.len();
    case.complete(Completion::Cancelled { seen: None });
    case.complete(refused());
    assert_eq!(case.events.len(), before + 1, "of a run that has ended nobody is told");
}
