//! Drives a run with recorded answers and real validators.

use std::{collections::BTreeMap, path::Path, process};

use cuegate_engine::{
    Answer, AskKind, Command, Completion, Decision, EndState, Event, ExecResult, Exit, Fault, FaultClass,
    Run, RunStarted, Start, State, Usage, decide, list_pending_commands,
};
use cuegate_flow::{
    Str,
    model::{BlobRef, Flow},
};
use serde_json::{Map, Value, json};

/// More completions than any case needs.
const COMPLETIONS_MAX: usize = 1_000;

/// The longest wait for a provider limit, in milliseconds.
const WAIT_MAX_MS: u64 = 60_000;

/// The result of a run.
pub(super) struct Course {
    /// The asks in order.
    pub(super) asked: Vec<Asked>,
    /// The number of iterations.
    pub(super) iterations: u32,
    /// The handoff values by step and name.
    pub(super) left: Map<String, Value>,
    /// Whether it completed.
    pub(super) completed: bool,
    /// How and why it ended.
    pub(super) end: String,
}

/// An ask.
pub(super) struct Asked {
    /// The step.
    pub(super) step: String,
    /// Whether it is a remedy after a failed validator.
    pub(super) remedy: bool,
}

/// A run in progress.
struct Drive<'f> {
    flow: &'f Flow,
    run: Run,
    kept: BTreeMap<BlobRef, String>,
    course: Course,
    now: i64,
}

/// Runs a flow. Each ask takes the next answer of the script; the last one repeats. An unusable answer is not repaired,
/// because the original program asks once.
pub(super) fn drive(
    flow: &Flow,
    args: &BTreeMap<String, String>,
    script: &[Value],
) -> Result<Course, String> {
    let dir = tempfile::tempdir().map_err(|error| format!("failed to make a folder: {error}"))?;
    let mut drive = Drive {
        flow,
        run: Run::default(),
        kept: args.values().map(|value| (BlobRef::for_bytes(value.as_bytes()), value.clone())).collect(),
        course: Course {
            asked: Vec::new(),
            iterations: 0,
            left: Map::new(),
            completed: false,
            end: String::new(),
        },
        now: 0,
    };
    drive.complete(Completion::Start(Box::new(Start { started: started(flow, args) })));
    for _ in 0..COMPLETIONS_MAX {
        let Some(command) = list_pending_commands(flow, &drive.run).into_iter().next() else { break };
        let completion = drive.perform(command, script, dir.path())?;
        drive.complete(completion);
    }
    Ok(drive.finished())
}

fn started(flow: &Flow, args: &BTreeMap<String, String>) -> RunStarted {
    RunStarted {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        flow: flow.name.clone(),
        dialect: flow.dialect.to_owned(),
        path: "case".to_owned(),
        provider: "recorded".to_owned(),
        params: args
            .iter()
            .map(|(name, value)| (Str::from(name.as_str()), BlobRef::for_bytes(value.as_bytes())))
            .collect(),
        set: args.keys().cloned().collect(),
        iterations_max: flow.limits.iterations_max,
        wait_max_ms: WAIT_MAX_MS,
        ..RunStarted::default()
    }
}

impl Drive<'_> {
    fn perform(&mut self, command: Command, script: &[Value], dir: &Path) -> Result<Completion, String> {
        if let Command::Ask(ask) = command {
            self.now = ask.not_before_ms.map_or(self.now, |then| self.now.max(then));
            let said = script.get(self.course.asked.len()).or(script.last()).ok_or("nobody answers")?;
            self.course.asked.push(Asked { step: ask.step.to_string(), remedy: ask.kind == AskKind::Remedy });
            Ok(match said["throw"].as_str() {
                Some(message) => Completion::Faulted { ask: ask.id, fault: fault(message), seen: None },
                None => Completion::Answered { ask: ask.id, answer: Box::new(answer(said)), seen: None },
            })
        } else if let Command::Exec(exec) = command {
            Ok(Completion::Executed { id: exec.id, exec: run(&exec.validator.command, dir)?, seen: None })
        } else {
            Err(format!("no case was recorded with {command:?}"))
        }
    }

    fn complete(&mut self, completion: Completion) {
        let Decision { events, blobs } = decide(self.flow, &self.run, self.now, completion);
        for blob in blobs {
            self.kept.insert(BlobRef::for_bytes(&blob), String::from_utf8_lossy(&blob).into_owned());
        }
        for event in &events {
            match event {
                Event::StepEntered { iteration, .. } => {
                    self.course.iterations = self.course.iterations.max(*iteration);
                }
                Event::HandedOff { step, key, value, .. } => {
                    let text = self.kept.get(value).map_or("", String::as_str);
                    let data = self.course.left.entry(step.to_string()).or_insert_with(|| json!({}));
                    data[&**key] = json!(text);
                }
                _ => {}
            }
        }
        self.run.apply_record(&events);
    }

    fn finished(mut self) -> Course {
        self.course.completed = matches!(&self.run.state, State::Ended { state: EndState::Completed, .. });
        self.course.end = match &self.run.state {
            State::Ended { state, reason, .. } => format!("{state:?}: {reason}"),
            State::Suspended(waiting) => format!("Suspended: {}", waiting.detail),
            other => format!("{other:?}"),
        };
        self.course
    }
}

/// Runs a validator of a case.
fn run(command: &str, dir: &Path) -> Result<ExecResult, String> {
    let output = process::Command::new("sh")
        .args(["-c", command])
        .current_dir(dir)
        .output()
        .map_err(|error| format!("failed to run a validator: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // The signal that ended a validator is ignored.
    let exit = output.status.code().map_or(Exit::Signal(9), Exit::Code);
    Ok(ExecResult { exit, stdout: text(&output.stdout), stderr: text(&output.stderr), duration_ms: 0 })
}

fn answer(said: &Value) -> Answer {
    Answer {
        output: said.get("so").filter(|output| !output.is_null()).cloned(),
        text: said["text"].as_str().unwrap_or_default().to_owned(),
        ..Answer::default()
    }
}

/// A failed call. The original program detects only provider limits, by the message.
fn fault(message: &str) -> Fault {
    let limited = message.contains("rate limit");
    Fault {
        class: if limited { FaultClass::RateLimited } else { FaultClass::Crashed },
        message: message.to_owned(),
        resets_in_ms: limited.then_some(1_000),
        usage: Usage::default(),
        usage_unknown: false,
        continued: false,
        receipt: None,
        tools: Default::default(),
        limit: None,
    }
}
