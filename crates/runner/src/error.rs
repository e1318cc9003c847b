//! What can go wrong while a run is driven, besides what the engine decides about.

use std::{io, path::PathBuf};

use crate::{process, worktree};

/// A fault of this machine or of the journal. The run stays where its last record left it and can be resumed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal.
    #[error("{0}")]
    Journal(#[from] cuegate_journal::Error),
    /// A record that this program cannot read.
    #[error("failed to read record {seq} of run `{run}`")]
    Record {
        /// The run.
        run: String,
        /// The record.
        seq: u64,
        /// Why not.
        #[source]
        source: cuegate_engine::Unreadable,
    },
    /// A text that the journal should hold is not there.
    #[error("the journal lacks the text `{digest}`")]
    Blob {
        /// Its digest.
        digest: String,
    },
    /// A child process.
    #[error("{0}")]
    Process(#[from] process::Error),
    /// The working tree.
    #[error("{0}")]
    Tree(#[from] worktree::Error),
    /// A file of ours.
    #[error("failed to {doing} `{path}`", path = path.display())]
    Io {
        /// What was done.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A simulated run that goes on and on.
    #[error("no end after {commands} commands")]
    Endless {
        /// So many were performed.
        commands: u32,
    },
    /// A thread of ours was lost.
    #[error("a task was lost: {0}")]
    Task(String),
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Journal(error) => error.hint().map(str::to_owned),
            Error::Tree(error) => error.hint().map(str::to_owned),
            Error::Record { .. } => {
                Some("it was written by a newer cuegate, or the journal is damaged".to_owned())
            }
            Error::Blob { .. } => {
                Some("the journal is damaged; other runs in it are not affected".to_owned())
            }
            Error::Process(_) | Error::Io { .. } | Error::Endless { .. } | Error::Task(_) => None,
        }
    }
}

pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
    let path = path.into();
    move |source| Error::Io { doing, path, source }
}
