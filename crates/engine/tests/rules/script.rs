//! A scripted run that records its events as text.

use std::fmt::Write as _;

use cuegate_engine::{Answer, Command, Completion, ExecResult, Exit, Fault, FaultClass, Start, State, Usage};
use cuegate_flow::model::Flow;
use cuegate_testkit::world::{Case, started};
use serde_json::{Value, json};

/// A run and its events as text.
pub struct Script<'f> {
    /// The run.
    pub case: Case<'f>,
    told: usize,
    /// The events as text.
    pub text: String,
}

impl<'f> Script<'f> {
    pub fn start(flow: &'f Flow) -> Script<'f> {
        Script::start_with(flow, |_| {})
    }

    pub fn start_with(flow: &'f Flow, change: impl FnOnce(&mut cuegate_engine::RunStarted)) -> Script<'f> {
        let mut script = Script { case: Case::new(flow), told: 0, text: String::new() };
        let mut started = started(flow);
        change(&mut started);
        script.case.complete(Completion::Start(Box::new(Start { started })));
        script.tell("start");
        script
    }

    pub fn pending(&self) -> Vec<Command> {
        self.case.pending()
    }

    /// Answers the first pending ask.
    pub fn say(&mut self, output: Value) -> &mut Self {
        let what = format!("answer {output}");
        self.answer(&what, |answer| answer.output = Some(output))
    }

    pub fn answer(&mut self, what: &str, change: impl FnOnce(&mut Answer)) -> &mut Self {
        let mut answer = Answer {
            usage: Usage { input_tokens: 10, output_tokens: 1, cost_usd: None, ..Usage::default() },
            provider: "scripted".to_owned(),
            ..Answer::default()
        };
        change(&mut answer);
        let ask = self.pending()[0].id();
        self.case.complete(Completion::Answered { ask, answer: Box::new(answer), seen: None });
        self.tell(what)
    }

    pub fn exec(&mut self, code: i32) -> &mut Self {
        let id = self.pending()[0].id();
        let exec = ExecResult {
            exit: Exit::Code(code),
            stdout: "out".to_owned(),
            stderr: String::new(),
            duration_ms: 1,
        };
        self.case.complete(Completion::Executed { id, exec, seen: None });
        self.tell(&format!("exit {code}"))
    }

    pub fn fault(&mut self, class: FaultClass, resets_in_ms: Option<u64>) -> &mut Self {
        let fault = Fault {
            class,
            message: "as scripted".to_owned(),
            resets_in_ms,
            usage: Usage::default(),
            usage_unknown: false,
            continued: false,
            receipt: None,
            tools: Default::default(),
            limit: None,
        };
        let ask = self.pending()[0].id();
        self.case.complete(Completion::Faulted { ask, fault, seen: None });
        self.tell(&format!("fault {}", class.as_str()))
    }

    pub fn complete(&mut self, what: &str, completion: Completion) -> &mut Self {
        self.case.complete(completion);
        self.tell(what)
    }

    /// Records the new events.
    fn tell(&mut self, what: &str) -> &mut Self {
        writeln!(self.text, "> {what}").unwrap();
        let names: Vec<String> = self.case.events[self.told..].iter().flatten().map(brief).collect();
        self.told = self.case.events.len();
        writeln!(self.text, "  {}", if names.is_empty() { "nothing".to_owned() } else { names.join(" · ") })
            .unwrap();
        for command in self.case.pending() {
            match command {
                Command::Ask(ask) => {
                    writeln!(self.text, "  ? {} {} {}", ask.kind.as_str(), ask.step, ask.id).unwrap()
                }
                Command::Exec(exec) => {
                    writeln!(self.text, "  $ {} {}", exec.validator.name, exec.id).unwrap()
                }
                Command::Effect(effect) => {
                    writeln!(self.text, "  ! {} {}", effect.effect.action, effect.effect.id).unwrap()
                }
                Command::Probe(probe) => writeln!(self.text, "  ~ {} {}", probe.condition, probe.id).unwrap(),
                Command::Read(read) => writeln!(self.text, "  < {} {}", read.step, read.id).unwrap(),
            }
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
}

/// A short description of an event.
fn brief(event: &cuegate_engine::Event) -> String {
    use cuegate_engine::Event;
    match event {
        Event::StepEntered { step, visit, attempt, iteration, remedy, counts } => {
            let remedy = if remedy.is_some() { " remedy" } else { "" };
            let iteration = if *counts { format!(" i{iteration}") } else { String::new() };
            format!("enter {step} v{visit}.{attempt}{iteration}{remedy}")
        }
        Event::Decided { outcome, fallback, .. } => {
            format!("decided {outcome}{}", if *fallback { " (fallback)" } else { "" })
        }
        Event::VisitEnded { step, end, .. } => {
            let by = end.overridden_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            format!("end {step} → {}{by}", end.target.as_deref().unwrap_or("?"))
        }
        Event::StepLeft { step, .. } => format!("left {step}"),
        Event::CounterSet { counter, value } => format!("{counter} = {value}"),
        Event::AnswerRejected { why, .. } => format!("rejected: {why}"),
        Event::HandedOff { key, .. } => format!("left {key}"),
        Event::CommandFinished { validator, passed, .. } => {
            format!("{validator} {}", if *passed { "passed" } else { "failed" })
        }
        Event::MonitorFired { monitor, rounds } => format!("{monitor} after {rounds}"),
        Event::MemberEnded { step, outcome, .. } => {
            format!("{step}: {}", outcome.as_deref().unwrap_or("none"))
        }
        Event::OriginSet { step, origin } => format!("{step} remembers {origin}"),
        Event::Ended { validated, .. } => format!("ended{}", if *validated { "" } else { " unvalidated" }),
        other => {
            let value = serde_json::to_value(other).unwrap();
            value["event"].as_str().unwrap().to_owned()
        }
    }
}

pub fn act(action: &str) -> Value {
    json!({"action": action, "plan": "p"})
}
