//! Runs a command once, outside of a run: to set up a worktree, or to try it.

use std::{path::Path, time::Duration};

use cuegate_flow::model::Success;
use cuegate_journal::RunId;
use cuegate_runner::{
    RUN_VARIABLE,
    process::{self, Exit, Launch, Shim},
};

use crate::{Failure, Program};

/// How many lines of a failed command are shown.
const OUTPUT_LINES: usize = 3;
/// The limit of the output that is kept, in bytes.
const OUTPUT_MAX: u64 = 4 << 20;

/// The result of a command that was run once.
#[derive(Debug)]
pub(crate) struct TriedCommand {
    /// Whether it passed.
    pub(crate) passed: bool,
    /// Whether it was killed at the time limit.
    pub(crate) timed_out: bool,
    /// Whether its program is missing or not executable, by its exit code.
    pub(crate) cannot_run: bool,
    /// How it ended.
    pub(crate) ended: String,
    /// The lines that tell why it failed.
    pub(crate) output: Vec<String>,
    /// The end of all that it printed.
    pub(crate) text: String,
}

/// Runs a command once in `work`, for at most `limit`.
///
/// # Errors
/// When the process cannot be started.
pub(crate) fn run_once(
    program: &Program,
    command: &str,
    work: &Path,
    limit: Duration,
    run: Option<&RunId>,
) -> Result<TriedCommand, Failure> {
    // A private folder: a program is started from what is written there.
    let dir = tempfile::tempdir()
        .map_err(|error| Failure::environment(format!("failed to create a temporary folder: {error}")))?;
    let (shim, success) = (program.shim(), Success::ExitCode(0));
    let launch = launch_of_command(command, work, limit, run);
    // The thread of the caller may have a runtime, which another one cannot block.
    std::thread::scope(|scope| {
        let tried =
            scope.spawn(|| build_runtime()?.block_on(try_command(&shim, dir.path(), launch, &success)));
        tried.join().unwrap_or_else(|_| Err(Failure::environment("the command could not be run".to_owned())))
    })
}

pub(crate) fn build_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::environment(format!("failed to start: {error}")))
}

pub(crate) fn launch_of_command(command: &str, work: &Path, limit: Duration, run: Option<&RunId>) -> Launch {
    Launch {
        env: run.map(|run| (RUN_VARIABLE.into(), run.as_str().into())).into_iter().collect(),
        args: vec!["-c".into(), command.into()],
        timeout: Some(limit),
        output_max: OUTPUT_MAX,
        keeps_end: true,
        ..Launch::new(cuegate_provider::locate_or_missing("sh"), work.to_owned())
    }
}

pub(crate) async fn try_command(
    shim: &Shim,
    dir: &Path,
    launch: Launch,
    success: &Success,
) -> Result<TriedCommand, Failure> {
    let mut child = process::start_command(shim, dir, &launch).await.map_err(failed_to_run)?;
    while child.line().await.is_some() {}
    let finished = child.wait().await.map_err(failed_to_run)?;
    let (stdout, stderr) =
        (String::from_utf8_lossy(&finished.stdout), String::from_utf8_lossy(&finished.stderr));
    let text = format!("{}\n{}", end_of(&stdout), end_of(&stderr));
    let (code, ended) = match &finished.exit {
        Exit::Code(code) => (Some(*code), format!("exit {code}")),
        Exit::Signal(signal) => (None, format!("killed by signal {signal}")),
        Exit::NotFound(why) | Exit::NotStarted(why) => (None, why.clone()),
    };
    Ok(TriedCommand {
        passed: !finished.timed_out && success.holds(code, &stdout, &stderr),
        timed_out: finished.timed_out,
        // The exit codes of a shell.
        cannot_run: matches!(code, Some(126 | 127)),
        ended,
        output: cuegate_view::failure_lines(&text, OUTPUT_LINES),
        text,
    })
}

/// The end of an output.
fn end_of(text: &str) -> &str {
    const TEXT_MAX: usize = 64 << 10;
    let start = text.len().saturating_sub(TEXT_MAX);
    &text[(start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(start)..]
}

fn failed_to_run(error: process::ProcessError) -> Failure {
    Failure::from(cuegate_runner::Error::from(error))
}
