//! File formats shared by the runner and the shim.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

use super::spool::Exit;

/// Version of all files in a command folder. A spool of another version counts as incomplete.
pub(super) const VERSION: u32 = 1;

/// `spec.json`: the command that the shim starts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Spec {
    pub version: u32,
    /// Identifies this start; the child's environment carries it, see [`super::kill::MARK`].
    pub start: String,
    /// The arguments that make our binary a shim, for its second stage.
    pub shim_args: Vec<Word>,
    pub program: Word,
    pub args: Vec<Word>,
    pub cwd: Word,
    pub timeout_ms: Option<u64>,
    pub output_max: u64,
    pub keeps_end: bool,
}

/// `exit.json`: how the command ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EndRecord {
    pub version: u32,
    pub start: String,
    pub exit: ExitRecord,
    pub timed_out: bool,
    pub capped: bool,
    pub cut: bool,
    pub left: u32,
    pub elapsed_ms: u64,
    pub out_bytes: u64,
    pub err_bytes: u64,
}

/// `group.json`: the processes to kill when a shim hangs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Group {
    pub version: u32,
    pub shim: ProcessIdentity,
    /// The child, leader of the process group of the same number.
    pub leader: ProcessIdentity,
}

/// A process id with the start time that makes it unique within one boot.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProcessIdentity {
    pub pid: i32,
    pub started: Option<String>,
}

/// `refused`, and part of `exit.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExitRecord {
    Code(i32),
    Signal(i32),
    NotFound(String),
    NotStarted(String),
}

impl From<ExitRecord> for Exit {
    fn from(record: ExitRecord) -> Exit {
        match record {
            ExitRecord::Code(code) => Exit::Code(code),
            ExitRecord::Signal(signal) => Exit::Signal(signal),
            ExitRecord::NotFound(why) => Exit::NotFound(why),
            ExitRecord::NotStarted(why) => Exit::NotStarted(why),
        }
    }
}

/// A path or argument: text if it is valid UTF-8, to keep the file readable, else bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&OsStr> for Word {
    fn from(word: &OsStr) -> Word {
        match word.to_str() {
            Some(text) => Word::Text(text.to_owned()),
            None => Word::Bytes(word.as_bytes().to_owned()),
        }
    }
}

impl From<Word> for OsString {
    fn from(word: Word) -> OsString {
        match word {
            Word::Text(text) => text.into(),
            Word::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_utf8_survives_the_file() {
        for bytes in [&b"plain"[..], b"", b"\xff\xfe", "ünï\n".as_bytes()] {
            let word = OsStr::from_bytes(bytes);
            let json = serde_json::to_string(&Word::from(word)).unwrap();
            assert_eq!(OsString::from(serde_json::from_str::<Word>(&json).unwrap()), word, "{json}");
        }
    }
}
