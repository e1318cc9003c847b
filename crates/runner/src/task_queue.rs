//! The queue of a project, as steps of a definition see it.

use std::collections::BTreeMap;

/// The tasks of a project that wait for somebody to do them. Several processes may use one at the same time.
pub trait TaskQueue: Send + Sync {
    /// How many tasks there are in each state, without the one that the run `without` works on.
    ///
    /// # Errors
    /// When the queue cannot be read, with the reason.
    fn count(&self, without: Option<&str>) -> Result<BTreeMap<String, u64>, String>;

    /// Adds a task, unless one with the same key was added before. Returns its name.
    ///
    /// # Errors
    /// When the queue cannot be written, with the reason.
    fn add(&self, task: &NewTask) -> Result<String, String>;
}

/// A task to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewTask {
    /// Who adds it: the same key adds nothing again.
    pub key: String,
    /// What to do.
    pub text: String,
    /// The workflow that does it.
    pub workflow: String,
    /// The issue on GitHub that it is about.
    pub issue: Option<u64>,
    /// The pull request on whose branch it works.
    pub pull_request: Option<u64>,
    /// Whether it is done in a working tree of its own.
    pub in_worktree: bool,
    /// The branch on which it is done.
    pub branch: Option<String>,
    /// The branch from which that starts.
    pub base: Option<String>,
    /// Whether a pull request proposes the work.
    pub proposes: bool,
    /// Whether that is a draft.
    pub is_draft: bool,
    /// Whether it is marked as made by a run.
    pub is_managed: bool,
}
