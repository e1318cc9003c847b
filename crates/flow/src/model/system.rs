//! Steps that Cuegate does itself: it reads what a decision needs, and does what was decided.

use crate::{Str, model::Template};

/// What a step does without an agent, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SystemWork {
    /// The time to wait first, in milliseconds.
    pub delay_ms: u64,
    /// What it reads.
    pub reads: Vec<SystemRead>,
    /// What it does outside of the working tree, once each.
    pub effects: Vec<SystemEffect>,
}

impl SystemWork {
    /// Whether it does nothing, so that only its gate counts.
    pub fn is_empty(&self) -> bool {
        *self == SystemWork::default()
    }
}

/// Something that a step reads, and the name under which later steps find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemRead {
    pub name: Str,
    pub what: ReadKind,
}

/// What a step can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadKind {
    /// The task of the run.
    Task,
    /// The branch on which the run works.
    Branch,
    /// The open pull request of that branch.
    PullRequest,
    /// The issue of the run.
    Issue,
    /// How many tasks the queue of the project has in each state.
    Queue {
        /// Whether the task of the run is not counted.
        without_own: bool,
    },
    /// The open pull requests.
    PullRequests(PullRequestFilter),
    /// The next one of them after the one that this step selected before.
    NextPullRequest(PullRequestFilter),
    /// The open issues.
    Issues {
        /// The read of this step whose issue is left out.
        except: Option<Str>,
    },
    /// The next one of them after the one that this step selected before.
    NextIssue,
}

/// Which pull requests are meant. Absent parts mean all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PullRequestFilter {
    pub author: Option<Str>,
    pub base: Option<Str>,
    /// The head branch, in which `*` matches any text.
    pub head: Option<Str>,
    /// All of these labels.
    pub labels: Vec<Str>,
    /// Whether runs made them.
    pub is_managed: Option<bool>,
    /// Whether their branch is in this repository.
    pub is_own: Option<bool>,
    pub is_draft: Option<bool>,
}

impl ReadKind {
    /// The name of what is read, as results say it.
    pub fn as_str(&self) -> &'static str {
        match self {
            ReadKind::Task => "task",
            ReadKind::Branch => "branch",
            ReadKind::PullRequest => "pull_request",
            ReadKind::Issue => "issue",
            ReadKind::Queue { .. } => "queue",
            ReadKind::PullRequests(_) => "pull_requests",
            ReadKind::NextPullRequest(_) => "next_pull_request",
            ReadKind::Issues { .. } => "issues",
            ReadKind::NextIssue => "next_issue",
        }
    }

    /// Whether it needs GitHub.
    pub fn is_github(&self) -> bool {
        !matches!(self, ReadKind::Task | ReadKind::Branch | ReadKind::Queue { .. })
    }

    /// The fields of its value. A list has those of [`LIST_FIELDS`].
    pub fn fields(&self) -> &'static [&'static str] {
        match self {
            ReadKind::Task => &["exists", "body"],
            ReadKind::Branch => &["exists", "name"],
            ReadKind::PullRequest => &["exists", "number", "url", "branch", "baseBranch", "title", "body"],
            ReadKind::Issue => &["exists", "number", "title", "body", "labels", "comments"],
            ReadKind::Queue { .. } => &[
                "exists",
                "total_count",
                "pending_count",
                "running_count",
                "completed_count",
                "failed_count",
                "exceeded_count",
                "pr_failed_count",
            ],
            ReadKind::NextPullRequest(_) => &[
                "exists",
                "number",
                "author",
                "base_branch",
                "head_branch",
                "managed_by_takt",
                "labels",
                "same_repository",
                "draft",
            ],
            ReadKind::NextIssue => &["exists", "number", "title"],
            ReadKind::PullRequests(_) | ReadKind::Issues { .. } => &LIST_FIELDS,
        }
    }
}

/// What can be read of a list besides its items.
pub const LIST_FIELDS: [&str; 1] = ["length"];

/// Something that a step does outside of the working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemEffect {
    /// The word that definitions have for it, and the name of its result.
    pub name: Str,
    pub what: SystemEffectKind,
    /// Its values by name. Each is a text; an agent may have written it.
    pub values: Vec<(Str, Template)>,
}

/// What a step can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemEffectKind {
    /// A comment on a pull request: `pr`, `body`.
    Comment,
    /// A pull request is closed: `pr`.
    Close,
    /// A pull request is merged: `pr`.
    Merge,
    /// The base of a pull request is merged into its branch: `pr`.
    Sync,
    /// A task is added to the queue.
    Enqueue,
}

/// The fields of the result of an effect.
pub const EFFECT_FIELDS: [&str; 6] = ["success", "failed", "conflicted", "error", "url", "number"];
