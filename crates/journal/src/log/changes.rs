//! Shows that a journal or a run changed, without opening it.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::count_file::COUNT_FILE;
use super::inbox::INBOX_FILE;
use super::run_log::LOG_FILE;

/// The file that grows by a byte with each change. Runs cannot have this name.
const CHANGES_FILE: &str = ".changes";

/// Changes whenever a run was created, written, taken or released, or got a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalVersion(Option<(u64, u64)>);

impl JournalVersion {
    /// That of a journal in no folder, by a number that is another one after each change.
    pub fn shared(changes: u64) -> JournalVersion {
        JournalVersion(Some((0, changes)))
    }

    /// The version of the journal whose runs are in `dir`.
    pub fn of(dir: &Path) -> JournalVersion {
        JournalVersion(fs::metadata(dir.join(CHANGES_FILE)).ok().map(|about| (about.ino(), about.size())))
    }
}

/// What the files of a run look like from outside. It is another one after each record and message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunVersion {
    log: FileVersion,
    inbox: FileVersion,
    records: FileVersion,
}

/// The size of a file, and when it was last written: in seconds since 1970, and the nanoseconds beyond. Zeros without it.
type FileVersion = (u64, i64, i64);

impl RunVersion {
    /// That of a run in no folder: the numbers of its records, leases and messages.
    pub fn shared(records: u64, leases: u64, messages: u64) -> RunVersion {
        let version = |number: u64| (number, 0, 0);
        RunVersion { log: version(records), inbox: version(messages), records: version(leases) }
    }

    /// That of the run in a folder now; `None` if it has no log.
    pub fn of(folder: &Path) -> Option<RunVersion> {
        let version = |file: &str| {
            let about = fs::metadata(folder.join(file)).ok()?;
            Some((about.size(), about.mtime(), about.mtime_nsec()))
        };
        let log = version(LOG_FILE)?;
        let [inbox, records] = [INBOX_FILE, COUNT_FILE].map(|file| version(file).unwrap_or_default());
        Some(RunVersion { log, inbox, records })
    }
}

/// Tells other processes about changes. A size says it, as times are too coarse for two records in a row.
#[derive(Debug, Default)]
pub(super) struct ChangeBell {
    file: OnceLock<Option<File>>,
}

impl ChangeBell {
    /// Notes a change. Views are late if this fails, and nothing else.
    pub(super) fn ring(&self, dir: &Path) {
        let open = || {
            let path = dir.join(CHANGES_FILE);
            // A FIFO in its place would wait for a reader.
            let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
            OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path).ok()
        };
        if let Some(mut file) = self.file.get_or_init(open).as_ref() {
            let _ = file.write_all(b".");
        }
    }
}
