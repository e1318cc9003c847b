//! Each verdict: what makes it true, what keeps it true, and the run that it completes.

use std::{collections::BTreeMap, sync::Arc};

use cuegate_engine::{
    Answer, Command, Completion, EndState, Event, ExecResult, Exit, HandlerInput, Probe, ProbeCommand,
    ProbeResult, ResumeSettings, Start, State,
};
use cuegate_flow::model::{Flow, Outcome, Role, Verdict};
use cuegate_testkit::{
    Builder,
    flows::{handler, poll, signal},
    world::{Case, roll, started},
};
use serde_json::{Value, json};

/// `work` loops until it hands off to `close`, whose `closing` completes the run after a validator.
fn flow(verdict: Verdict) -> Arc<Flow> {
    limited(verdict, 12)
}

fn limited(verdict: Verdict, limit: u32) -> Arc<Flow> {
    Builder::new("verdicts", "registry-closing", "work")
        .limit(limit)
        .ask("work", Role::Work, &["next", "handoff"])
        .leaves("plan")
        .to("next", "work")
        .hands_off("handoff", "close")
        .ask("close", Role::Work, &["closing", "repeat"])
        .to("closing", "close@validators")
        .to("repeat", "close")
        .exec("close@validators", &["tests: sh test.sh"])
        .on(Outcome::Pass, "@completed")
        .remedy(Outcome::Fail(0), &["work"], "close attempts", 3)
        .on(Outcome::Fail(0), "@failed")
        .verdict(verdict)
        .flow()
}

struct Driven<'f>(Case<'f>);

impl<'f> Driven<'f> {
    fn start(flow: &'f Flow) -> Driven<'f> {
        Driven::start_every(flow, 0)
    }

    /// Sets the interval between polls of a resource, in milliseconds.
    fn start_every(flow: &'f Flow, poll_interval_ms: u64) -> Driven<'f> {
        let mut case = Case::new(flow);
        let mut started = started(flow);
        started.poll_interval_ms = Some(poll_interval_ms);
        case.complete(Completion::Start(Box::new(Start { started })));
        Driven(case)
    }

    fn say(&mut self, output: Value) -> &mut Self {
        self.answer(|answer| answer.output = Some(output))
    }

    fn answer(&mut self, change: impl FnOnce(&mut Answer)) -> &mut Self {
        let [Command::Ask(ask)] = &self.0.pending()[..] else { panic!("no ask: {:?}", self.0.pending()) };
        let mut answer = Answer::default();
        change(&mut answer);
        self.0.complete(Completion::Answered { ask: ask.id, answer: Box::new(answer), seen: None });
        self
    }

    fn next(&mut self) -> &mut Self {
        self.say(json!({"action": "next"}))
    }

    fn exec(&mut self, code: i32) -> &mut Self {
        let id = self.0.pending()[0].id();
        let exec = ExecResult {
            exit: Exit::Code(code),
            stdout: String::new(),
            stderr: String::new(),
            duration_ms: 1,
        };
        self.0.complete(Completion::Executed { id, exec, seen: None });
        self
    }

    fn probes(&self) -> Vec<ProbeCommand> {
        let probe = |command| match command {
            Command::Probe(probe) => *probe,
            other => panic!("no look: {other:?}"),
        };
        self.0.pending().into_iter().map(probe).collect()
    }

    /// Answers all pending polls.
    fn look(&mut self, holds: bool) -> &mut Self {
        let probes = self.probes();
        assert!(!probes.is_empty(), "nothing to look at");
        for probe in probes {
            let said = if holds { "it is there" } else { "it is not there" };
            let look = ProbeResult { holds, said: said.to_owned(), ..ProbeResult::default() };
            self.0.complete(Completion::Probed { id: probe.id, look });
        }
        self
    }

    fn fail_to_look(&mut self) -> &mut Self {
        let look =
            ProbeResult { holds: true, failed: true, said: "exit 7".to_owned(), ..ProbeResult::default() };
        let id = self.probes()[0].id;
        self.0.complete(Completion::Probed { id, look });
        self
    }

    /// The end and its reason, or the asked step.
    fn state(&self) -> String {
        match &self.0.run.state {
            State::Ended { state, reason, .. } => format!("{state:?}: {reason}"),
            State::Suspended(waiting) => format!("{waiting:?}"),
            _ => match &self.0.pending()[..] {
                [Command::Ask(ask)] => format!("{} {}", ask.kind.as_str(), ask.step),
                other => format!("{} pending", other.len()),
            },
        }
    }

    fn validated(&self) -> Option<bool> {
        self.0.events.iter().flatten().find_map(|event| match event {
            Event::Ended { validated, .. } => Some(*validated),
            _ => None,
        })
    }

    /// The rows: each step and its target.
    fn rows(&self) -> Vec<String> {
        let row = |event: &Event| match event {
            Event::VisitEnded { step, end, .. } => Some(format!(
                "{step} {} → {}",
                end.outcome.as_deref().unwrap_or("-"),
                end.target.as_deref().unwrap_or("-")
            )),
            Event::StepLeft { step, end } => Some(format!("{step} left {:?}", end.outcome.as_deref())),
            _ => None,
        };
        self.0.events.iter().flatten().filter_map(row).collect()
    }
}

#[test]
fn a_failed_validator_leads_to_its_remedy_whatever_the_verdict() {
    for verdict in [
        Verdict::Iterations(2),
        Verdict::Checks { max: 1, of: vec!["close".into()] },
        Verdict::Keyword("DONE".into()),
    ] {
        let flow = flow(verdict.clone());
        let mut run = Driven::start(&flow);
        run.say(json!({"action": "handoff"})).say(json!({"action": "closing", "note": "DONE"})).exec(1);
        assert_eq!(run.state(), "remedy work", "{verdict:?}");
        assert_eq!(run.rows().last().map(String::as_str), Some("close closing → work"), "{verdict:?}");
        // The validator has not passed since, so the visit of the remedy does not complete the run either.
        assert_eq!(run.next().state(), "work work", "{verdict:?}");
        run.say(json!({"action": "handoff"})).say(json!({"action": "closing"}));
        assert_eq!(run.exec(0).state(), "Completed: `close` completed the workflow", "{verdict:?}");
        assert_eq!(run.validated(), Some(true));
    }
    // No iteration is left for the remedy.
    let counted = limited(Verdict::Iterations(2), 2);
    let mut run = Driven::start(&counted);
    run.say(json!({"action": "handoff"})).say(json!({"action": "closing"})).exec(1);
    let reason =
        "Failed: validator `tests` of `close@validators` has not passed within the limit of 2 iterations";
    assert_eq!((run.state(), run.validated()), (reason.to_owned(), Some(false)));
    assert_eq!(run.rows().last().map(String::as_str), Some("close closing → @failed"));
}

/// A completion rule of counts, detections, polls and handlers, nested at most twice.
fn random_rule(seed: u64, depth: u32) -> Verdict {
    let parts = |kind: u64| {
        let part = |at: u64| random_rule(roll(seed, &format!("{kind} part {at}")), depth - 1);
        (0..1 + roll(seed, "parts") % 3).map(part).collect::<Vec<_>>()
    };
    match roll(seed, "rule") % if depth == 0 { 6 } else { 9 } {
        0 => Verdict::Iterations(1 + (roll(seed, "iterations") % 5) as u32),
        1 => Verdict::Checks { max: 1 + (roll(seed, "checks") % 3) as u32, of: vec!["close".into()] },
        2 => Verdict::Keyword("DONE".into()),
        3 => Verdict::Signal(signal("ready", &[])),
        4 => Verdict::Poll(poll("file")),
        5 => Verdict::Handler(handler("verdict.sh")),
        6 => Verdict::Every(parts(6)),
        7 => Verdict::Any(parts(7)),
        _ => Verdict::First(parts(8)),
    }
}

/// Every rule, all results of validators and all limits: a run completes only if each validator that ran passed last.
#[test]
fn no_rule_completes_a_run_while_a_validator_fails() {
    let (mut completed, mut blocked, mut failed) = (0, 0, 0);
    for seed in 0..4_000 {
        let flow = limited(random_rule(seed, 2), 1 + (roll(seed, "limit") % 12) as u32);
        let mut run = Driven::start(&flow);
        for turn in 0.. {
            let dice = |what: &str| roll(seed, &format!("{what} {turn}"));
            match &run.0.pending()[..] {
                [] => break,
                [Command::Ask(ask), ..] => {
                    let words: &[&str] = match &*ask.step {
                        "work" => &["next", "handoff", "handoff"],
                        _ => &["closing", "closing", "repeat"],
                    };
                    let word = words[(dice("word") % 3) as usize];
                    let said = ["", "DONE", "ready", ""][(dice("said") % 4) as usize];
                    run.say(json!({"action": word, "note": said, "signal": said, "plan": "p"}));
                }
                [Command::Exec(_), ..] => {
                    run.exec((dice("exit") % 2) as i32);
                }
                _ => {
                    run.look(dice("look") % 2 == 0);
                }
            }
        }
        let mut last = BTreeMap::new();
        for event in run.0.events.iter().flatten() {
            if let Event::CommandFinished { step, index, passed, .. } = event {
                last.insert((step.clone(), *index), *passed);
            }
        }
        let State::Ended { state, reason, .. } = &run.0.run.state else { panic!("seed {seed} goes on") };
        let fails = last.values().any(|passed| !passed);
        assert!(*state != EndState::Completed || !fails, "seed {seed}: {reason}, {:?}", flow.verdict);
        assert!(*state != EndState::Exhausted || !fails, "seed {seed}: {reason}, {:?}", flow.verdict);
        if *state == EndState::Completed {
            assert_eq!(run.validated(), Some(!last.is_empty()), "seed {seed}: {reason}");
            completed += 1;
        }
        blocked += u32::from(fails && reason.contains("has not passed within"));
        failed += u32::from(fails);
    }
    assert!(completed > 1_000 && blocked > 100 && failed > blocked, "{completed} {blocked} {failed}");
}

/// An end that no validator guards does not hide a validator that failed before.
#[test]
fn an_unguarded_closure_does_not_pass_for_a_failing_one() {
    let flow = Builder::new("two", "registry-closing", "work")
        .limit(9)
        .ask("work", Role::Work, &["handoff", "next"])
        .hands_off("handoff", "close")
        .to("next", "free")
        .ask("close", Role::Work, &["closing"])
        .to("closing", "close@validators")
        .exec("close@validators", &["tests: sh test.sh"])
        .on(Outcome::Pass, "@completed")
        .remedy(Outcome::Fail(0), &["work"], "close attempts", 3)
        .on(Outcome::Fail(0), "@failed")
        .ask("free", Role::Work, &["closing"])
        .to("closing", "@completed")
        .flow();
    let mut run = Driven::start(&flow);
    run.say(json!({"action": "handoff"})).say(json!({"action": "closing"})).exec(1);
    run.say(json!({"action": "next"})).say(json!({"action": "closing"}));
    assert_eq!(
        (run.state(), run.validated()),
        (
            "Failed: validator `tests` of `close@validators` has not passed, so `free` cannot complete the run"
                .to_owned(),
            Some(false)
        )
    );
}

/// A word detected in an earlier answer counts only inside `and`.
#[test]
fn detections_read_the_last_answer() {
    let word = || Verdict::Keyword("DONE".into());
    let flow_of = |rule| limited(rule, 6);
    let play = |rule| {
        let flow = flow_of(rule);
        let mut run = Driven::start(&flow);
        run.say(json!({"action": "handoff"})).say(json!({"action": "closing", "note": "DONE"})).exec(1);
        run.say(json!({"action": "handoff"})).say(json!({"action": "closing"})).exec(0);
        run.state()
    };
    for rule in [word(), Verdict::Any(vec![word()]), Verdict::First(vec![word()])] {
        assert_eq!(play(rule), "Completed: `close` completed the workflow");
    }
    let both = flow_of(Verdict::Every(vec![word(), Verdict::Iterations(3)]));
    let mut run = Driven::start(&both);
    run.say(json!({"action": "next", "note": "DONE"})).next();
    assert_eq!(run.next().state(), "Completed: `work` said `DONE`; 3 iterations done");
    let either = flow_of(Verdict::Any(vec![word(), Verdict::Iterations(3)]));
    let mut run = Driven::start(&either);
    assert_eq!(run.say(json!({"action": "next", "note": "DONE"})).state(), "Completed: `work` said `DONE`");
}

#[test]
fn iterations_and_checks_are_counted() {
    let counted = flow(Verdict::Iterations(2));
    let mut run = Driven::start(&counted);
    assert_eq!(run.next().state(), "work work");
    assert_eq!(run.next().state(), "Completed: 2 iterations done");
    assert_eq!(run.validated(), Some(false));
    assert_eq!(run.rows(), ["work next → work", "work next → @completed"]);

    let checked = flow(Verdict::Checks { max: 2, of: vec!["close".into()] });
    let mut run = Driven::start(&checked);
    run.next().say(json!({"action": "handoff"})).say(json!({"action": "repeat"}));
    assert_eq!(run.state(), "work close", "answers of work are no checks");
    // An invalid answer is not counted; its repair is.
    run.say(json!({"action": "fly"}));
    assert_eq!(run.state(), "repair close");
    assert_eq!(run.say(json!({"action": "repeat"})).state(), "Completed: 2 checks done");
}

#[test]
fn a_closing_answer_completes_after_its_validators() {
    let checked = flow(Verdict::Checks { max: 1, of: vec!["close".into()] });
    let mut run = Driven::start(&checked);
    run.say(json!({"action": "handoff"})).say(json!({"action": "closing"}));
    assert_eq!(run.state(), "1 pending", "the visit is not over before its validators");
    assert_eq!(run.exec(0).state(), "Completed: `close` completed the workflow");
    assert_eq!(run.validated(), Some(true));
}

#[test]
fn keywords_and_signals_are_detected() {
    let keyword = flow(Verdict::Keyword("ALL DONE".into()));
    for (output, text, ends) in [
        (json!({"action": "next", "summary": "so: ALL DONE"}), "", true),
        (json!({"action": "next"}), "I think that is ALL DONE now", true),
        (json!({"action": "next", "summary": "all done"}), "not ALL  DONE", false),
    ] {
        let mut run = Driven::start(&keyword);
        run.answer(|answer| (answer.output, answer.text) = (Some(output), text.to_owned()));
        let expected = if ends { "Completed: `work` said `ALL DONE`" } else { "work work" };
        assert_eq!(run.state(), expected, "{text}");
    }
    let signals = flow(Verdict::Signal(signal("ready", &["score"])));
    let mut run = Driven::start(&signals);
    assert_eq!(run.say(json!({"action": "next", "signal": "ready"})).state(), "work work");
    run.answer(|answer| {
        answer.output = Some(json!({"action": "next"}));
        answer.text = "```json\n{\"action\": \"ready\", \"score\": 3}\n```".to_owned();
    });
    assert_eq!(run.state(), "Completed: `work` gave the signal `ready`");
}

#[test]
fn a_resource_is_polled_between_visits() {
    let polled = flow(Verdict::Poll(poll("file")));
    let mut run = Driven::start(&polled);
    run.next();
    let [ProbeCommand { condition, probe: Probe::Poll { which, .. }, .. }] = &run.probes()[..] else {
        panic!()
    };
    assert_eq!((&**condition, which.len), ("1", "out/report.md".len() as u64));
    assert_eq!(run.look(false).state(), "work work");
    assert_eq!(run.rows(), ["work next → work"]);
    run.say(json!({"action": "handoff"})).look(false);
    assert_eq!(run.state(), "work close", "what was to be done next is kept while the run looks");
    assert_eq!(
        run.say(json!({"action": "closing"})).exec(1).state(),
        "remedy work",
        "nothing is polled before it"
    );
    assert_eq!(run.next().state(), "work work", "nothing is polled while the validator fails");
    run.say(json!({"action": "handoff"})).say(json!({"action": "closing"}));
    assert_eq!(run.exec(0).state(), "Completed: `close` completed the workflow");
    assert_eq!(run.validated(), Some(true));
    assert_eq!(
        run.rows(),
        [
            "work next → work",
            "work handoff → close",
            "close@validators left Some(\"fail(0)\")",
            "close closing → work",
            "work next → work",
            "work handoff → close",
            "close@validators left Some(\"pass\")",
            "close closing → @completed",
        ]
    );
}

#[test]
fn a_resource_is_polled_again_after_its_interval() {
    let polled = flow(Verdict::Poll(poll("file")));
    let mut run = Driven::start_every(&polled, 1_000);
    run.next().look(false);
    assert_eq!(run.next().state(), "work work", "nobody waits until the interval has passed");
    run.0.now += 990;
    assert_eq!(run.next().look(true).state(), "Completed: it is there");
    // Setting the clock back does not prevent polls.
    let mut run = Driven::start_every(&polled, 1_000_000);
    run.next().look(false);
    run.0.now = 10;
    assert_eq!(run.next().look(true).state(), "Completed: it is there");
}

#[test]
fn a_resource_is_polled_at_most_a_hundred_times() {
    let every = Verdict::Every(vec![Verdict::Poll(poll("file")), Verdict::Keyword("DONE".into())]);
    let many = Builder::new("many", "registry-closing", "work")
        .limit(200)
        .ask("work", Role::Work, &["next"])
        .to("next", "work")
        .verdict(every)
        .flow();
    let mut run = Driven::start(&many);
    for nth in 1..=100 {
        run.next().look(nth == 100);
    }
    let last = |event: &&Event| matches!(event, Event::Probed { last: true, .. });
    assert_eq!(run.0.events.iter().flatten().filter(last).count(), 1);
    assert_eq!(run.next().state(), "work work");
    run.say(json!({"action": "next", "summary": "DONE"}));
    assert_eq!(run.state(), "Completed: it is there; `work` said `DONE`", "it stays as it was seen last");
}

#[test]
fn a_handler_gets_the_state_of_the_run() {
    let handled = flow(Verdict::Handler(handler("verdict.sh")));
    let mut run = Driven::start(&handled);
    run.say(json!({"action": "next", "plan": "p"}));
    let [ProbeCommand { probe: Probe::Handler { handler, about }, .. }] = &run.probes()[..] else { panic!() };
    assert_eq!(&*handler.program.path, "verdict.sh");
    let HandlerInput { step, visit, iteration, answer, handoffs } = about;
    assert_eq!((&**step, *visit, *iteration), ("work", 1, 1));
    assert!(answer.as_ref().unwrap().output.is_some());
    assert_eq!(handoffs.iter().map(|left| &*left.key).collect::<Vec<_>>(), ["plan"]);
    run.look(false).next();
    assert_eq!(run.look(true).state(), "Completed: it is there", "it is asked after every visit");
}

#[test]
fn a_handler_that_fails_three_times_in_a_row_fails_the_run() {
    let handled = flow(Verdict::Handler(handler("verdict.sh")));
    let mut run = Driven::start(&handled);
    run.next().fail_to_look().next().fail_to_look();
    assert_eq!(run.state(), "work work", "what cannot be evaluated does not hold");
    run.next().look(false).next().fail_to_look().next().fail_to_look();
    assert_eq!(run.state(), "work work", "only what fails in a row counts");
    let failed = "Failed: the verdict's handler `verdict.sh` failed 3 times in a row: exit 7";
    assert_eq!(run.next().fail_to_look().state(), failed);
    // A failed poll may be temporary.
    let polled = flow(Verdict::Poll(poll("file")));
    let mut run = Driven::start(&polled);
    run.next().fail_to_look().next().fail_to_look().next().fail_to_look();
    assert_eq!(run.state(), "work work");
}

#[test]
fn every_keeps_detected_parts_and_polls_the_rest_again() {
    let every = flow(Verdict::Every(vec![
        Verdict::Keyword("DONE".into()),
        Verdict::Poll(poll("file")),
        Verdict::Iterations(3),
    ]));
    let mut run = Driven::start(&every);
    run.say(json!({"action": "next", "summary": "DONE"})).look(true);
    assert_eq!(run.state(), "work work");
    run.next().look(false).next().look(false);
    assert_eq!(run.state(), "work work", "a resource is what it is now");
    run.next().look(true);
    assert_eq!(run.state(), "Completed: `work` said `DONE`; it is there; 3 iterations done");
}

#[test]
fn any_and_first_name_the_deciding_part() {
    let parts = || vec![Verdict::Flow, Verdict::Poll(poll("file")), Verdict::Keyword("DONE".into())];
    for verdict in [Verdict::Any(parts()), Verdict::First(parts())] {
        let flow = flow(verdict);
        let mut run = Driven::start(&flow);
        run.next().look(false);
        assert_eq!(run.say(json!({"action": "next", "x": "DONE"})).state(), "Completed: `work` said `DONE`");
        let mut run = Driven::start(&flow);
        assert_eq!(run.next().look(true).state(), "Completed: it is there");
    }
    // The first deciding part stays decided; a part of `any` decides only while it holds.
    let within = |inner| flow(Verdict::Every(vec![inner, Verdict::Iterations(2)]));
    let looked = || vec![Verdict::Poll(poll("file"))];
    let first = within(Verdict::First(looked()));
    let mut run = Driven::start(&first);
    assert_eq!(run.next().look(true).next().state(), "Completed: it is there; 2 iterations done");
    let any = within(Verdict::Any(looked()));
    let mut run = Driven::start(&any);
    assert_eq!(run.next().look(true).next().look(false).state(), "work work");
}

#[test]
fn late_and_repeated_polls_never_route() {
    let parts = vec![Verdict::Poll(poll("file")), Verdict::Handler(handler("verdict.sh"))];
    let every = flow(Verdict::Any(parts));
    let mut run = Driven::start(&every);
    run.next();
    let [first, second] = &run.probes()[..] else { panic!() };
    let (first, second) = (first.id, second.id);
    let seen = |id, holds| Completion::Probed {
        id,
        look: ProbeResult { holds, said: "x".into(), ..ProbeResult::default() },
    };
    assert!(run.0.complete(seen(second, false)));
    assert!(!run.0.complete(seen(second, true)), "it was looked at already");
    run.0.crash();
    assert_eq!(run.probes()[0].id, first, "the other look is still wanted, under its name");
    assert!(run.0.complete(seen(first, false)));
    assert_eq!(run.state(), "work work");
    assert!(!run.0.complete(seen(first, true)));
    assert_eq!(run.state(), "work work");
}

#[test]
fn a_run_at_its_limit_polls_before_it_is_exhausted() {
    let polled = flow(Verdict::Poll(poll("file")));
    let mut run = Driven::start(&polled);
    run.0.run.progress.iterations_max = 1;
    run.next();
    assert_eq!(run.probes().len(), 1);
    // The run can be interrupted during polls, and continues them.
    assert!(run.0.complete(Completion::Interrupted { seen: None }));
    assert!(run.0.pending().is_empty());
    assert!(run.0.complete(Completion::Resumed(Box::<ResumeSettings>::default())));
    run.look(false);
    let State::Ended { state, hold, .. } = &run.0.run.state else { panic!("{:?}", run.0.run.state) };
    assert_eq!((*state, hold.as_ref().map(|hold| &*hold.step)), (EndState::Exhausted, Some("work")));
    assert_eq!(run.rows(), ["work next → @exhausted"]);
}
