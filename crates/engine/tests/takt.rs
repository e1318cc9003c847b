//! The rules of pieces, one script per rule: reports, answers with several parts, judges, members, persons and
//! sessions.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::fmt::Write as _;

use cuegate_engine::{
    Answer, AskCommand, Command, Completion, Event, FaultClass, PromptPart, Start, State, Usage,
};
use cuegate_flow::model::{
    Fact, Flow, JoinPattern, JoinRule, Outcome, OutcomeReader, Role, SessionRule, Source,
};
use cuegate_testkit::{
    Builder,
    world::{Case, started},
};
use insta::assert_snapshot;
use serde_json::{Value, json};

struct Script<'f> {
    case: Case<'f>,
    told: usize,
    text: String,
}

impl<'f> Script<'f> {
    fn start(flow: &'f Flow) -> Script<'f> {
        let mut script = Script { case: Case::new(flow), told: 0, text: String::new() };
        let mut started = started(flow);
        started.report_dir = Some("/reports".into());
        started.repairs_max = 1;
        script.case.complete(Completion::Start(Box::new(Start { started })));
        script.tell("start");
        script
    }

    fn asks(&self) -> Vec<AskCommand> {
        let asks = self.case.pending().into_iter().filter_map(|command| match command {
            Command::Ask(ask) => Some(*ask),
            _ => None,
        });
        asks.collect()
    }

    /// Answers the pending ask of this step.
    fn answer(&mut self, step: &str, what: &str, change: impl FnOnce(&mut Answer)) -> &mut Self {
        let mut answer =
            Answer { usage: Usage::default(), provider: "scripted".to_owned(), ..Answer::default() };
        change(&mut answer);
        let ask = self.asks().into_iter().find(|ask| &*ask.step == step).expect("it is pending").id;
        self.case.complete(Completion::Answered { ask, answer: Box::new(answer), seen: None });
        self.tell(&format!("{step}: {what}"))
    }

    fn say(&mut self, step: &str, output: Value) -> &mut Self {
        let what = output.to_string();
        self.answer(step, &what, |answer| answer.output = Some(output))
    }

    fn text(&mut self, step: &str, text: &str) -> &mut Self {
        self.answer(step, &format!("{text:?}"), |answer| answer.text = text.to_owned())
    }

    fn person(&mut self, text: &str) -> &mut Self {
        self.case.complete(Completion::PersonAnswered { text: text.to_owned(), found: None });
        self.tell(&format!("a person: {text}"))
    }

    fn tell(&mut self, what: &str) -> &mut Self {
        writeln!(self.text, "> {what}").unwrap();
        let events: Vec<String> = self.case.events[self.told..].iter().flatten().filter_map(brief).collect();
        self.told = self.case.events.len();
        writeln!(self.text, "  {}", events.join(" · ")).unwrap();
        for ask in self.asks() {
            writeln!(self.text, "  ? {} {}", ask.kind.as_str(), ask.step).unwrap();
        }
        match &self.case.run.state {
            State::Ended { state, reason, .. } => writeln!(self.text, "  = {state:?}: {reason}").unwrap(),
            State::Suspended(waiting) => {
                writeln!(self.text, "  … {:?}: {}", waiting.kind, waiting.detail).unwrap()
            }
            State::New | State::Running => {}
        }
        self
    }

    /// The prompt of the pending ask of a step; stored texts by their length.
    fn prompt(&self, step: &str) -> String {
        self.asks().into_iter().find(|ask| &*ask.step == step).map(|ask| plain(&ask.prompt)).unwrap()
    }
}

fn plain(parts: &[PromptPart]) -> String {
    parts
        .iter()
        .map(|part| match part {
            PromptPart::Text(text) => text.to_string(),
            PromptPart::Blob { blob, fence } => {
                format!("<{}:{}>", fence.as_deref().unwrap_or("plain"), blob.len)
            }
        })
        .collect()
}

fn brief(event: &Event) -> Option<String> {
    Some(match event {
        Event::StepEntered { step, visit, attempt, counts, iteration, .. } => {
            let iteration = if *counts { format!(" i{iteration}") } else { String::new() };
            format!("enter {step} v{visit}.{attempt}{iteration}")
        }
        Event::Decided { outcome, .. } => format!("decided {outcome}"),
        Event::VisitEnded { step, end, .. } => {
            let by = end.overridden_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            format!("end {step} → {}{by}", end.target.as_deref().unwrap_or("?"))
        }
        Event::ReportWritten { step, name, visit, .. } => format!("{step} wrote {name} v{visit}"),
        Event::Responded { answers, .. } => {
            let said: Vec<String> = answers
                .iter()
                .map(|spoken| match &spoken.text {
                    Some(text) => format!("{} {}", spoken.step, text.len),
                    None => format!("{} -", spoken.step),
                })
                .collect();
            format!("responded {}", said.join(", "))
        }
        Event::AnswerRejected { why, .. } => format!("rejected: {why}"),
        Event::MemberEnded { step, outcome, blocked, .. } => {
            format!(
                "{step}: {}{}",
                outcome.as_deref().unwrap_or("none"),
                if *blocked { " (blocked)" } else { "" }
            )
        }
        Event::MonitorFired { monitor, rounds } => format!("{monitor} after {rounds}"),
        Event::Ended { .. } => "ended".to_owned(),
        _ => return None,
    })
}

fn named(name: &str) -> Outcome {
    Outcome::Named(name.into())
}

fn tag(name: &str, words: &[&str]) -> OutcomeReader<cuegate_flow::model::Name> {
    let outcomes = words.iter().map(|word| if *word == "-" { Outcome::None } else { named(word) }).collect();
    OutcomeReader::Tag { name: name.into(), base: 1, outcomes }
}

fn judge(step: &str) -> OutcomeReader<cuegate_flow::model::Name> {
    OutcomeReader::Judge {
        step: cuegate_flow::model::Name::new(step, cuegate_flow::diagnostics::Span::default()),
    }
}

/// `plan` must write two reports; a tag may name its outcome, otherwise a judge decides.
fn plan() -> std::sync::Arc<Flow> {
    Builder::new("plan", "piece", "plan")
        .ask("plan", Role::Work, &["ready", "unclear", "none"])
        .fused(&["plan.md", "scope.md"])
        .reads("inputs", Source::Fact(Fact::UserInputs))
        .reader(tag("PLAN", &["ready", "-", "unclear"]))
        .reader(judge("plan@ai"))
        .reader(judge("plan@judge"))
        .to("ready", "work")
        .to("deep", "work")
        .to("unclear", "@aborted")
        .ask("plan@ai", Role::Judge, &["deep", "none"])
        .session(SessionRule::Branch("run".into()))
        .ask("plan@judge", Role::Judge, &["ready", "unclear", "none"])
        .session(SessionRule::Branch("run".into()))
        .ask("work", Role::Work, &["done", "again"])
        .fused(&[])
        .reads("plan", Source::Report("plan.md".into()))
        .reads("none", Source::Report("none.md".into()))
        .reads("said", Source::Fact(Fact::PreviousResponse))
        .reads("visit", Source::Fact(Fact::Visit))
        .reads("dir", Source::Fact(Fact::ReportDir))
        .to("done", "@completed")
        .to("again", "plan")
        .flow()
}

#[test]
fn one_answer_has_a_response_a_report_and_an_outcome() {
    let flow = plan();
    let mut script = Script::start(&flow);
    script.say(
        "plan",
        json!({"action": "Ready ", "response": "I planned", "reports": {"plan.md": "P", "scope.md": "S"}}),
    );
    assert_eq!(
        script.prompt("work"),
        "Do work. plan=<report plan.md:1>; none=(no report yet: none.md); said=<previous answer:9>; visit=1; dir=/reports; "
    );
    script.say("work", json!({"action": "again", "response": "no"}));
    script.say(
        "plan",
        json!({"action": "ready", "response": "better", "reports": {"plan.md": "PP", "scope.md": "S"}}),
    );
    assert!(script.prompt("work").starts_with("Do work. plan=<report plan.md:2>;"));
    assert!(script.prompt("work").contains("visit=2"));
    let files: Vec<String> =
        script.case.run.context.reports.files().into_iter().map(|file| file.path).collect();
    assert_eq!(
        files,
        ["report-versions/1/plan.md", "reports/plan.md", "report-versions/1/scope.md", "reports/scope.md"]
    );
    script.say("work", json!({"action": "done", "response": "yes"}));
    assert_snapshot!(script.text);
}

#[test]
fn an_incomplete_answer_is_invalid_and_plain_text_has_no_outcome() {
    let flow = plan();
    let mut script = Script::start(&flow);
    script
        .say("plan", json!({"action": "fly", "response": "r"}))
        .text("plan", "I thought of `{\"a\": 1}`. [PLAN:2] [plan:1] [PLAN:9]")
        .text("plan", "```markdown\n# The plan\n```")
        .text("plan", "")
        .text("plan", "the scope")
        .say("work", json!({"response": "no outcome"}))
        .say("work", json!({"action": "done"}));
    assert_snapshot!(script.text);
}

#[test]
fn reports_are_requested_in_a_read_only_fork() {
    let flow = plan();
    let mut script = Script::start(&flow);
    script.answer("plan", "text", |answer| {
        answer.text = "All is planned [PLAN:1]".to_owned();
        answer.session = Some("s1".to_owned());
    });
    let ask = &script.asks()[0];
    let session = ask.session.as_ref().unwrap();
    assert_eq!((session.id.as_str(), session.branch), ("s1", true));
    assert_eq!(plain(&ask.prompt), "Write plan.md.");
    assert_eq!(plain(&ask.without_session), "Do plan. inputs=; \n\nYou answered:\n<your answer:23>\n\n");
    assert!(!ask.boundary.permission.may_write() && ask.schema.is_none());
    script.answer("plan", "text", |answer| {
        answer.text = "P".to_owned();
        answer.session = Some("s2".to_owned());
    });
    // The exchange in a fork is not part of the session.
    assert_eq!(script.case.run.context.sessions["run"].id, "s1");
    script.text("plan", "S");
    assert_eq!(script.asks()[0].session.as_ref().map(|session| session.branch), Some(false));
}

#[test]
fn judges_are_asked_in_order_and_see_the_session() {
    let flow = plan();
    let mut script = Script::start(&flow);
    script.answer("plan", "none", |answer| {
        answer.output =
            Some(json!({"action": "none", "response": "hm", "reports": {"plan.md": "P", "scope.md": "S"}}));
        answer.session = Some("s1".to_owned());
    });
    let ask = &script.asks()[0];
    assert!(ask.session.as_ref().unwrap().branch);
    // The whole exchange in this order, also in a forked session.
    assert_eq!(plain(&ask.prompt), "Do plan@ai. \n\nThe answer to decide about:\n<answer:2>\n");
    assert_eq!(plain(&ask.without_session), "");
    script.say("plan@ai", json!({"action": "none"})).say("plan@judge", json!({"action": "what"}));
    // After a repair in a fork, the whole exchange is sent again.
    assert!(script.asks()[0].session.is_none());
    script.say("plan@judge", json!({"action": "none"}));
    assert_snapshot!(script.text);
}

#[test]
fn a_blocked_step_is_repeated_with_a_person_s_answer() {
    let flow = plan();
    let mut script = Script::start(&flow);
    script.say("plan", json!({"blocked": " no access ", "action": "fly"})).person("use the spare key");
    assert_eq!(script.prompt("plan"), "Do plan. inputs=<plain:17>; ");
    script
        .answer("plan", "asks", |answer| answer.asks_person = Some("which one?".to_owned()))
        .person("that one");
    // A step that asks during its work gets the answer in the same session.
    assert!(script.prompt("plan").starts_with("The answer to your question"));
    script.say(
        "plan",
        json!({"action": "unclear", "response": "-", "reports": {"plan.md": "P", "scope.md": "S"}}),
    );
    assert_snapshot!(script.text);
}

/// Three members; rules over them in YAML order, then a judge over their answers.
fn reviewers() -> std::sync::Arc<Flow> {
    let member = |builder: Builder, id: &str| {
        builder
            .ask(id, Role::Work, &["approved", "needs_fix"])
            .fused(&["review.md"])
            .session(SessionRule::Continue(id.into()))
            .reads("seen", Source::Report("review.md".into()))
    };
    let rule = |pattern, outcome: &str| JoinRule { pattern, outcome: named(outcome) };
    let builder = Builder::new("reviewers", "piece", "reviewers")
        .all(
            "reviewers",
            &["a", "b", "c"],
            2,
            vec![
                rule(
                    JoinPattern::Each(vec![named("approved"), named("needs_fix"), named("approved")]),
                    "second",
                ),
                rule(JoinPattern::All(named("approved")), "all"),
                rule(JoinPattern::Any(vec![named("odd")]), "odd"),
            ],
        )
        .or_judge("reviewers@judge")
        .to("second", "fix")
        .to("all", "@completed")
        .to("odd", "@aborted")
        .to("mixed", "fix")
        .ask("reviewers@judge", Role::Judge, &["mixed", "none"])
        .ask("fix", Role::Work, &["done"])
        .reads("said", Source::Fact(Fact::PreviousResponse))
        .to("done", "reviewers");
    let builder = member(builder, "a");
    let builder = member(builder, "b");
    member(builder, "c").flow()
}

fn review(action: &str, report: &str) -> Value {
    json!({"action": action, "response": format!("{action} it is"), "reports": {"review.md": report}})
}

#[test]
fn members_are_joined_by_rules_in_their_order() {
    let flow = reviewers();
    let mut script = Script::start(&flow);
    script
        .say("b", review("needs_fix", "of b"))
        .say("c", review("approved", "of c"))
        .say("a", review("approved", "of a"));
    assert_eq!(
        script.prompt("fix"),
        "Do fix. said=### a (approved)\n<answer of a:14>\n### b (needs_fix)\n<answer of b:15>\n### c (approved)\n<answer of c:14>\n; "
    );
    // The last member's value of a name is the newest, whatever the order of answers.
    let newest = script.case.run.context.reports.versions("review.md").last().unwrap();
    assert_eq!(&*newest.step, "c");
    script.say("fix", json!({"action": "done"}));
    assert_eq!(script.prompt("a"), "Do a. seen=<report review.md:4>; ");
    script.say("a", review("approved", "2a"));
    // A member that starts later reads the same values as the first.
    assert_eq!(script.prompt("c"), "Do c. seen=<report review.md:4>; ");
    script.say("b", review("approved", "2b")).say("c", review("approved", "2c"));
    assert_snapshot!(script.text);
}

#[test]
fn a_judge_decides_when_no_rule_of_the_join_matches() {
    let flow = reviewers();
    let mut script = Script::start(&flow);
    for (step, action) in [("a", "needs_fix"), ("b", "needs_fix"), ("c", "approved")] {
        script.say(step, review(action, "r"));
    }
    assert!(script.prompt("reviewers@judge").contains("### b (needs_fix)\n<answer of b:15>"));
    script.say("reviewers@judge", json!({"action": "mixed"})).say("fix", json!({"action": "done"}));
    for (step, action) in [("a", "needs_fix"), ("b", "needs_fix"), ("c", "approved")] {
        script.say(step, review(action, "r"));
    }
    script.say("reviewers@judge", json!({"action": "none"}));
    assert_snapshot!(script.text);
}

#[test]
fn a_blocked_member_waits_for_a_person_when_no_rule_matches() {
    let flow = reviewers();
    let mut script = Script::start(&flow);
    script
        .say("a", review("approved", "r"))
        .say("b", json!({"blocked": "no network"}))
        .say("c", review("approved", "r"))
        .say("reviewers@judge", json!({"action": "none"}))
        .person("it is back");
    for step in ["a", "b", "c"] {
        script.say(step, review("approved", "r"));
    }
    assert_snapshot!(script.text);
}

#[test]
fn a_failed_member_makes_every_all_false() {
    let flow = reviewers();
    let mut script = Script::start(&flow);
    for _ in 0..3 {
        let id = script.asks().into_iter().find(|ask| &*ask.step == "b").unwrap().id;
        let fault = cuegate_engine::Fault {
            class: FaultClass::Crashed,
            message: "gone".to_owned(),
            resets_in_ms: None,
            usage: Usage::default(),
            usage_unknown: false,
            continued: false,
            receipt: None,
            tools: Default::default(),
            limit: None,
        };
        script.case.complete(Completion::Faulted { ask: id, fault, seen: None });
    }
    script.tell("b: crashes three times");
    script
        .say("a", review("approved", "r"))
        .say("c", review("approved", "r"))
        .say("reviewers@judge", json!({"action": "none"}));
    assert_snapshot!(script.text);
}

#[test]
fn separate_asks_work_report_and_judge() {
    let flow = Builder::new("separate", "piece", "work")
        .ask("work", Role::Work, &[])
        .owes(&["a.md"])
        .reader(tag("work", &["done"]))
        .reader(judge("work@judge"))
        .to("done", "@completed")
        .ask("work@judge", Role::Judge, &["done", "none"])
        .session(SessionRule::Branch("run".into()))
        .flow();
    let mut script = Script::start(&flow);
    script.text("work", "I did it").text("work", "# Done").say("work@judge", json!({"action": "done"}));
    assert_snapshot!(script.text);
}

#[test]
fn a_monitor_restarts_its_count_after_it_acted() {
    let flow = Builder::new("watched", "piece", "review")
        .limit(30)
        .ask("review", Role::Work, &["fix", "done"])
        .to("fix", "fix")
        .to("done", "@completed")
        .ask("fix", Role::Work, &["fixed"])
        .to("fixed", "review")
        .ask("monitor:review+fix", Role::Judge, &["healthy", "stuck"])
        .reads("rounds", Source::Fact(Fact::Rounds))
        .to("healthy", "review")
        .to("stuck", "@aborted")
        .monitor(&["review", "fix"], 2, "monitor:review+fix")
        .ask("monitor:other", Role::Judge, &["stuck"])
        .to("stuck", "@aborted")
        .monitor(&["fix", "review"], 2, "monitor:other")
        .flow();
    let mut script = Script::start(&flow);
    let round = |script: &mut Script<'_>| {
        script.say("review", json!({"action": "fix"})).say("fix", json!({"action": "fixed"}));
    };
    round(&mut script);
    round(&mut script);
    assert_eq!(script.prompt("monitor:review+fix"), "Do monitor:review+fix. rounds=2; ");
    script.say("monitor:review+fix", json!({"action": "healthy"}));
    round(&mut script);
    round(&mut script);
    script.say("monitor:review+fix", json!({"action": "stuck"}));
    assert_snapshot!(script.text);
}

#[test]
fn a_heading_without_content_is_omitted() {
    let step = |builder: Builder, id: &str, to: &str| {
        builder
            .ask(id, Role::Work, &["done"])
            .filled(" before: ", Source::Fact(Fact::PreviousResponse))
            .filled(" people: ", Source::Fact(Fact::UserInputs))
            .to("done", to)
    };
    let builder = step(Builder::new("filled", "piece", "one"), "one", "two");
    let flow = step(builder, "two", "@completed").flow();
    let mut script = Script::start(&flow);
    assert!(!script.prompt("one").contains("before") && !script.prompt("one").contains("people"));
    script.say("one", json!({"action": "done"}));
    let prompt = script.prompt("two");
    assert!(prompt.contains(" before: <previous answer:") && !prompt.contains("people"), "{prompt}");
}
