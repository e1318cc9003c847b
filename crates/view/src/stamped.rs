//! Records as they come out of the journal.

use cuegate_engine::{Event, Record, Unreadable};
use cuegate_flow::model::BlobRef;

/// Finds a kept text by its digest; `None` when it is not there or no text.
pub type Texts<'t> = &'t dyn Fn(&BlobRef) -> Option<String>;

/// A record, with its place in the run and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Stamped {
    /// Its place in the run, from 0, without gaps.
    pub seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub at_ms: i64,
    /// What followed from one completion, in order.
    pub events: Vec<Event>,
}

impl Stamped {
    /// Reads the body of a record.
    ///
    /// # Errors
    /// When a later program wrote it, or when it is damaged.
    pub fn decode(seq: u64, at_ms: i64, body: &[u8]) -> Result<Stamped, Unreadable> {
        Ok(Stamped { seq, at_ms, events: Record::parse(body)?.events })
    }
}
