//! The trait of journals, and what goes in and out of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Blob, Digest, Error, Owner, RunId};

/// A record as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its place in the run: 0, 1, 2 … without gaps.
    pub seq: u64,
    /// When it was written, in milliseconds since the Unix epoch, by the clock of the writer.
    pub at_ms: i64,
    /// What was written.
    pub body: Vec<u8>,
}

/// A record to append.
#[derive(Debug, Clone, Copy)]
pub struct NewRecord<'a> {
    /// When it is written, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// What is written.
    pub body: &'a [u8],
    /// Blobs that the body names, kept in the same step. Those already kept may be left out.
    pub blobs: &'a [Blob],
    /// Messages that the record answers, taken out of the run's inbox in the same step.
    pub consumes: &'a [MessageId],
}

/// The right to append to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// Grows with every acquisition of the run, and so fences off everyone who held it before.
    pub token: u64,
    /// Who holds it.
    pub owner: Owner,
}

/// The name of a message, never used again within its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageId(pub u64);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A message in an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name. Later messages have greater ones.
    pub id: MessageId,
    /// When it was posted, in milliseconds since the Unix epoch, by the clock of the sender.
    pub at_ms: i64,
    /// What was posted.
    pub body: Vec<u8>,
}

/// What a list of runs shows of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// How many records it has, which is also the sequence number of its next one.
    pub records: u64,
    /// Who holds its lease, alive or not.
    pub owner: Option<Owner>,
}

/// Keeps the records of runs. Shared by the threads of a process.
///
/// An operation on one run may fail with [`Error::NoSuchRun`]; one that writes, with [`Error::ReadOnly`] or
/// [`Error::TooNew`]; any of them, with a fault of the world: [`Error::Damaged`], [`Error::Busy`],
/// [`Error::Io`], [`Error::Store`]. Only the other errors are listed below.
///
/// What an operation has returned is durable in the measure that the implementation promises.
pub trait Journal: Send + Sync {
    /// Creates a run without records.
    ///
    /// # Errors
    /// [`Error::Exists`].
    fn create(&self, run: &RunId, at_ms: i64) -> Result<(), Error>;

    /// Appends a record, keeps its blobs and consumes its messages: all of it or nothing.
    ///
    /// `expected_seq` is the number of records that the caller has seen, and the place that the record gets.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] when the lease was released or taken over; [`Error::Conflict`] when the run has
    /// another number of records; [`Error::NoSuchMessage`] when a message is not in the inbox (any more).
    fn append(&self, lease: &Lease, expected_seq: u64, record: NewRecord<'_>) -> Result<(), Error>;

    /// Reads the records from `from_seq` on, in order. Past the end there are none.
    fn read(&self, run: &RunId, from_seq: u64) -> Result<Vec<Record>, Error>;

    /// Keeps a blob, once however often it is given, before any record names it.
    fn put_blob(&self, bytes: &[u8]) -> Result<Digest, Error>;

    /// Reads a blob. What is returned has that digest; a content that has not is [`Error::Damaged`].
    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error>;

    /// Lists the runs, those created last first.
    fn runs(&self) -> Result<Vec<RunSummary>, Error>;

    /// Takes the lease of a run that nobody holds, or whose holder is dead.
    ///
    /// A second acquisition by the same process is refused like any other.
    ///
    /// # Errors
    /// [`Error::Held`] while the holder lives or may live. To take the run from a holder of whom a person knows
    /// that it is gone, [`release`](Self::release) the lease that the error names.
    fn acquire(&self, run: &RunId, owner: &Owner) -> Result<Lease, Error>;

    /// Gives a lease back. Does nothing when it is given back already, and never gives back a newer one.
    fn release(&self, lease: &Lease) -> Result<(), Error>;

    /// Tells who has the lease of a run, alive or not.
    fn holder(&self, run: &RunId) -> Result<Option<Lease>, Error>;

    /// Puts a message into the inbox of a run. Needs no lease.
    fn post(&self, run: &RunId, at_ms: i64, body: &[u8]) -> Result<MessageId, Error>;

    /// Reads the messages that no record has consumed, oldest first.
    fn inbox(&self, run: &RunId) -> Result<Vec<Message>, Error>;
}
