//! Performs an entry in a child process, so that it can be killed, hang and crash like a real agent program.
//!
//! The parent writes a [`ScriptedJob`] to the child's standard input. The child prints one JSON [`ScriptedLine`] per activity and one
//! for the result, which the parent has chosen: only the parent knows the script.

use std::{
    env,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{act, act::WriteFault, pick::Reservation, script::FileWrite};
use crate::{Activity, Answer, AnswerReader, CutUsage, Fault, FaultClass, ProgramEnd, Usage};

/// The maximum number of bytes that a message quotes from a program's output.
const QUOTE_MAX: usize = 300;

/// The work of the child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ScriptedJob {
    pub writes: Vec<FileWrite>,
    pub runs: Vec<String>,
    pub delay_ms: u64,
    pub end: ScriptedEnd,
}

/// How the child ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScriptedEnd {
    /// With this answer.
    Answer(Box<Answer>),
    /// With this fault, as the service would report it.
    Fault(Box<Fault>),
    /// With a truncated answer.
    Broken,
    /// Killed, without a result.
    Crash,
    /// It hangs.
    Never,
}

/// A line that the child prints.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScriptedLine {
    Activity(Activity),
    Answer(Box<Answer>),
    Fault(Box<Fault>),
}

/// What the child does after the job.
#[derive(Debug, PartialEq, Eq)]
enum AfterJob {
    Exit,
    Kill,
    Wait,
}

/// The body of the hidden subcommand that [`super::ScriptedProgram`] names.
///
/// Reads a job from standard input, performs it in the current folder and prints activities and the result. Exits with
/// 2 if it cannot read the job and with 1 if it cannot write, after one line on standard error.
pub fn scripted_main() -> ExitCode {
    let mut text = Vec::new();
    let job = io::stdin()
        .lock()
        .read_to_end(&mut text)
        .and_then(|_| Ok(serde_json::from_slice::<ScriptedJob>(&text)?));
    let tree = env::current_dir().and_then(|folder| folder.canonicalize());
    let (job, tree) = match (job, tree) {
        (Ok(job), Ok(tree)) => (job, tree),
        (Err(error), _) | (_, Err(error)) => {
            writeln!(io::stderr(), "failed to read a scripted job: {error}").ok();
            return ExitCode::from(2);
        }
    };
    match perform_job(job, &tree, &mut io::stdout().lock(), thread::sleep) {
        Ok(AfterJob::Exit) => ExitCode::SUCCESS,
        Ok(AfterJob::Kill) => {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
            ExitCode::FAILURE
        }
        Ok(AfterJob::Wait) => loop {
            thread::park();
        },
        // The reader is gone; continuing would edit files unobserved.
        Err(error) => {
            writeln!(io::stderr(), "failed to report what the scripted agent did: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

fn perform_job(
    job: ScriptedJob,
    tree: &Path,
    out: &mut dyn io::Write,
    pause: impl Fn(Duration),
) -> io::Result<AfterJob> {
    for (number, write) in job.writes.iter().enumerate() {
        if let Err(fault) = act::write_file(tree, write) {
            let class = match fault {
                WriteFault::Outside { .. } | WriteFault::ReadOnly { .. } => FaultClass::Violation,
                WriteFault::Io { .. } => FaultClass::Crashed,
            };
            write_line(out, &ScriptedLine::Fault(Box::new(Fault::new(class, fault.to_string()))))?;
            return Ok(AfterJob::Exit);
        }
        let (id, target) = (format!("write-{number}"), write.path.clone());
        write_activity(out, Activity::Tool { id: id.clone(), name: "write".to_owned(), target })?;
        write_activity(out, Activity::ToolEnded { id, failed: false, output: String::new() })?;
    }
    for (number, command) in job.runs.iter().enumerate() {
        let (id, target) = (format!("run-{number}"), command.clone());
        write_activity(out, Activity::Tool { id: id.clone(), name: "run".to_owned(), target })?;
        let (failed, output) = match act::run_command(tree, command) {
            Ok(output) => (false, output),
            Err(output) => (true, output),
        };
        write_activity(out, Activity::ToolEnded { id, failed, output })?;
    }
    if job.delay_ms > 0 {
        pause(Duration::from_millis(job.delay_ms));
    }
    match job.end {
        ScriptedEnd::Answer(answer) => write_line(out, &ScriptedLine::Answer(answer))?,
        ScriptedEnd::Fault(fault) => write_line(out, &ScriptedLine::Fault(fault))?,
        ScriptedEnd::Broken => {
            out.write_all(br#"{"answer":{"text":"this is only ha"#)?;
            out.flush()?;
        }
        ScriptedEnd::Crash => return Ok(AfterJob::Kill),
        ScriptedEnd::Never => return Ok(AfterJob::Wait),
    }
    Ok(AfterJob::Exit)
}

fn write_activity(out: &mut dyn io::Write, activity: Activity) -> io::Result<()> {
    write_line(out, &ScriptedLine::Activity(activity))
}

fn write_line(out: &mut dyn io::Write, line: &ScriptedLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    out.write_all(&text)?;
    out.flush()
}

/// Parses the output of the child.
pub(super) struct ScriptedReader {
    reservation: Reservation,
    program: PathBuf,
    /// The usage of the entry, whatever the result.
    usage: Usage,
    result: Option<Result<Answer, Fault>>,
    broken: Option<String>,
}

impl ScriptedReader {
    pub fn new(reservation: Reservation, program: PathBuf) -> ScriptedReader {
        let usage = reservation.entry().usage.into();
        ScriptedReader { reservation, program, usage, result: None, broken: None }
    }

    /// The result. A killed program has no answer, whatever it printed before.
    fn outcome(&mut self, ended: &ProgramEnd, stderr: &[u8]) -> Result<Answer, Fault> {
        let (class, message) = match (ended, self.broken.take(), self.result.take()) {
            (ProgramEnd::TimedOut, ..) => (FaultClass::Timeout, "timed out".to_owned()),
            (ProgramEnd::TooMuchOutput, ..) => (FaultClass::Malformed, "output limit exceeded".to_owned()),
            (ProgramEnd::Signal(signal), ..) => (FaultClass::Crashed, format!("killed by signal {signal}")),
            (ProgramEnd::NotStarted(why), ..) => {
                (FaultClass::MissingProgram, format!("failed to start `{}`: {why}", self.program.display()))
            }
            (ProgramEnd::Exit(_), Some(line), _) => {
                (FaultClass::Malformed, format!("invalid output: `{line}`"))
            }
            (ProgramEnd::Exit(0), None, Some(result)) => return result,
            (ProgramEnd::Exit(0), None, None) => {
                (FaultClass::Malformed, "exited without a result".to_owned())
            }
            (ProgramEnd::Exit(code), None, _) => (FaultClass::Crashed, format!("exited with code {code}")),
        };
        let stderr = quote_output(stderr);
        let quoted = if stderr.is_empty() { String::new() } else { format!("; stderr: {stderr}") };
        Err(Fault::new(class, format!("no answer from the scripted agent: {message}{quoted}")))
    }
}

impl AnswerReader for ScriptedReader {
    fn line(&mut self, line: &[u8]) -> Vec<Activity> {
        match serde_json::from_slice(line) {
            // The result is the last line. Output after it was not written by a scripted agent.
            Ok(_) if self.result.is_some() => self.broken = Some(quote_output(line)),
            Ok(ScriptedLine::Activity(activity)) => return vec![activity],
            Ok(ScriptedLine::Answer(answer)) => self.result = Some(Ok(*answer)),
            Ok(ScriptedLine::Fault(fault)) => self.result = Some(Err(*fault)),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) => self.broken = Some(quote_output(line)),
        }
        Vec::new()
    }

    /// An interrupted entry stays free for the next try, and its usage is counted then.
    fn cut_usage(&self) -> CutUsage {
        CutUsage::default()
    }

    fn end(mut self: Box<Self>, ended: ProgramEnd, stderr: &[u8]) -> Result<Answer, Fault> {
        let mut outcome = self.outcome(&ended, stderr);
        if matches!(ended, ProgramEnd::NotStarted(_)) {
            // Nothing was performed, so the entry stays free for the next try.
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

/// The beginning of some output.
fn quote_output(bytes: &[u8]) -> String {
    let bytes = bytes.trim_ascii();
    let cut = &bytes[..bytes.len().min(QUOTE_MAX)];
    let more = if cut.len() < bytes.len() { "…" } else { "" };
    format!("{}{more}", String::from_utf8_lossy(cut))
}

#[cfg(test)]
mod tests;
