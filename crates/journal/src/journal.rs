//! The journal trait and its data types.

use std::fmt;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::log::RunVersion;
use crate::{Blob, Digest, Error, Owner, RunId};

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its sequence number: 0, 1, 2 … without gaps.
    pub seq: u64,
    /// The time of writing, in milliseconds since the Unix epoch, by the clock of the writer.
    pub at_ms: i64,
    /// Its content.
    pub body: Vec<u8>,
}

/// A record to append.
#[derive(Debug, Clone, Copy)]
pub struct NewRecord<'a> {
    /// The time of writing, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Its content.
    pub body: &'a [u8],
    /// Blobs that the body names, stored with the record. Those that the run has already are not stored again.
    pub blobs: &'a [Blob],
    /// Messages that the record handles: they are in the run's inbox no more.
    pub consumes: &'a [MessageId],
}

/// The right to append to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// A fencing token: it grows with every acquisition of the run, so that former holders cannot write.
    pub token: u64,
    /// The holder.
    pub owner: Owner,
}

/// The id of a message, never reused within its run.
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
    /// Its id. Later messages have greater ids.
    pub id: MessageId,
    /// The time of posting, in milliseconds since the Unix epoch, by the clock of the sender.
    pub at_ms: i64,
    /// Its content.
    pub body: Vec<u8>,
}

/// The summary of a run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// The time of creation, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// Whether it has a record: without one its process died before it began.
    pub has_records: bool,
    /// The holder of its lease, alive or not.
    pub owner: Option<Owner>,
    /// What is wrong with it, if that is known without reading it. Then reading the run fails.
    pub damage: Option<String>,
    /// Another one after each record, message and change of the lease, if the list knows it.
    pub version: Option<RunVersion>,
}

/// Stores the records of runs. Threads of a process share it.
///
/// An operation on one run may fail with [`Error::NoSuchRun`]; a writing operation with [`Error::ReadOnly`] or
/// [`Error::TooNew`]; any operation with [`Error::Damaged`], [`Error::Busy`], [`Error::Io`] or [`Error::NoFile`]. The
/// methods below only list other errors. Reading a run of which records are lost fails with [`Error::RecordsLost`].
///
/// The implementation defines how durable a finished operation is.
pub trait Journal: Send + Sync {
    /// Creates a run without records.
    ///
    /// # Errors
    /// [`Error::Exists`].
    fn create(&self, run: &RunId, at_ms: i64) -> Result<(), Error>;

    /// Appends a record, stores its blobs and consumes its messages, atomically.
    ///
    /// `expected_seq` is the number of records that the caller has seen, and the sequence number of the new record.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] when the lease was released or taken over; [`Error::Conflict`] when the run has
    /// another number of records; [`Error::NoSuchMessage`] when a message is not in the inbox (any more).
    fn append(&self, lease: &Lease, expected_seq: u64, record: NewRecord<'_>) -> Result<(), Error>;

    /// Gives a run without records the first `count` records of another one, with their texts, and appends `then`: all of
    /// it or nothing. Messages stay with the other run.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] as for [`append`](Self::append); [`Error::Conflict`] when the run has records, or the other one
    /// has fewer.
    fn append_copy(&self, lease: &Lease, from: &RunId, count: u64, then: NewRecord<'_>) -> Result<(), Error>;

    /// Removes a run with everything that belongs to it, for ever. Its lease ends with it.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] as for [`append`](Self::append).
    fn remove(&self, lease: &Lease) -> Result<(), Error>;

    /// Reads the records from `from_seq` on, in order, and hands each out until `each` breaks. Past the end there is none.
    ///
    /// `each` may read the journal.
    fn read_each(
        &self,
        run: &RunId,
        from_seq: u64,
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), Error>;

    /// As [`read_each`](Self::read_each), all at once: for runs that are known to be short, and tests.
    fn read(&self, run: &RunId, from_seq: u64) -> Result<Vec<Record>, Error> {
        let mut records = Vec::new();
        self.read_each(run, from_seq, &mut |record| {
            records.push(record);
            ControlFlow::Continue(())
        })?;
        Ok(records)
    }

    /// Reads a blob that a record of the run was stored with, and verifies its digest; a mismatch is
    /// [`Error::Damaged`].
    fn blob(&self, run: &RunId, digest: &Digest) -> Result<Option<Vec<u8>>, Error>;

    /// Lists the runs, the newest first.
    fn runs(&self) -> Result<Vec<RunSummary>, Error>;

    /// Takes the lease of a run that is free or whose holder is dead.
    ///
    /// A second acquisition by the same process is refused like any other.
    ///
    /// # Errors
    /// [`Error::Held`] while the holder lives or may live. If the user knows that the holder has ended,
    /// [`release`](Self::release) the lease that the error names.
    fn acquire(&self, run: &RunId, owner: &Owner) -> Result<Lease, Error>;

    /// Releases a lease. Does nothing if it is already released; never releases a newer lease.
    fn release(&self, lease: &Lease) -> Result<(), Error>;

    /// Returns the lease of a run, whether its holder lives or not.
    fn holder(&self, run: &RunId) -> Result<Option<Lease>, Error>;

    /// Puts a message into the inbox of a run. Needs no lease.
    fn post(&self, run: &RunId, at_ms: i64, body: &[u8]) -> Result<MessageId, Error>;

    /// Reads the messages that no record has consumed, oldest first.
    fn inbox(&self, run: &RunId) -> Result<Vec<Message>, Error>;
}
