//! Commits, merges and pushes the work of a run that completed in a worktree of its own. Each step looks first whether
//! it is done, so it may be started again after a crash. Nothing is forced and nothing is deleted.

mod commit;
mod contents;
mod held_back;
mod merge;
mod push;

use std::path::Path;

use cuegate_engine::IssueClaim;

use super::error::WorktreeError;
use super::git::Git;

use commit::check_branch;
pub use commit::commit_run_work;
pub use contents::RunWork;
pub use merge::merge_run_work;
use merge::merged_tree;
pub(in crate::worktree) use push::pushed_ref;
pub use push::{has_changes, has_work, push_run_work};

/// What a step did, or why it cannot be done.
pub type Outcome = Result<String, String>;

/// Runs the gates of the run on a tree that they have not seen. It gets the tree of a commit, and how that differs from the
/// work, in words. Returns what to say of it, or which gate fails.
pub type Prove<'p> = &'p mut dyn FnMut(&str, &str) -> Result<Outcome, WorktreeError>;

/// The branches of a run.
#[derive(Debug, Clone)]
pub struct Branches<'b> {
    /// The worktree of the run.
    pub work: &'b Path,
    pub branch: &'b str,
    /// The branch from which that started.
    pub base: Option<&'b str>,
    /// The branch that a pull request changes, if it is another.
    pub into: Option<&'b str>,
    /// Whether hooks of the repository run.
    pub hooks: bool,
    /// Whether the run merges its work into the base.
    pub merges: bool,
    /// Whether a base that moved on is merged into what is published.
    pub updates: bool,
    /// Whether the work was edited after the run ended, so that its gates have not seen it.
    pub is_edited: bool,
    /// Files that may be committed though they look like secrets, or are very large.
    pub allowed: &'b [String],
    /// The claim on the remote that its work replaces.
    pub claim: Option<&'b IssueClaim>,
}

impl Branches<'_> {
    fn own(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// The name of its branch on the remote.
    pub fn on_remote(&self) -> &str {
        self.claim.map_or(self.branch, |claim| &claim.branch)
    }

    /// The branch on the remote that the work is for.
    fn target(&self) -> Option<&str> {
        self.into.or(self.base)
    }

    /// Git in a folder, with the hooks of the repository if they are wanted.
    fn git(&self, dir: &Path) -> Git {
        if self.hooks { Git::new(dir).with_hooks() } else { Git::new(dir) }
    }
}

/// The address of a remote; `None` if there is no such remote.
///
/// # Errors
/// When git cannot be started.
pub fn remote_url(repo: &Path, remote: &str) -> Result<Option<String>, WorktreeError> {
    match Git::new(repo).run(&["remote", "get-url", remote]) {
        Ok(url) => Ok(Some(trim_output(url)).filter(|url| !url.is_empty())),
        Err(WorktreeError::Git { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives git a name for commits if the user has configured none.
pub(super) fn set_fallback_author(mut git: Git, dir: &Path) -> Result<Git, WorktreeError> {
    if !Git::new(dir).succeeds(&["config", "user.email"])? {
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
            git = git.with(name, "Cuegate");
        }
        for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            git = git.with(name, "cuegate@localhost");
        }
    }
    Ok(git)
}

/// A failure of git as a text; other errors stay errors.
pub(super) fn separate_git_failure(
    ran: Result<Vec<u8>, WorktreeError>,
) -> Result<Result<(), String>, WorktreeError> {
    match ran {
        Ok(_) => Ok(Ok(())),
        Err(WorktreeError::Git { stderr, .. }) => Ok(Err(stderr.trim().replace('\n', "; "))),
        Err(error) => Err(error),
    }
}

pub(super) fn trim_output(output: Vec<u8>) -> String {
    String::from_utf8_lossy(&output).trim().to_owned()
}
