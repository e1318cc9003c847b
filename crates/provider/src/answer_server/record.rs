//! The file in which the server tells what happened.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that happened in the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerRecord {
    /// The agent asked for the tools: it sees `submit_answer`.
    Listed,
    /// An answer that fits.
    Answer(Value),
    /// An answer was refused, with the reason.
    Refused(String),
}

/// Appends one record as one line.
pub(super) fn append_record(path: &Path, record: &AnswerRecord) -> io::Result<()> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(&line)
}

/// Reads the records of a file as they are appended.
#[derive(Debug)]
pub(crate) struct AnswerRecords {
    path: PathBuf,
    read: usize,
}

impl AnswerRecords {
    /// The records of this file, which need not exist yet.
    pub(crate) fn new(path: PathBuf) -> AnswerRecords {
        AnswerRecords { path, read: 0 }
    }

    /// The records since the last call. A line that is being written is read later.
    pub(crate) fn read_new(&mut self) -> Vec<AnswerRecord> {
        let bytes = fs::read(&self.path).unwrap_or_default();
        let new = bytes.get(self.read..).unwrap_or_default();
        let whole = new.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.read += whole;
        let lines = new[..whole].split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}
