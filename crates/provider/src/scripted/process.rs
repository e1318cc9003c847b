//! An entry performed by a process of its own, so that it can be killed, hang and crash like a real agent program.
//!
//! The parent writes a [`Job`] to the child's standard input; the child prints one JSON [`Line`] for each thing it
//! does and one for how it ended. It prints at the end what the parent decided: only the parent knows the script.

use std::{
    env,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{act, act::WriteFault, pick::Reservation, script::Write};
use crate::{Activity, Answer, AnswerReader, Ended, Fault, FaultClass, Usage};

/// How much of a program's output a message quotes, in bytes.
const QUOTE_MAX: usize = 300;

/// What the child has to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub writes: Vec<Write>,
    pub runs: Vec<String>,
    pub delay_ms: u64,
    pub end: End,
}

/// How it ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// With this answer.
    Answer(Box<Answer>),
    /// With this fault, as the service would report it.
    Fault(Box<Fault>),
    /// With half an answer.
    Broken,
    /// Killed, without a word.
    Crash,
    /// Not at all.
    Never,
}

/// What the child prints.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Activity(Activity),
    Answer(Box<Answer>),
    Fault(Box<Fault>),
}

/// What is left to do after the job.
#[derive(Debug, PartialEq, Eq)]
enum After {
    Exit,
    Kill,
    Wait,
}

/// The body of the hidden subcommand that [`super::ScriptedProgram`] names.
///
/// It reads a job from standard input, performs it in the current folder and prints what happens. A job that
/// cannot be read or told ends it with 2 or 1 and a line on standard error.
pub fn scripted_main() -> ExitCode {
    let mut text = Vec::new();
    let job =
        io::stdin().lock().read_to_end(&mut text).and_then(|_| Ok(serde_json::from_slice::<Job>(&text)?));
    let tree = env::current_dir().and_then(|folder| folder.canonicalize());
    let (job, tree) = match (job, tree) {
        (Ok(job), Ok(tree)) => (job, tree),
        (Err(error), _) | (_, Err(error)) => {
            writeln!(io::stderr(), "failed to read a scripted job: {error}").ok();
            return ExitCode::from(2);
        }
    };
    match perform(job, &tree, &mut io::stdout().lock(), thread::sleep) {
        Ok(After::Exit) => ExitCode::SUCCESS,
        Ok(After::Kill) => {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
            ExitCode::FAILURE
        }
        Ok(After::Wait) => loop {
            thread::park();
        },
        // Nobody listens any more: to go on would be to edit files behind everyone's back.
        Err(error) => {
            writeln!(io::stderr(), "failed to tell what the scripted agent did: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

fn perform(job: Job, tree: &Path, out: &mut dyn io::Write, pause: impl Fn(Duration)) -> io::Result<After> {
    for write in &job.writes {
        if let Err(fault) = act::write(tree, write) {
            let class = match fault {
                WriteFault::Outside { .. } => FaultClass::Violation,
                WriteFault::Io { .. } => FaultClass::Crashed,
            };
            say(out, &Line::Fault(Box::new(Fault::new(class, fault.to_string()))))?;
            return Ok(After::Exit);
        }
        tell(out, Activity::Tool { name: "write".to_owned(), target: write.path.clone() })?;
    }
    for command in &job.runs {
        tell(out, Activity::Tool { name: "run".to_owned(), target: command.clone() })?;
        if let Some(text) = act::run(tree, command) {
            tell(out, Activity::Text { text })?;
        }
    }
    if job.delay_ms > 0 {
        pause(Duration::from_millis(job.delay_ms));
    }
    match job.end {
        End::Answer(answer) => say(out, &Line::Answer(answer))?,
        End::Fault(fault) => say(out, &Line::Fault(fault))?,
        End::Broken => {
            out.write_all(br#"{"answer":{"text":"this is only ha"#)?;
            out.flush()?;
        }
        End::Crash => return Ok(After::Kill),
        End::Never => return Ok(After::Wait),
    }
    Ok(After::Exit)
}

fn tell(out: &mut dyn io::Write, activity: Activity) -> io::Result<()> {
    say(out, &Line::Activity(activity))
}

fn say(out: &mut dyn io::Write, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    out.write_all(&text)?;
    out.flush()
}

/// Reads what the child prints.
pub(super) struct ScriptedReader {
    reservation: Reservation,
    program: PathBuf,
    /// What the ask used up however it ends, as the script says.
    usage: Usage,
    result: Option<Result<Answer, Fault>>,
    broken: Option<String>,
}

impl ScriptedReader {
    pub fn new(reservation: Reservation, program: PathBuf) -> ScriptedReader {
        let usage = reservation.entry().usage.into();
        ScriptedReader { reservation, program, usage, result: None, broken: None }
    }

    /// What came of it. A program that was killed did not answer, whatever it had printed by then.
    fn outcome(&mut self, ended: &Ended, stderr: &[u8]) -> Result<Answer, Fault> {
        let (class, message) = match (ended, self.broken.take(), self.result.take()) {
            (Ended::TimedOut, ..) => (FaultClass::Timeout, "it took longer than it may".to_owned()),
            (Ended::TooMuchOutput, ..) => (FaultClass::Malformed, "it wrote more than it may".to_owned()),
            (Ended::Signal(signal), ..) => (FaultClass::Crashed, format!("signal {signal} ended it")),
            (Ended::NotStarted(why), ..) => {
                (FaultClass::MissingProgram, format!("`{}` did not start: {why}", self.program.display()))
            }
            (Ended::Exit(_), Some(line), _) => {
                (FaultClass::Malformed, format!("its output cannot be read: `{line}`"))
            }
            (Ended::Exit(0), None, Some(result)) => return result,
            (Ended::Exit(0), None, None) => (FaultClass::Malformed, "it ended without a result".to_owned()),
            (Ended::Exit(code), None, _) => (FaultClass::Crashed, format!("it exited with {code}")),
        };
        let stderr = quote(stderr);
        let said = if stderr.is_empty() { String::new() } else { format!("; it said: {stderr}") };
        Err(Fault::new(class, format!("no answer from the scripted agent: {message}{said}")))
    }
}

impl AnswerReader for ScriptedReader {
    fn line(&mut self, line: &[u8]) -> Vec<Activity> {
        match serde_json::from_slice(line) {
            // The result is the last line: what follows it was not written by a scripted agent.
            Ok(_) if self.result.is_some() => self.broken = Some(quote(line)),
            Ok(Line::Activity(activity)) => return vec![activity],
            Ok(Line::Answer(answer)) => self.result = Some(Ok(*answer)),
            Ok(Line::Fault(fault)) => self.result = Some(Err(*fault)),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) => self.broken = Some(quote(line)),
        }
        Vec::new()
    }

    fn end(mut self: Box<Self>, ended: Ended, stderr: &[u8]) -> Result<Answer, Fault> {
        let mut outcome = self.outcome(&ended, stderr);
        if matches!(ended, Ended::NotStarted(_)) {
            // Nothing was performed: once the program is there, the ask gets the same entry.
            return outcome;
        }
        let ScriptedReader { reservation, usage, .. } = *self;
        let receipt = match &mut outcome {
            Ok(answer) => &mut answer.receipt,
            Err(fault) => {
                fault.usage = usage;
                &mut fault.receipt
            }
        };
        let receipt = receipt.get_or_insert_with(|| reservation.receipt()).clone();
        reservation.settle(&receipt);
        outcome
    }
}

/// The beginning of some output, for a message.
fn quote(bytes: &[u8]) -> String {
    let bytes = bytes.trim_ascii();
    let cut = &bytes[..bytes.len().min(QUOTE_MAX)];
    let more = if cut.len() < bytes.len() { "…" } else { "" };
    format!("{}{more}", String::from_utf8_lossy(cut))
}

#[cfg(test)]
mod tests;
