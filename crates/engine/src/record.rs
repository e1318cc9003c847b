//! The unit of the journal.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    completion::Completion, event::Event, place::TreeState, recorded_completion::RecordedCompletion,
};

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

    /// The bytes of a record, with the completion that its events follow from. Whoever reads only the events skips it.
    pub fn encode(completion: &RecordedCompletion, events: &[Event]) -> Vec<u8> {
        #[derive(Serialize)]
        struct Whole<'r> {
            v: u32,
            #[serde(skip_serializing_if = "Option::is_none")]
            completion: Option<&'r Value>,
            events: &'r [Event],
        }
        let whole = Whole { v: Record::VERSION, completion: completion.json.as_ref(), events };
        serde_json::to_vec(&whole).expect("a completion and events are plain data and can be written as JSON")
    }

    /// Parses a journal record.
    ///
    /// # Errors
    /// Returns an error if the record is damaged or of a newer format, whose events may have another meaning.
    pub fn parse(bytes: &[u8]) -> Result<Record, UnreadableRecord> {
        #[derive(Deserialize)]
        struct RecordHead {
            v: u32,
        }
        // Nearly always it is one of this format: reading its version first would read it twice.
        let read = serde_json::from_slice::<Record>(bytes);
        let found = match &read {
            Ok(record) => record.v,
            Err(_) => serde_json::from_slice::<RecordHead>(bytes)?.v,
        };
        match found > Record::VERSION {
            true => Err(UnreadableRecord::Newer { found, known: Record::VERSION }),
            false => Ok(read?),
        }
    }
}

/// A record with what its events followed from.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedDecision {
    /// What was decided about.
    pub completion: Completion,
    /// What followed.
    pub events: Vec<Event>,
}

impl RecordedDecision {
    /// Parses a journal record. `texts` looks up what its completion names by digest.
    ///
    /// # Errors
    /// As [`Record::parse`], and when there is no completion or one of its texts is missing.
    pub fn parse(
        bytes: &[u8],
        texts: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<RecordedDecision, UnreadableRecord> {
        #[derive(Deserialize)]
        struct Cause {
            #[serde(default)]
            completion: Option<Value>,
        }
        let Record { events, .. } = Record::parse(bytes)?;
        let Cause { completion } = serde_json::from_slice(bytes)?;
        Ok(RecordedDecision { completion: Completion::of_record(completion, &events, texts)?, events })
    }
}

/// The states of the working tree that a journal record names: those that its completion reports, also where no event
/// follows from them, then those of its events.
///
/// # Errors
/// As [`Record::parse`].
pub fn list_tree_states(bytes: &[u8]) -> Result<Vec<TreeState>, UnreadableRecord> {
    fn walk(json: &Value, states: &mut Vec<TreeState>) {
        match json {
            Value::Object(object) => {
                if object.get("tree").is_some_and(Value::is_string)
                    && object.contains_key("refs")
                    && let Ok(state) = serde_json::from_value::<TreeState>(json.clone())
                {
                    states.push(state);
                }
                object.values().for_each(|value| walk(value, states));
            }
            Value::Array(list) => list.iter().for_each(|value| walk(value, states)),
            _ => {}
        }
    }
    let whole: Value = serde_json::from_slice(bytes)?;
    let mut states = Vec::new();
    for part in ["completion", "events"].iter().filter_map(|part| whole.get(part)) {
        walk(part, &mut states);
    }
    Ok(states)
}

/// Why a record cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableRecord {
    /// It is not a record.
    #[error("it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    /// It does not say what its events followed from.
    #[error("it does not say what was decided about")]
    NoCompletion,
    /// The journal lacks a text.
    #[error("the text {digest} is not in the journal")]
    NoText {
        /// Its SHA-256.
        digest: String,
    },
    /// A newer program wrote it.
    #[error("it has format {found}, this program knows {known}")]
    Newer {
        /// Its format version.
        found: u32,
        /// The newest format version that this program supports.
        known: u32,
    },
}
