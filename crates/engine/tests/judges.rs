//! What judges read and how they may answer: quoted text chooses no outcome, and a text can say that no outcome
//! applies.

use std::sync::Arc;

use cuegate_engine::{Answer, AskCommand, Command, Completion, EndState, Event, PromptPart, Start, State};
use cuegate_flow::{
    diagnostics::Span,
    model::{Flow, JoinPattern, JoinRule, Name, Outcome, OutcomeReader, Role, SessionRule},
};
use cuegate_testkit::{
    Builder,
    world::{Case, started},
};
use serde_json::{Value, json};

struct Script<'f>(Case<'f>);

impl<'f> Script<'f> {
    fn start(flow: &'f Flow) -> Script<'f> {
        let mut case = Case::new(flow);
        let mut started = started(flow);
        started.repairs_max = 1;
        case.complete(Completion::Start(Box::new(Start { started })));
        Script(case)
    }

    fn asks(&self) -> Vec<AskCommand> {
        let asks = self.0.pending().into_iter().filter_map(|command| match command {
            Command::Ask(ask) => Some(*ask),
            _ => None,
        });
        asks.collect()
    }

    fn asked(&self) -> Vec<String> {
        self.asks().iter().map(|ask| format!("{} {}", ask.kind.as_str(), ask.step)).collect()
    }

    fn answer(&mut self, step: &str, output: Option<Value>, text: &str) -> &mut Self {
        let ask = self.asks().into_iter().find(|ask| &*ask.step == step).expect("it is pending").id;
        let answer = Answer {
            output,
            text: text.to_owned(),
            session: Some("s1".to_owned()),
            provider: "scripted".to_owned(),
            ..Answer::default()
        };
        self.0.complete(Completion::Answered { ask, answer: Box::new(answer), seen: None });
        self
    }

    fn say(&mut self, step: &str, output: Value) -> &mut Self {
        self.answer(step, Some(output), "")
    }

    fn text(&mut self, step: &str, text: &str) -> &mut Self {
        self.answer(step, None, text)
    }

    /// The prompt of the pending ask without a session: stored texts by their fences.
    fn joined(&self) -> String {
        let ask = &self.asks()[0];
        ask.without_session
            .iter()
            .chain(&ask.prompt)
            .map(|part| match part {
                PromptPart::Text(text) => text.to_string(),
                PromptPart::Blob { fence, .. } => format!("<{}>", fence.as_deref().unwrap_or("plain")),
            })
            .collect()
    }

    fn end(&self) -> (EndState, &str) {
        match &self.0.run.state {
            State::Ended { state, reason, .. } => (*state, reason),
            other => panic!("not at an end: {other:?}"),
        }
    }

    fn decided(&self) -> Vec<String> {
        let decided = self.0.events.iter().flatten().filter_map(|event| match event {
            Event::Decided { outcome, .. } => Some(outcome.to_string()),
            _ => None,
        });
        decided.collect()
    }
}

fn tag(name: &str, words: &[&str]) -> OutcomeReader<Name> {
    let outcomes = words.iter().map(|word| Outcome::Named((*word).into())).collect();
    OutcomeReader::Tag { name: name.into(), base: 1, outcomes }
}

fn judge(step: &str) -> OutcomeReader<Name> {
    OutcomeReader::Judge { step: Name::new(step, Span::default()) }
}

/// A movement with rules of both kinds, judged by two steps in turn; `fresh` judges have no session.
fn plan(fresh: bool) -> Arc<Flow> {
    let session = || if fresh { SessionRule::Fresh } else { SessionRule::Branch("run".into()) };
    Builder::new("plan", "piece", "plan")
        .ask("plan", Role::Work, &["ready", "unclear", "none"])
        .fused(&[])
        .reader(tag("PLAN", &["ready", "unclear"]))
        .reader(judge("plan@ai"))
        .reader(judge("plan@judge"))
        .to("ready", "@completed")
        .to("deep", "@completed")
        .to("unclear", "@aborted")
        .ask("plan@ai", Role::Judge, &["deep", "none"])
        .reader(tag("JUDGE", &["deep"]))
        .session(session())
        .ask("plan@judge", Role::Judge, &["ready", "unclear", "none"])
        .reader(tag("PLAN", &["ready", "unclear"]))
        .session(session())
        .flow()
}

#[test]
fn a_tag_that_a_structured_answer_quotes_chooses_nothing() {
    let flow = plan(false);
    let mut script = Script::start(&flow);
    let quoted = "the file says [PLAN:1] and [JUDGE:1]";
    let none = json!({"action": "none", "response": quoted});
    script.answer("plan", Some(none.clone()), &none.to_string());
    assert_eq!(script.asked(), ["judge plan@ai"], "`none` is for the judges");
    // An invalid word is an invalid answer, whatever else the text contains.
    let wrong = json!({"action": "whatever", "reason": quoted});
    script.answer("plan@ai", Some(wrong.clone()), &wrong.to_string());
    assert_eq!(script.asked(), ["repair plan@ai"]);
    let none = json!({"action": "none", "reason": quoted});
    script.answer("plan@ai", None, &format!("{none}"));
    assert_eq!(script.asked(), ["judge plan@judge"]);
    script.answer("plan@judge", None, &format!("```json\n{none}\n```\n{quoted}"));
    assert_eq!(script.end(), (EndState::Failed, "no rule of `plan` matched"));
}

#[test]
fn tags_in_a_structured_answer_without_an_outcome_are_ignored() {
    let flow = plan(false);
    let mut script = Script::start(&flow);
    script.text("plan", "I tried");
    script.answer("plan@ai", Some(json!({"thought": "[JUDGE:1]"})), "{\"thought\": \"[JUDGE:1]\"}");
    assert_eq!(script.asked(), ["repair plan@ai"]);
}

#[test]
fn the_judged_answer_follows_the_instruction() {
    for fresh in [false, true] {
        let flow = plan(fresh);
        let mut script = Script::start(&flow);
        script.text("plan", "I tried");
        let told = "Do plan@ai. \n\nThe answer to decide about:\n<answer>\n";
        assert_eq!(script.joined(), told, "fresh: {fresh}");
        // A forked session has the whole exchange, so only the prompt is sent.
        assert!(script.asks()[0].without_session.is_empty());
        script.say("plan@ai", json!({"action": "what"}));
        let repair = script.joined();
        let after = format!("{told}\n\nYou answered:\n<your answer>\n\nYour answer could not be used:");
        assert!(repair.starts_with(&after), "{repair}");
    }
}

#[test]
fn a_text_can_say_that_no_outcome_applies() {
    for none in ["None of it holds. [JUDGE:0]", "**none**", "`none`.", "[JUDGE:1] or not: [judge:0]"] {
        let flow = plan(false);
        let mut script = Script::start(&flow);
        script.text("plan", "I tried").text("plan@ai", none);
        assert_eq!(script.asked(), ["judge plan@judge"], "{none}");
        script.text("plan@judge", &none.replace("JUDGE", "PLAN").replace("judge", "plan"));
        assert_eq!(script.end(), (EndState::Failed, "no rule of `plan` matched"), "{none}");
    }
    let flow = plan(false);
    let mut script = Script::start(&flow);
    script.text("plan", "I tried").text("plan@ai", "[JUDGE:0] at first, then [JUDGE:1]");
    assert_eq!(script.decided(), ["deep"]);
}

/// Two members, judged individually and together.
fn reviewers() -> Arc<Flow> {
    let all = JoinRule {
        pattern: JoinPattern::All(Outcome::Named("good".into())),
        outcome: Outcome::Named("fine".into()),
    };
    let member = |builder: Builder, id: &str| {
        let judged = format!("{id}@judge");
        builder
            .ask(id, Role::Work, &["good", "bad"])
            .fused(&[])
            .reader(judge(&judged))
            .ask(&judged, Role::Judge, &["good", "bad", "none"])
            .reader(tag(id, &["good", "bad"]))
    };
    let builder = Builder::new("reviewers", "piece", "both")
        .all("both", &["a", "b"], 2, vec![all])
        .or_judge("both@judge")
        .to("fine", "@completed")
        .to("mixed", "@aborted")
        .ask("both@judge", Role::Judge, &["mixed", "none"])
        .reader(tag("both", &["mixed"]));
    member(member(builder, "a"), "b").flow()
}

#[test]
fn judges_of_members_and_of_the_join_answer_in_text() {
    let flow = reviewers();
    let mut script = Script::start(&flow);
    script.text("a", "fine by me").text("b", "not by me");
    script.text("a@judge", "[A:1]").text("b@judge", "[B:0]");
    assert_eq!(script.asked(), ["judge both@judge"]);
    let joined = script.joined();
    assert!(joined.starts_with("Do both@judge. \n\nThe answers to decide about:\n### a (good)"), "{joined}");
    script.text("both@judge", "none");
    assert_eq!(script.end(), (EndState::Failed, "no rule of `both` matched: `a` good, `b` failed"));
    let mut script = Script::start(&flow);
    script.text("a", "x").text("b", "y").text("a@judge", "[A:1]").text("b@judge", "[B:2]");
    script.text("both@judge", "[BOTH:1]");
    assert_eq!(script.end().0, EndState::Aborted);
}

#[test]
fn a_person_sees_the_answer_and_all_questions() {
    let flow = Builder::new("asking", "piece", "plan")
        .ask("plan", Role::Work, &["unclear", "ready"])
        .fused(&[])
        .to("ready", "@completed")
        .to("unclear", "plan@person")
        .person("plan@person", "Which one?\n\n- {Question 1}\n- {Question 2}\n")
        .to("answered", "plan")
        .flow();
    let mut script = Script::start(&flow);
    script.say("plan", json!({"action": "unclear", "response": "1. Where to?\n2. \u{1b}[2JWhy?"}));
    let State::Suspended(waiting) = &script.0.run.state else { panic!("{:?}", script.0.run.state) };
    assert_eq!(
        waiting.detail,
        "`plan` said:\n> 1. Where to?\n> 2. \u{1b}[2JWhy?\n\nWhich one?\n\n- {Question 1}\n- {Question 2}"
    );
    let mut script = Script::start(&flow);
    script.say("plan", json!({"action": "unclear", "response": "x\n".repeat(5_000)}));
    let State::Suspended(waiting) = &script.0.run.state else { panic!("{:?}", script.0.run.state) };
    assert!(waiting.detail.chars().count() <= 2_000);
    assert!(waiting.detail.ends_with("- {Question 2}"), "the question is there whatever was said");
}

#[test]
fn a_person_sees_why_a_member_cannot_proceed() {
    let flow = reviewers();
    let mut script = Script::start(&flow);
    script.text("a", "fine").text("a@judge", "[A:1]").say("b", json!({"blocked": "no key\nfor the door"}));
    script.text("both@judge", "[BOTH:0]");
    let State::Suspended(waiting) = &script.0.run.state else { panic!("{:?}", script.0.run.state) };
    assert_eq!(
        waiting.detail,
        "no rule of `both` matched: `a` good, `b` blocked\n`b` cannot proceed: no key\nfor the door"
    );
}

/// A movement whose answers are plain text.
fn apart() -> Arc<Flow> {
    Builder::new("apart", "piece", "work")
        .ask("work", Role::Work, &[])
        .blocked_mark("[BLOCKED]")
        .reader(tag("work", &["done"]))
        .reader(judge("work@judge"))
        .to("done", "@completed")
        .ask("work@judge", Role::Judge, &["done", "none"])
        .flow()
}

#[test]
fn plain_text_can_say_that_it_cannot_proceed() {
    let flow = apart();
    let mut script = Script::start(&flow);
    script.text("work", "\n[BLOCKED] the key is missing\n");
    let State::Suspended(waiting) = &script.0.run.state else { panic!("{:?}", script.0.run.state) };
    assert_eq!(waiting.detail, "`work` cannot proceed: the key is missing");
    // A quoted mark does not block.
    let mut script = Script::start(&flow);
    script.text("work", "The file says: [BLOCKED] go away");
    assert_eq!(script.asked(), ["judge work@judge"]);
}

#[test]
fn an_empty_answer_is_invalid_work() {
    let flow = apart();
    let mut script = Script::start(&flow);
    script.text("work", " \n");
    assert_eq!(script.asked(), ["repair work"]);
    script.text("work", "");
    assert_eq!(script.end(), (EndState::Failed, "the answer of `work` cannot be used: the answer is empty"));
}
