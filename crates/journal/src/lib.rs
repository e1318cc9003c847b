//! Stores the records of runs: append, read, blobs, leases, inboxes and the format version.
//!
//! This crate *never* interprets an event: the body of a record is opaque bytes.
//!
//! A run is a gapless sequence of records. The process that holds the run's [`Lease`] appends to it at an expected
//! sequence number; an append at another number is refused, so that no decision is based on outdated records. Other
//! processes post messages to the run's inbox, which the holder consumes together with a record.
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
#![warn(missing_docs)]

mod digest;
mod error;
mod journal;
pub mod log;
pub mod memory;
mod owner;
mod random_token;
mod run_id;

pub use digest::{Blob, Digest, InvalidDigest};
pub use error::Error;
pub use journal::{Journal, Lease, Message, MessageId, NewRecord, Record, RunSummary};
pub use owner::{Liveness, Owner};
pub use random_token::random_token;
pub use run_id::{InvalidRunId, RunId};
