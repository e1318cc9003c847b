use std::io;
use std::path::{Path, PathBuf};

/// Errors of snapshots and worktrees.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// A file operation failed.
    #[error("failed to {doing} `{}`", path.display())]
    Io {
        /// The attempted operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The git program could not be started; [`io::ErrorKind::NotFound`]: it is not installed.
    #[error("failed to start `git`")]
    Start(#[source] io::Error),
    /// A git command failed.
    #[error("failed to run `git {command}`: {stderr}")]
    Git {
        /// Its arguments, without those that we always give.
        command: String,
        /// Its stderr, trimmed.
        stderr: String,
    },
    /// Git was killed.
    #[error("`git {command}` was killed by signal {signal}")]
    Killed {
        /// Its arguments, without those that we always give.
        command: String,
        signal: i32,
    },
    /// A git command took too long and was killed.
    #[error("`git {command}` took more than {seconds} s")]
    TimedOut {
        /// Its arguments, without those that we always give.
        command: String,
        /// The time limit.
        seconds: u64,
    },
    /// The run is being stopped.
    #[error("stopped")]
    Stopped,
    /// A file that git does not ignore is too large for a snapshot.
    #[error("failed to take a snapshot in time: `{path}` has {} GiB", bytes >> 30)]
    TooLarge {
        /// Relative to the root of the working tree.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// A file or folder that git does not ignore cannot be read, so no snapshot is possible.
    #[error("failed to read `{path}`: {why}")]
    Unreadable {
        /// Relative to the root of the working tree.
        path: String,
        /// The system's message.
        why: String,
    },
    /// A text is not an object id.
    #[error("failed to find the tree `{0}`: not an object id")]
    NoTree(String),
    /// The branch already exists, or its name is invalid.
    #[error("failed to create the branch `{branch}`: {why}")]
    Branch {
        /// The name.
        branch: String,
        /// The reason.
        why: &'static str,
    },
    /// The folder of the new worktree is not empty.
    #[error("failed to create a worktree at `{}`: the path already exists", path.display())]
    PathTaken { path: PathBuf },
    /// The start point of the new branch is not a commit.
    #[error("failed to find a commit called `{base}`")]
    NoCommit {
        /// The revision, `HEAD` if none was given.
        base: String,
    },
}

impl WorktreeError {
    /// Advice for the user.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            WorktreeError::Start(error) if error.kind() == io::ErrorKind::NotFound => {
                Some("install git, or put it in the PATH")
            }
            WorktreeError::TooLarge { .. } => Some("add it to `.gitignore`, or move it away"),
            WorktreeError::TimedOut { .. } => {
                Some("look for huge files, and for FIFOs and devices in `.git`")
            }
            WorktreeError::Unreadable { path, .. } if path == ".git/index" => {
                Some("move it away; `git reset` makes a new one")
            }
            WorktreeError::Unreadable { path, .. } if path.starts_with(".git") => {
                Some("look at it, and remove it: an agent may have put it there")
            }
            WorktreeError::Unreadable { .. } => Some("make it readable, or add it to `.gitignore`"),
            WorktreeError::Branch { .. } => {
                Some("choose another branch name, or delete the branch with `git branch -D`")
            }
            WorktreeError::PathTaken { .. } => {
                Some("choose another folder, or remove this one with `git worktree remove`")
            }
            WorktreeError::NoCommit { base } if base == "HEAD" => {
                Some("commit something first: a worktree needs a commit to start from")
            }
            WorktreeError::NoCommit { .. } => {
                Some("choose one of the branches that `git branch --all` lists")
            }
            WorktreeError::Git { stderr, .. } if stderr.contains("dubious ownership") => Some(
                "the repository belongs to another user: trust it with `git config --global --add safe.directory`",
            ),
            WorktreeError::Git { stderr, .. } if stderr.contains("already registered worktree") => {
                Some("its folder was removed by hand: unregister it with `git worktree prune`")
            }
            _ => None,
        }
    }
}

/// Adds the operation and the path to an IO error; for `map_err`.
pub(super) fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WorktreeError {
    let path = path.to_owned();
    move |source| WorktreeError::Io { doing, path, source }
}
