//! The effect of piece keys on a run: drives the sound piece with small changes.

use cuegate_engine::{
    Answer, AskCommand, Command, Completion, EndState, Event, ExecCommand, ExecResult, Exit, PromptPart,
    State,
};
use cuegate_flow::{
    checks::check_draft,
    model::{Act, Flow, Permission, Tools},
};
use cuegate_formats::TaktOptions;
use cuegate_testkit::world::Case;
use serde_json::{Map, Value, json};

use crate::support::{Project, dump};
use crate::takt::takt_support::{FILE, changed, load, sound};

/// The flow of the sound piece after some replacements.
pub fn flow(edits: &[(&str, &str)], change: impl FnOnce(&mut TaktOptions)) -> Flow {
    let loaded = load(&changed(edits), change);
    assert!(!loaded.has_errors(), "{:#?}", loaded.diagnostics);
    check_draft(loaded.draft).flow.expect("it is sound")
}

/// A run of it.
pub struct Drive<'f> {
    pub case: Case<'f>,
}

impl<'f> Drive<'f> {
    pub fn start(flow: &'f Flow) -> Drive<'f> {
        let mut case = Case::new(flow);
        case.start();
        Drive { case }
    }

    pub fn asks(&self) -> Vec<AskCommand> {
        let asks = self.case.pending().into_iter().filter_map(|command| match command {
            Command::Ask(ask) => Some(*ask),
            _ => None,
        });
        asks.collect()
    }

    /// The steps with pending asks.
    pub fn asked(&self) -> Vec<String> {
        self.asks().iter().map(|ask| ask.step.to_string()).collect()
    }

    pub fn ask(&self, step: &str) -> AskCommand {
        let pending = self.asked();
        self.asks().into_iter().find(|ask| &*ask.step == step).unwrap_or_else(|| panic!("{pending:?}"))
    }

    pub fn prompt(&self, step: &str) -> String {
        text(&self.ask(step).prompt)
    }

    /// Gives an answer with this outcome and all required fields.
    pub fn say(&mut self, step: &str, outcome: &str) -> &mut Self {
        let Act::Ask(about) = &self.case.flow.step(self.case.flow.find(step).unwrap()).act else { panic!() };
        let reports: Map<String, Value> =
            about.reports.iter().map(|report| (report.name.to_string(), json!("# It"))).collect();
        let mut output = json!({"outcome": outcome});
        if about.fused.is_some() {
            output["response"] = json!("so it is");
        } else {
            output["reason"] = json!("so it is");
        }
        if !reports.is_empty() {
            output["reports"] = Value::Object(reports);
        }
        self.answer(step, Answer { output: Some(output), ..Answer::default() })
    }

    pub fn text(&mut self, step: &str, text: &str) -> &mut Self {
        self.answer(step, Answer { text: text.to_owned(), ..Answer::default() })
    }

    pub fn answer(&mut self, step: &str, answer: Answer) -> &mut Self {
        let ask = self.ask(step).id;
        assert!(self.case.complete(Completion::Answered { ask, answer: Box::new(answer), seen: None }));
        self
    }

    pub fn command(&self) -> ExecCommand {
        match &self.case.pending()[..] {
            [Command::Exec(exec)] => (**exec).clone(),
            other => panic!("no command: {other:?}"),
        }
    }

    pub fn exits(&mut self, code: i32) -> &mut Self {
        let id = self.command().id;
        let stdout = format!("it says {code}");
        let exec = ExecResult { exit: Exit::Code(code), stdout, stderr: String::new(), duration_ms: 1 };
        assert!(self.case.complete(Completion::Executed { id, exec, seen: None }));
        self
    }

    pub fn end(&self) -> Option<EndState> {
        match self.case.run.state {
            State::Ended { state, .. } => Some(state),
            _ => None,
        }
    }

    /// The pending question to a person.
    pub fn question(&self) -> Option<String> {
        match &self.case.run.state {
            State::Suspended(waiting) => Some(waiting.detail.to_string()),
            _ => None,
        }
    }

    pub fn rejected(&self) -> usize {
        let rejected = |event: &&Event| matches!(event, Event::AnswerRejected { .. });
        self.case.events.iter().flatten().filter(rejected).count()
    }
}

/// Prompt parts as text; stored values appear as their fence and length.
pub fn text(parts: &[PromptPart]) -> String {
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

#[test]
fn asks_have_the_right_settings() {
    let flow = flow(&[], |_| {});
    let mut drive = Drive::start(&flow);
    assert_eq!(drive.asked(), ["plan"], "`initial_movement`");
    let plan = drive.ask("plan");
    assert_eq!((plan.persona.as_deref(), plan.model.as_deref()), (Some("reviewer"), Some("opus")));
    assert!(text(&plan.system).contains("You look closely."), "{plan:?}");
    assert_eq!(plan.boundary.tools, Tools::Only(vec!["Read".into(), "Grep".into()]));
    assert_eq!(plan.boundary.permission, Permission::Plan, "`edit: false`");
    assert!(drive.prompt("plan").contains("Planner"), "`persona_name`");
    drive.say("plan", "none");
    let judge = drive.ask("plan@ai");
    assert_eq!(judge.model.as_deref(), Some("opus"), "the model of its judges too");
    assert!(!judge.boundary.permission.may_write());
    drive.say("plan@ai", "none").say("plan@judge", "The plan stands");
    let implement = drive.ask("implement");
    assert_eq!(implement.boundary.permission, Permission::AcceptEdits, "`permission_mode: edit`");
    assert!(text(&implement.system).contains("You write code."));
    let prompt = text(&implement.prompt);
    for part in
        ["Simple before easy.", "Change one thing at a time.", "Money is counted in cents.", "All tests pass"]
    {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert!(prompt.contains("Follow <report 00-plan.md:4>"), "{prompt}");
}

#[test]
fn conversations_of_a_run() {
    let flow = flow(&[], |_| {});
    let mut drive = Drive::start(&flow);
    let answer = |outcome: &str, session: &str, reports: &[&str]| {
        let reports: Map<String, Value> =
            reports.iter().map(|name| ((*name).to_owned(), json!("r"))).collect();
        let mut output = json!({"outcome": outcome, "response": "r"});
        if !reports.is_empty() {
            output["reports"] = Value::Object(reports);
        }
        Answer {
            output: Some(output),
            provider: "scripted".to_owned(),
            session: Some(session.to_owned()),
            ..Answer::default()
        }
    };
    let owed = ["01-scope.md", "02-decisions.md"];
    drive.answer("plan", answer("The plan stands", "s1", &["00-plan.md"]));
    assert_eq!(drive.ask("implement").session, None, "another persona's is another's");
    drive.answer("implement", answer("Done", "s2", &owed)).exits(0);
    drive.answer("arch-review", answer("needs_fix", "s3", &[]));
    drive.answer("qa-review", answer("approved", "s4", &[]));
    assert_eq!(drive.ask("implement").session, None, "`session: refresh` begins anew");
    drive.answer("implement", answer("Done", "s5", &owed)).exits(0);
    let of = |step: &str| drive.ask(step).session.map(|session| (session.id, session.branch));
    assert_eq!(of("arch-review"), Some(("s3".to_owned(), false)), "a member goes on with its own");
    assert_eq!(of("qa-review"), Some(("s4".to_owned(), false)));
    assert_eq!(drive.case.run.context.sessions["coder"].id, "s5");
    assert_eq!(drive.case.run.context.sessions["reviewer"].id, "s1");
}

#[test]
fn members_are_asked_in_parallel() {
    let pending = |width: u16| {
        let flow = flow(&[], |options| options.width = width);
        let mut drive = Drive::start(&flow);
        drive.say("plan", "The plan stands").say("implement", "Done").exits(0);
        drive.asked()
    };
    assert_eq!(pending(4), ["arch-review", "qa-review"]);
    assert_eq!(pending(1), ["arch-review"], "as many as may be");
}

/// The target of two members, by rules over both.
#[test]
fn rules_over_members_select_the_target() {
    let led = |first: &str, second: &str, outcomes: [&str; 2]| {
        let edits = [("all(\"approved\")", first), ("any(\"needs_fix\")", second)];
        let flow = flow(&edits, |_| {});
        let mut drive = Drive::start(&flow);
        drive.say("plan", "The plan stands").say("implement", "Done").exits(0);
        drive.say("arch-review", outcomes[0]).say("qa-review", outcomes[1]);
        match drive.end() {
            Some(end) => format!("{end:?}"),
            None => drive.asked().join(" "),
        }
    };
    let usual = |outcomes| led("all(\"approved\")", "any(\"needs_fix\")", outcomes);
    assert_eq!(usual(["approved", "approved"]), "Completed");
    assert_eq!(usual(["needs_fix", "approved"]), "implement");
    assert_eq!(usual(["approved", "needs_fix"]), "implement");
    let each = |outcomes| led("all(\"approved\", \"needs_fix\")", "all(\"needs_fix\")", outcomes);
    assert_eq!(each(["approved", "needs_fix"]), "Completed", "in their order");
    assert_eq!(each(["needs_fix", "approved"]), "reviewers@ai", "and in no other");
    assert_eq!(each(["needs_fix", "needs_fix"]), "implement");
    let several = |outcomes| led("any(\"needs_fix\", \"approved\")", "all(\"needs_fix\")", outcomes);
    assert_eq!(several(["needs_fix", "needs_fix"]), "Completed", "one of these is enough");
}

#[test]
fn ends_are_complete_and_abort() {
    let flow = flow(&[], |_| {});
    let mut drive = Drive::start(&flow);
    drive.say("plan", "The plan stands").say("implement", "Cannot proceed");
    assert_eq!(drive.end(), Some(EndState::Aborted), "no command stands before giving up");
    let mut drive = Drive::start(&flow);
    drive.say("plan", "none").say("plan@ai", "the task is impossible");
    assert_eq!(drive.end(), Some(EndState::Aborted));
    let mut drive = Drive::start(&flow);
    drive.say("plan", "The plan stands").say("implement", "Done").exits(0);
    drive.say("arch-review", "approved").say("qa-review", "approved");
    assert_eq!(drive.end(), Some(EndState::Completed));
}

#[test]
fn persons_are_asked_in_interactive_runs() {
    let flow_there = flow(&[], |options| options.interactive = true);
    let mut drive = Drive::start(&flow_there);
    drive.say("plan", "Something is unclear");
    let asked = drive.question().unwrap_or_default();
    assert!(asked.starts_with("`plan` said:\n> "), "what the agent said comes first: {asked}");
    assert!(asked.contains("\n\nWhat is unclear?\n- {Question 1}"), "all of `appendix`: {asked}");
    let answered = Completion::PersonAnswered { text: "the blue one".to_owned(), found: None };
    assert!(drive.case.complete(answered));
    assert!(drive.prompt("implement").contains("<plain:12>"), "{}", drive.prompt("implement"));
    // In a headless run the rule keeps its number but is inactive.
    let flow_alone = flow(&[], |_| {});
    let mut drive = Drive::start(&flow_alone);
    drive.say("plan", "Something is unclear");
    assert_eq!((drive.rejected(), drive.question()), (1, None));
    let mut drive = Drive::start(&flow_alone);
    drive.text("plan", "It is unclear. [plan:2]").text("plan", "# It");
    assert_eq!(drive.asked(), ["plan@ai"], "the tag says nothing");
    let mut drive = Drive::start(&flow_alone);
    drive.text("plan", "It cannot be done. [plan:3]").text("plan", "# It");
    assert_eq!(drive.asked(), ["plan@ai"], "an `ai()` rule is for its judge to choose");
}

#[test]
fn commands_are_run_retried_and_given_up() {
    let flow = flow(&[], |options| options.quality_gate_retries = 1);
    let mut drive = Drive::start(&flow);
    drive.say("plan", "The plan stands").say("implement", "Done");
    let command = drive.command();
    assert_eq!((&*command.validator.name, command.validator.timeout_ms), ("cargo test", 90_000));
    drive.exits(1);
    let remedy = drive.ask("implement");
    assert_eq!(remedy.kind.as_str(), "remedy");
    assert!(text(&remedy.prompt).contains("cargo test"), "{remedy:?}");
    drive.say("implement", "Done").exits(1);
    assert_eq!(drive.end(), Some(EndState::Failed), "mended as often as it may be");
}

/// A monitor without `threshold` acts after three rounds, not two, and follows its judge.
#[test]
fn monitors_act_after_the_threshold() {
    for (edits, rounds) in
        [(&[][..], 2), (&[("    threshold: 2\n", "")], 3), (&[("threshold: 2", "threshold: 1")], 1)]
    {
        let flow = flow(edits, |_| {});
        let mut drive = Drive::start(&flow);
        drive.say("plan", "The plan stands");
        for _ in 0..rounds {
            assert_eq!(drive.asked(), ["implement"], "{edits:?}");
            drive.say("implement", "Done").exits(0);
            drive.say("arch-review", "needs_fix").say("qa-review", "approved");
        }
        let judge = drive.ask("monitor:implement+reviewers");
        assert!(judge.session.is_none(), "always a new conversation");
        assert!(text(&judge.system).contains("You look closely."), "`judge.persona`");
        assert!(
            text(&judge.prompt).contains(&format!("{rounds} rounds. See <report 01-scope.md:4>")),
            "{judge:?}"
        );
        drive.say("monitor:implement+reviewers", "Unproductive");
        assert_eq!(drive.end(), Some(EndState::Aborted));
    }
}

#[test]
fn later_spellings_are_the_same_flow() {
    let edits = [
        ("max_iterations: 12", "max_steps: 12"),
        ("initial_movement: plan", "initial_step: plan"),
        ("\nmovements:\n", "\nsteps:\n"),
        ("instruction_template: |\n        {cycle_count}", "instruction: |\n        {cycle_count}"),
    ];
    assert_eq!(dump(&load(&changed(&edits), |_| {}).draft), dump(&load(&sound(), |_| {}).draft));
    let between = changed(&[("max_iterations: 12", "max_movements: 12")]);
    assert_eq!(dump(&load(&between, |_| {}).draft), dump(&load(&sound(), |_| {}).draft));
}

#[test]
fn anchors_give_the_same_flow_as_their_expansion() {
    let rules = "        rules:\n          - condition: approved\n          - condition: needs_fix\n";
    let mut files: Project = sound();
    let piece = String::from_utf8(files[FILE].clone()).unwrap();
    let (before, after) = piece.split_once(rules).unwrap();
    let anchored = format!(
        "{before}{}{}",
        rules.replace("rules:\n", "rules: &verdicts\n"),
        after.replacen(rules, "        rules: *verdicts\n", 1)
    );
    assert!(anchored.contains("&verdicts") && anchored.contains("*verdicts"), "{anchored}");
    files.insert(FILE.to_owned(), anchored.into_bytes());
    let loaded = load(&files, |_| {});
    assert!(loaded.diagnostics.is_empty(), "{:#?}", loaded.diagnostics);
    assert_eq!(dump(&loaded.draft), dump(&load(&sound(), |_| {}).draft));
}
