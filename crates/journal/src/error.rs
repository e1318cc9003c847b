//! What can go wrong while records are kept.

use std::io;
use std::path::PathBuf;

use crate::{Lease, MessageId, RunId};

/// A fault of a journal, or an operation that it refused.
///
/// Each message fits after "failed to …: "; [`Error::hint`] says what a person can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run to create is there already.
    #[error("run `{run}` exists already")]
    Exists {
        /// The run.
        run: RunId,
    },
    /// There is no such run.
    #[error("there is no run `{run}`")]
    NoSuchRun {
        /// The run.
        run: RunId,
    },
    /// The record was meant for another place than the end of the run: the run has changed since it was read.
    #[error("run `{run}` has {found} records, not {expected}")]
    Conflict {
        /// The run.
        run: RunId,
        /// The sequence number that the record was to get.
        expected: u64,
        /// The sequence number that the next record gets.
        found: u64,
    },
    /// The lease was released, or somebody has taken it over.
    #[error("the lease {token} of run `{run}` is lost")]
    LeaseLost {
        /// The run.
        run: RunId,
        /// The token of the lost lease.
        token: u64,
    },
    /// A process that lives, or may live, has the lease.
    #[error("run `{}` is held by {}", .lease.run, .lease.owner)]
    Held {
        /// The lease that is in the way.
        lease: Box<Lease>,
    },
    /// A message to consume is not in the inbox of the run.
    #[error("message {id} is not in the inbox of run `{run}`")]
    NoSuchMessage {
        /// The run.
        run: RunId,
        /// The message.
        id: MessageId,
    },
    /// There is no journal at the path.
    #[error("there is no journal at `{}`", .path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is a database of another program.
    #[error("`{}` is not a journal of cuegate", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The journal was opened for reading only.
    #[error("journal `{}` is open for reading only", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// A newer program has written the journal: it can be read, not written.
    #[error("journal `{}` has format {found}; this program writes format {supported}", .path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The format of the journal.
        found: u32,
        /// The newest format that this program writes.
        supported: u32,
    },
    /// The content of the journal is not what was written.
    #[error("journal `{}` is damaged: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What the store says.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// Other processes kept the journal locked for longer than it waits.
    #[error("journal `{}` is busy: could not {doing}", .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// What the store says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system refused a file or folder of the journal.
    #[error("could not {doing} `{}`", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The store failed: a full disk, a missing right, a failing device.
    ///
    /// After a failed append it is not known whether the record is kept. Read the run again.
    #[error("journal `{}`: could not {doing}", .path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// What the store says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Says what a person can do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Held { .. } => "wait for that process, or end it; its lease is taken over when it is gone",
            Self::TooNew { .. } => "use the newer cuegate that wrote it; reading still works here",
            Self::Damaged { .. } => {
                "move the file away with its `-wal` and `-shm`, or restore a copy of all three"
            }
            Self::Foreign { .. } => "give the journal a path of its own",
            Self::Busy { .. } => "look for a stopped process that has the file open",
            _ => return None,
        })
    }

    /// Tells whether the same call can succeed a moment later without anything else being done.
    pub fn retry_helps(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }
}
