//! The unit of the journal.

use serde::{Deserialize, Serialize};

use crate::event::Event;

/// The events of one decision: the unit of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The format version.
    pub v: u32,
    /// The events that follow from one completion, in order. Never empty.
    pub events: Vec<Event>,
}

impl Record {
    /// The format version that this program writes.
    pub const VERSION: u32 = 1;

    /// Parses a journal record.
    ///
    /// # Errors
    /// Returns an error if the record is damaged or of a newer format, whose events may have another meaning.
    pub fn parse(bytes: &[u8]) -> Result<Record, UnreadableRecord> {
        #[derive(Deserialize)]
        struct RecordHead {
            v: u32,
        }
        let head: RecordHead = serde_json::from_slice(bytes)?;
        if head.v > Record::VERSION {
            return Err(UnreadableRecord::Newer { found: head.v, known: Record::VERSION });
        }
        Ok(serde_json::from_slice(bytes)?)
    }
}

/// Why a record cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableRecord {
    /// It is not a record.
    #[error("it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    /// A newer program wrote it.
    #[error("it has format {found}, this program knows {known}")]
    Newer {
        /// Its format version.
        found: u32,
        /// The newest format version that this program supports.
        known: u32,
    },
}
