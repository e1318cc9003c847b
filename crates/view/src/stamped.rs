//! Records as they come out of the journal.

use std::fmt;

use cuegate_engine::{Event, Record};
use cuegate_flow::BlobRef;
use serde::Deserialize;

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

/// Why the body of a record cannot be read.
#[derive(Debug)]
pub enum DecodeError {
    /// It is not what this program writes: the journal is damaged.
    Damaged {
        /// Its place in the run.
        seq: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A later program wrote it. Guessing what it means would show a wrong run.
    Newer {
        /// Its place in the run.
        seq: u64,
        /// Its format version.
        found: u32,
        /// The latest one that this program reads.
        known: u32,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Damaged { seq, .. } => write!(f, "record {seq} cannot be read"),
            DecodeError::Newer { seq, found, known } => write!(
                f,
                "record {seq} has format version {found}, and this program reads versions up to {known}: \
                 a later cuegate wrote it"
            ),
        }
    }
}

impl std::error::Error for DecodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DecodeError::Damaged { source, .. } => Some(source),
            DecodeError::Newer { .. } => None,
        }
    }
}

/// The one field that every version of a record has.
#[derive(Deserialize)]
struct Version {
    v: u32,
}

impl Stamped {
    /// Reads the body of a record.
    ///
    /// # Errors
    /// When a later program wrote it, or when it is damaged.
    pub fn decode(seq: u64, at_ms: i64, body: &[u8]) -> Result<Stamped, DecodeError> {
        let damaged = |source| DecodeError::Damaged { seq, source };
        // The version is read apart: the events of a later format need not fit any type known here.
        let Version { v } = serde_json::from_slice(body).map_err(damaged)?;
        if v > Record::VERSION {
            return Err(DecodeError::Newer { seq, found: v, known: Record::VERSION });
        }
        let record: Record = serde_json::from_slice(body).map_err(damaged)?;
        Ok(Stamped { seq, at_ms, events: record.events })
    }
}

#[cfg(test)]
mod tests {
    use super::{DecodeError, Stamped};

    #[test]
    fn a_newer_version_is_refused_whatever_it_holds() {
        let error = Stamped::decode(4, 0, br#"{"v":2,"facts":{"shape":"unknown"}}"#).unwrap_err();
        assert!(matches!(error, DecodeError::Newer { seq: 4, found: 2, known: 1 }));
        insta::assert_snapshot!(error, @"record 4 has format version 2, and this program reads versions up to 1: a later cuegate wrote it");
    }

    #[test]
    fn damage_names_the_record_and_the_cause() {
        let error = Stamped::decode(7, 0, br#"{"v":1,"events":[{"event":"nonsense"}]}"#).unwrap_err();
        assert_eq!(error.to_string(), "record 7 cannot be read");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("nonsense"), "{cause}");
    }
}
