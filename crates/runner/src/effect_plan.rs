//! What the effects of a run need besides the run.

use std::sync::Arc;

use cuegate_engine::{IssueClaim, TreeState};

use crate::github::Github;
use crate::task_queue::TaskQueue;

/// What effects of a run need besides the run.
#[derive(Clone, Default)]
pub struct EffectPlan {
    /// The branch from which the branch of the run started.
    pub base: Option<String>,
    /// The branch that a pull request changes, if it is another.
    pub into: Option<String>,
    /// The remote to push to.
    pub remote: String,
    /// The claim there that the work replaces.
    pub claim: Option<IssueClaim>,
    /// Whether the run merges its work into the base.
    pub merges: bool,
    /// Whether a base that moved on is merged into what is published, and the gates run on both together.
    pub updates: bool,
    /// The tree and the commit with which the first run in the worktree started.
    pub first: Option<TreeState>,
    /// Whether hooks of the repository run.
    pub hooks: bool,
    /// Files that may be committed though they look like secrets, or are very large.
    pub allowed: Vec<String>,
    /// The first line of commit messages, and the title of the pull request.
    pub subject: String,
    /// The repository on GitHub, or why there is none.
    pub github: Option<Result<Github, String>>,
    /// The issue or pull request that the run works on.
    pub issue: Option<u64>,
    /// Whether merging the pull request resolves the issue, so that GitHub closes it.
    pub resolves_issue: bool,
    /// The queue of the project.
    pub queue: Option<Arc<dyn TaskQueue>>,
    /// Writes the report of the run, for the pull request.
    pub report: Option<Arc<dyn Fn() -> String + Send + Sync>>,
}
