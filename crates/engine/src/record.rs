//! A record of the journal, and which formats of it are read.

use serde::{Deserialize, Serialize};

use crate::event::Event;

/// The events of one decision: the unit of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The format version.
    pub v: u32,
    /// What followed from one completion, in order. Never empty.
    pub events: Vec<Event>,
}

impl Record {
    /// The format that this program writes.
    pub const VERSION: u32 = 3;

    /// Reads a record as the journal keeps it.
    ///
    /// # Errors
    /// When it is damaged, or of a newer format: a newer program may mean something else by the same words.
    pub fn parse(bytes: &[u8]) -> Result<Record, Unreadable> {
        #[derive(Deserialize)]
        struct Head {
            v: u32,
        }
        let head: Head = serde_json::from_slice(bytes)?;
        if head.v > Record::VERSION {
            return Err(Unreadable::Newer { found: head.v, known: Record::VERSION });
        }
        Ok(serde_json::from_slice(bytes)?)
    }
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is no record.
    #[error("it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    /// A newer program wrote it.
    #[error("it has format {found}, this program knows {known}")]
    Newer {
        /// Its format.
        found: u32,
        /// The newest that this program knows.
        known: u32,
    },
}
