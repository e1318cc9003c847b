//! Records with their journal position and time.

use cuegate_engine::{Event, Record, Unreadable};
use cuegate_flow::model::BlobRef;

/// Looks up a stored text by its digest; `None` when it is missing or not UTF-8.
pub type Texts<'t> = &'t dyn Fn(&BlobRef) -> Option<String>;

/// A record with its position in the run and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Stamped {
    /// The position in the run, from 0, without gaps.
    pub seq: u64,
    /// The time of writing, in milliseconds since 1970.
    pub at_ms: i64,
    /// The events that one completion caused, in order.
    pub events: Vec<Event>,
}

impl Stamped {
    /// Decodes the body of a record.
    ///
    /// # Errors
    /// When a later version wrote it, or when it is damaged.
    pub fn decode(seq: u64, at_ms: i64, body: &[u8]) -> Result<Stamped, Unreadable> {
        Ok(Stamped { seq, at_ms, events: Record::parse(body)?.events })
    }
}
