//! Errors of journals.

use std::io;
use std::path::PathBuf;

use crate::{Lease, Liveness, MessageId, RunId};

/// A failure of a journal, or a refused operation.
///
/// Each message can follow "failed to …: "; [`Error::hint`] gives advice for the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run to create already exists.
    #[error("run `{run}` already exists")]
    Exists {
        /// The run.
        run: RunId,
    },
    /// The run does not exist.
    #[error("there is no run `{run}`")]
    NoSuchRun {
        /// The run.
        run: RunId,
    },
    /// The expected sequence number is not the end of the run: the run has changed since it was read.
    #[error("run `{run}` has {found} records, not {expected}")]
    Conflict {
        /// The run.
        run: RunId,
        /// The expected sequence number of the record.
        expected: u64,
        /// The actual sequence number of the next record.
        found: u64,
    },
    /// The lease was released or taken over.
    #[error("the lease {token} of run `{run}` is lost")]
    LeaseLost {
        /// The run.
        run: RunId,
        /// The token of the lost lease.
        token: u64,
    },
    /// Another process, which lives or may live, holds the lease.
    #[error("run `{}` is held by {}", .lease.run, .lease.owner)]
    Held {
        /// The current lease.
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
    /// No journal exists at the path.
    #[error("there is no journal at `{}`", .path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The file was deleted or replaced while it was in use, so that what is written would be lost.
    #[error("`{}` was deleted or replaced while it was in use", .path.display())]
    Vanished {
        /// The file that is gone.
        path: PathBuf,
    },
    /// A log holds fewer records than were written: it was deleted, cut or replaced by an older one.
    #[error("`{}` has lost records of run `{run}`: it holds {found} of {noted}", .path.display())]
    RecordsLost {
        /// The file.
        path: PathBuf,
        /// The run.
        run: RunId,
        /// The number of records in the journal.
        found: u64,
        /// The number of records that were written.
        noted: u64,
        /// The file that shows this number.
        note: PathBuf,
    },
    /// Something other than a file is in the place of the journal or of a file next to it.
    #[error("`{}` is a {kind}, not a file", .path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// The journal was opened for reading only.
    #[error("journal `{}` is open for reading only", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// A newer program has written the journal: it can be read, not written.
    #[error("`{}` has format {found}; this program writes format {supported}", .path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The format of the journal.
        found: u32,
        /// The newest format that this program writes.
        supported: u32,
    },
    /// The content of the journal differs from what was written.
    #[error("`{}` is damaged: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        what: String,
    },
    /// Other processes kept the journal locked for too long.
    #[error("`{}` is busy: could not {doing}", .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
    },
    /// The system refused a file or folder of the journal: a full disk, a missing right, a failing device.
    ///
    /// After a failed append it is unknown whether the record was stored. Read the run again.
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
    /// The database of the journal cannot be reached, or refused a statement.
    #[error("the journal at {address} failed: {what}")]
    Database {
        /// Where it is, without a password.
        address: String,
        /// What it said.
        what: String,
    },
    /// A record, a message or the name of a machine is longer than the format can say.
    #[error("a part of run `{run}` is too long to be stored")]
    TooLong {
        /// The run.
        run: RunId,
    },
}

impl Error {
    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Held { lease } if lease.owner.liveness() == Liveness::Unknown => format!(
                "if its container or machine is gone, `cuegate resume {} --take-over` continues the run",
                lease.run
            ),
            Self::Held { .. } => "wait for that process, or end it; then the run can be resumed".to_owned(),
            Self::TooNew { .. } => {
                "use the newer cuegate that wrote it; this one can only read it".to_owned()
            }
            Self::Damaged { path, .. } => format!(
                "restore a copy of it; to go on without the run, move `{}` away",
                path.parent().unwrap_or(path).display()
            ),
            Self::RecordsLost { found, note, .. } => {
                let note = note.display();
                match found {
                    0 => format!("restore a copy of it; to go on without the run, remove `{note}`"),
                    found => format!(
                        "restore a copy of it; to go on after the {found} records that are left, remove `{note}`"
                    ),
                }
            }
            Self::Vanished { .. } => {
                "what the run did since is in no record; its files are where it worked. `git clean -x` deletes the journal: \
                 leave it out with `-e .cuegate`"
                    .to_owned()
            }
            Self::NoFile { .. } => "move it away, and restore the journal if there was one".to_owned(),
            Self::Database { .. } => {
                "check that the server runs and may be reached from here, and the rights of its user".to_owned()
            }
            Self::Busy { .. } => "look for a stopped process that has the file open".to_owned(),
            _ => return None,
        })
    }

    /// Returns whether a retry can succeed a moment later.
    pub fn retry_helps(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }
}
