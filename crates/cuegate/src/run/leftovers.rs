//! Removes what killed processes left behind and nothing needs any more.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use cuegate_journal::{Journal, Liveness, RunId, RunSummary};
use cuegate_runner::{
    StateDir, is_over, process,
    worktree::{
        AgentGit,
        branch_worktree::{self, SetupState},
        clear_stale_locks,
    },
};

use crate::Failure;

/// The branch of a run's worktree.
pub fn branch_of(run: &RunId) -> String {
    format!("cuegate/{run}")
}

/// Removes the folders of finished commands of runs that have ended, and the worktrees of runs that were killed before
/// their first record. Leaves everything that a live process may use and everything that holds work. Returns a line for
/// each removed thing. Failures are left for the next time.
pub fn remove_leftovers(home: &StateDir, journal: &dyn Journal) -> Vec<String> {
    cuegate_runner::sandbox::remove_stale_egresses();
    cuegate_runner::worktree::remove_stale_settings();
    let mut removed = Vec::new();
    let idle = |run: &RunSummary| {
        run.damage.is_none() && run.owner.as_ref().is_none_or(|owner| owner.liveness() == Liveness::Dead)
    };
    let runs: Vec<RunSummary> = journal.runs().unwrap_or_default().into_iter().filter(idle).collect();
    // A killed git may have left locks as well, also the one that removed the worktree of an earlier run.
    let oldest = runs.iter().filter(|run| !run.has_records).map(|run| run.created_at_ms).min();
    let since = Duration::from_millis(u64::try_from(oldest.unwrap_or_default()).unwrap_or_default());
    for run in runs {
        let git = home.git(&run.run);
        let _ = AgentGit::restore_name(home.root(), &git);
        if git.is_dir() && has_run_ended(journal, &run.run) {
            AgentGit::remove_spent(&git);
        }
        if !run.has_records {
            removed.extend(remove_worktree(home, &run.run, SystemTime::UNIX_EPOCH + since));
        } else if !list_command_folders(home, &run.run).is_empty() && has_run_ended(journal, &run.run) {
            removed.extend(remove_commands(home, &run.run, &[]));
        }
    }
    removed
}

/// Removes the folders of a run's commands except those that are `pending`.
pub fn remove_commands(home: &StateDir, run: &RunId, pending: &[PathBuf]) -> Vec<String> {
    let mut removed = Vec::new();
    for dir in list_command_folders(home, run).into_iter().filter(|dir| !pending.contains(dir)) {
        if !process::is_running(&dir) && fs::remove_dir_all(&dir).is_ok() {
            removed.push(format!("the folder `{}` of a finished command", format_relative_path(home, &dir)));
        }
    }
    removed
}

/// The folders of a run's commands.
pub(crate) fn list_command_folders(home: &StateDir, run: &RunId) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.run(run).join("commands")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn has_run_ended(journal: &dyn Journal, run: &RunId) -> bool {
    cuegate_runner::read_run(journal, run).is_ok_and(|run| is_over(&run.state))
}

/// The file that says which part of the preparation of a worktree a run is in. Only the run itself was there then.
fn preparation_path_of(home: &StateDir, run: &RunId) -> PathBuf {
    home.run(run).join("preparation")
}

/// Notes which part of its preparation a worktree is in, so that one that was cut off can be removed.
///
/// # Errors
/// When the note cannot be written.
pub(crate) fn note_preparation(home: &StateDir, run: &RunId, is_finished: bool) -> Result<(), Failure> {
    let path = preparation_path_of(home, run);
    let written = fs::create_dir_all(home.run(run))
        .and_then(|()| fs::write(&path, if is_finished { "finished" } else { "begun" }));
    written.map_err(|error| Failure::environment(format!("failed to write `{}`: {error}", path.display())))
}

/// Removes the worktree and the branch of a run that has no record: no agent was started in it. Locks that
/// git left after `since` are removed with them.
pub(super) fn remove_worktree(home: &StateDir, run: &RunId, since: SystemTime) -> Option<String> {
    let branch = branch_of(run);
    let setup = match fs::read_to_string(preparation_path_of(home, run)) {
        Ok(text) if text == "finished" => SetupState::Finished,
        Ok(_) => SetupState::Unfinished,
        Err(_) => SetupState::None,
    };
    let unused = || branch_worktree::remove_unused(home.root(), &home.trees(), run.as_str(), &branch, setup);
    let removed = unused();
    let removed = match removed {
        Err(_) if clear_stale_locks(home.root(), since).is_ok_and(|locks| !locks.is_empty()) => unused(),
        removed => removed,
    };
    // Git creates the folder before it notes where the worktree is. Removed only if it is empty.
    let _ = fs::remove_dir(home.worktrees().join(run.as_str()));
    match removed {
        Ok(true) => Some(format!("the worktree and the branch `{branch}` of a run that did not start")),
        Ok(false) | Err(_) => None,
    }
}

fn format_relative_path(home: &StateDir, path: &Path) -> String {
    path.strip_prefix(home.root()).unwrap_or(path).display().to_string()
}
