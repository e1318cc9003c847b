use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with the working tree.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refused something.
    #[error("failed to {doing} `{}`", path.display())]
    Io {
        /// The verb: what was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it was refused.
        #[source]
        source: io::Error,
    },
    /// The git program could not be started; [`io::ErrorKind::NotFound`]: there is none.
    #[error("failed to start `git`")]
    Start(#[source] io::Error),
    /// Git refused.
    #[error("failed to run `git {command}`: {stderr}")]
    Git {
        /// Its arguments, without those that we always give.
        command: String,
        /// What it said, without surrounding white space.
        stderr: String,
    },
    /// Git was killed.
    #[error("`git {command}` was killed by signal {signal}")]
    Killed {
        /// Its arguments, without those that we always give.
        command: String,
        /// The signal.
        signal: i32,
    },
    /// A file or folder that git does not ignore cannot be read, so the tree is not known.
    #[error("failed to read `{path}`: {why}")]
    Unreadable {
        /// Relative to the root of the working tree.
        path: String,
        /// The system's words.
        why: String,
    },
    /// What should name a tree is no object id.
    #[error("failed to find the tree `{0}`: not an object id")]
    NoTree(String),
    /// A branch of that name exists, or the name is no name for one.
    #[error("failed to create the branch `{branch}`: {why}")]
    Branch {
        /// The name.
        branch: String,
        /// Why not.
        why: &'static str,
    },
    /// There is something where the worktree should be.
    #[error("failed to create a worktree at `{}`: there is something already", path.display())]
    PathTaken {
        /// The place.
        path: PathBuf,
    },
    /// What the new branch should start from is no commit.
    #[error("failed to find a commit called `{base}`")]
    NoCommit {
        /// The revision, `HEAD` if none was given.
        base: String,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Error::Start(error) if error.kind() == io::ErrorKind::NotFound => {
                Some("install git, or put it in the PATH")
            }
            Error::Unreadable { .. } => Some("make it readable, or add it to `.gitignore`"),
            Error::Branch { .. } => {
                Some("choose another branch name, or delete the branch with `git branch -D`")
            }
            Error::PathTaken { .. } => {
                Some("choose another folder, or remove this one with `git worktree remove`")
            }
            Error::NoCommit { base } if base == "HEAD" => {
                Some("commit something first: a worktree starts from a commit")
            }
            Error::NoCommit { .. } => Some("`git branch --all` lists the branches"),
            Error::Git { stderr, .. } if stderr.contains("dubious ownership") => Some(
                "the repository belongs to another user: `git config --global --add safe.directory` trusts it",
            ),
            Error::Git { stderr, .. } if stderr.contains("already registered worktree") => {
                Some("its folder was removed by hand: `git worktree prune` forgets it")
            }
            _ => None,
        }
    }
}

/// Adds to an IO error what was tried on which path; for `map_err`.
pub(super) fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { doing, path, source }
}
