//! Errors of the runner itself. The engine handles the faults of agents and programs.

use std::{io, path::PathBuf};

use crate::{process, worktree};

/// A failure of this machine or of the journal. The run stays at its last record and can be resumed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal failed.
    #[error("{0}")]
    Journal(#[from] cuegate_journal::Error),
    /// A record that this program cannot read.
    #[error("failed to read record {seq} of run `{run}`")]
    Record {
        run: String,
        /// The record.
        seq: u64,
        /// Why not.
        #[source]
        source: cuegate_engine::UnreadableRecord,
    },
    /// A definition that the run goes on with cannot be loaded. Whoever loads it knows why.
    #[error("the definition that run `{run}` goes on with in record {seq} cannot be loaded")]
    Definition {
        run: String,
        /// The record.
        seq: u64,
    },
    /// The journal lacks a text that one of its records names.
    #[error("the journal lacks the text `{digest}`")]
    Blob { digest: String },
    /// A child process failed.
    #[error("{0}")]
    Process(#[from] process::ProcessError),
    /// The working tree cannot be read or restored.
    #[error("{0}")]
    Tree(#[from] worktree::WorktreeError),
    /// A file or folder in the state dir cannot be used.
    #[error("failed to {doing} `{path}`", path = path.display())]
    Io {
        /// The attempted operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A simulation exceeded its limit of commands.
    #[error("the simulation did not end within {commands} commands")]
    Endless {
        /// The number of performed commands.
        commands: u32,
    },
    /// A background task panicked or was cancelled.
    #[error("a background task failed: {0}")]
    Task(String),
}

impl Error {
    /// Advice for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Journal(error) => error.hint(),
            Error::Tree(error) => error.hint().map(str::to_owned),
            Error::Record { .. } => {
                Some("use the newer cuegate that wrote it, or restore the journal from a copy".to_owned())
            }
            Error::Blob { .. } => {
                Some("the journal is damaged; other runs in it are not affected".to_owned())
            }
            Error::Definition { .. }
            | Error::Process(_)
            | Error::Io { .. }
            | Error::Endless { .. }
            | Error::Task(_) => None,
        }
    }
}

pub(crate) fn io_error_at(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
    let path = path.into();
    move |source| Error::Io { doing, path, source }
}
