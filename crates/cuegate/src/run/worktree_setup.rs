//! The setup commands of the worktree of a run.

use std::{path::Path, time::Duration};

use cuegate_engine::Place;
use cuegate_journal::RunId;
use cuegate_view::clean_to_one_line;

use super::leftovers;
use super::start_run::Host;
use super::tried_command::run_once;
use crate::Failure;

/// How much of a failed command is shown. Package managers say the cause before their advice.
const LINES_SHOWN: usize = 12;
/// The longest time of one command.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Runs the setup commands in a worktree of the run, and tells `print` of them in lines; returns whether there are any.
///
/// # Errors
/// When one fails. The caller removes the worktree.
pub(crate) fn run_setup_commands(
    host: &Host,
    id: &RunId,
    place: &Place,
    print: &mut dyn FnMut(&str),
) -> Result<bool, Failure> {
    let commands = &host.config.worktree.setup.0;
    if place.branch.is_none() || !place.owned || commands.is_empty() {
        return Ok(false);
    }
    let work = Path::new(&place.work);
    leftovers::note_preparation(&host.home, id, false)?;
    for command in commands {
        print(&format!("setup   {}", clean_to_one_line(command)));
        let tried = run_once(&host.program, command, work, TIMEOUT, Some(id))?;
        if !tried.passed {
            let how = if tried.timed_out { "took longer than 30 minutes" } else { &tried.ended };
            let lines = cuegate_view::failure_lines(&tried.text, LINES_SHOWN);
            lines.iter().for_each(|line| print(&format!("  | {line}")));
            return Err(Failure::usage(
                format!("the setup command `{command}` of the worktree failed: {how}"),
                "no agent was called; fix `setup` in `[worktree]` of cuegate.toml",
            ));
        }
    }
    leftovers::note_preparation(&host.home, id, true)?;
    Ok(true)
}
