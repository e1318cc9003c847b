//! Keeps the records of runs: append, read, blobs, lease, inbox, version.
//!
//! *Never* interprets an event: the body of a record is opaque bytes that another crate wrote and will read.
//!
//! A run is a dense sequence of records. Whoever holds the run's [`Lease`] appends to it, and says at which
//! sequence number; an append elsewhere is refused, so a decision is never based on a past that has changed.
//! Everyone else posts messages to the run's inbox, which the holder consumes together with a record.
//!
//! ```
//! use cuegate_journal::{Blob, Journal, NewRecord, Owner, RunId, memory::MemoryJournal};
//!
//! let journal = MemoryJournal::default();
//! let run: RunId = "fix-login-7".parse()?;
//! journal.create(&run, 1_700_000_000_000)?;
//!
//! let lease = journal.acquire(&run, &Owner::current())?;
//! let prompt = Blob::new(b"Fix the login.".to_vec());
//! let body = format!(r#"{{"asked": "{}"}}"#, prompt.digest());
//! let record = NewRecord { at_ms: 1_700_000_000_001, body: body.as_bytes(), blobs: &[prompt], consumes: &[] };
//! journal.append(&lease, 0, record)?;
//! journal.release(&lease)?;
//!
//! assert_eq!(journal.read(&run, 0)?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod digest;
mod error;
mod journal;
pub mod memory;
mod owner;
mod run_id;
pub mod sqlite;

pub use digest::{Blob, Digest, InvalidDigest};
pub use error::Error;
pub use journal::{Journal, Lease, Message, MessageId, NewRecord, Record, RunSummary};
pub use owner::{Liveness, Owner};
pub use run_id::{InvalidRunId, RunId};
