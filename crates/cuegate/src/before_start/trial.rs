//! Whether the tests of a project pass where runs work: in the sandbox, and in a worktree.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use cuegate_flow::model::sandbox::SandboxRule;
use cuegate_provider::locate_or_missing;
use cuegate_runner::{StateDir, sandbox::Sandbox};

use super::{
    baseline::{BaselineFailure, try_in_sandbox},
    diagnose::{FailureCause, find_missing, refused_hosts},
};
use crate::run::tried_command::run_once;
use crate::{Failure, Program, config::Config};

/// The time limit of a setup command that is tried.
const SETUP_MAX: Duration = Duration::from_secs(120);
/// That of the tests.
const TESTS_MAX: Duration = Duration::from_secs(120);

/// Where a test command that passes in the user's working tree fails.
#[derive(Debug)]
pub(crate) enum TrialFailure {
    Sandbox(BaselineFailure),
    /// In a fresh worktree.
    Worktree(BaselineFailure),
    /// The setup command of worktrees failed in it, in these words.
    Setup(String),
}

/// Runs a test command that passes in the project at `root` once more, as a run with `--worktree` would: in a copy of the
/// last commit, after the configured setup commands, in the sandbox. Returns where and why it fails; `None` if it passes.
/// `proposed` is the setup command that the lock file suggests.
///
/// # Errors
/// When a process or file cannot be created.
pub(crate) fn try_where_runs_work(
    (program, config): (&Program, &Config),
    root: &Path,
    command: &str,
    proposed: Option<&str>,
) -> Result<Option<TrialFailure>, Failure> {
    let policy = SandboxRule::Unstated.policy();
    let sandbox = policy
        .and_then(|policy| Sandbox::raise(policy, config.sandbox.options(), program.inside(), true).ok());
    let folder = tempfile::tempdir().map_err(|error| Failure::environment(error.to_string()))?;
    let Some(copy) = clone_last_commit(root, folder.path()) else { return Ok(None) };
    for setup in &config.worktree.setup.0 {
        let tried = run_once(program, setup, &copy, SETUP_MAX, None)?;
        if tried.timed_out {
            return Ok(None);
        }
        if !tried.passed {
            return Ok(Some(TrialFailure::Setup(format!("`{setup}`: {}", tried.ended))));
        }
    }
    let home = StateDir::new(&copy);
    let failed = try_in_sandbox((program, &home), sandbox.as_ref(), command, (&copy, &copy))?;
    let Some(mut failed) = failed else { return Ok(None) };
    if failed.cause.is_some() {
        return Ok(Some(TrialFailure::Sandbox(failed)));
    }
    // The sandbox is not to blame for what fails without it.
    let outside = run_once(program, command, &copy, TESTS_MAX, None)?;
    if outside.passed || outside.timed_out {
        failed.cause = refused_hosts(&failed).or_else(|| find_missing(&failed));
        return Ok(Some(TrialFailure::Sandbox(failed)));
    }
    let is_set_up = !config.worktree.setup.0.is_empty();
    let setup = proposed.filter(|_| !is_set_up).map(str::to_owned);
    failed.cause = Some(FailureCause::Worktree { setup });
    Ok(Some(TrialFailure::Worktree(failed)))
}

/// A repository of its own with the last commit, which leaves that of the user alone. `None` if there is no commit.
fn clone_last_commit(root: &Path, folder: &Path) -> Option<PathBuf> {
    let copy = std::fs::canonicalize(folder).ok()?.join("worktree");
    let cloned = Command::new(locate_or_missing("git"))
        .args(["-c", "core.hooksPath=/dev/null", "-c", "protocol.file.allow=always"])
        .args(["clone", "--quiet", "--depth=1", "--template=", "--no-tags"])
        .arg(format!("file://{}", root.display()))
        .arg(&copy)
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(std::process::Stdio::null())
        .output()
        .ok()?;
    // An empty repository is cloned, too, and has nothing to test.
    (cloned.status.success() && std::fs::read_dir(&copy).ok()?.count() > 1).then_some(copy)
}
