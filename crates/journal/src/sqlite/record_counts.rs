//! Notes the number of records of each run in a file next to the journal.
//!
//! A database cannot tell that its own end is missing: without its write-ahead log, or with a damaged page of it, it is
//! an intact older database. The number of records in another file shows it. The file is written after the record
//! was synced, so after any crash it shows at most as many records as the journal holds. Without syncs it is not written.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::{Error, RunId};

/// The folder next to the journal that holds one folder per run.
pub const RUNS_DIR: &str = "runs";

/// The file in the folder of a run.
const COUNT_FILE: &str = "records";

/// The files with the numbers of records of all runs in one journal.
#[derive(Debug, Clone)]
pub(super) struct RecordCounts {
    dir: PathBuf,
}

impl RecordCounts {
    /// The files next to the journal at `path`.
    pub(super) fn next_to(path: &Path) -> Self {
        Self { dir: path.parent().unwrap_or(Path::new("")).join(RUNS_DIR) }
    }

    pub(super) fn file(&self, run: &RunId) -> PathBuf {
        self.dir.join(run.as_str()).join(COUNT_FILE)
    }

    /// The noted number of records of a run; 0 if none is noted.
    pub(super) fn get(&self, run: &RunId) -> Result<u64, Error> {
        let file = self.file(run);
        // Reading a FIFO would wait for a writer.
        if fs::metadata(&file).is_ok_and(|found| !found.is_file()) {
            return Ok(0);
        }
        let text = match fs::read(&file) {
            Ok(text) => String::from_utf8_lossy(&text).trim().to_owned(),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(0);
            }
            Err(source) => return Err(Error::Io { path: file, doing: "read", source }),
        };
        // A process was killed between creating the file and writing into it, or the file is damaged. The journal is
        // verified without it.
        Ok(text.parse().unwrap_or(0))
    }

    /// Notes the number of records of a run. It has a fixed width and replaces the former one in place, so a kill leaves
    /// one or the other.
    pub(super) fn set(&self, run: &RunId, records: u64) -> Result<(), Error> {
        let file = self.file(run);
        if fs::metadata(&file).is_ok_and(|found| !found.is_file()) {
            return Ok(());
        }
        let failed = |source| Error::Io { path: file.clone(), doing: "write", source };
        let open = || OpenOptions::new().write(true).create(true).truncate(false).open(&file);
        let mut opened = match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(self.dir.join(run.as_str())).and_then(|()| open()).map_err(failed)?
            }
            opened => opened.map_err(failed)?,
        };
        opened.write_all(format!("{records:020}\n").as_bytes()).map_err(failed)
    }

    /// The runs with a noted number of records, and the number.
    pub(super) fn all(&self) -> Result<Vec<(RunId, u64)>, Error> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(source) => return Err(Error::Io { path: self.dir.clone(), doing: "read", source }),
        };
        let mut counts = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(run) = RunId::try_from(name) else { continue };
            match self.get(&run)? {
                0 => {}
                records => counts.push((run, records)),
            }
        }
        counts.sort();
        Ok(counts)
    }

    /// Fails when the journal, which is missing or empty, once held records.
    pub(super) fn refuse_lost_journal(&self, path: &Path) -> Result<(), Error> {
        let runs: Vec<RunId> = self.all()?.into_iter().map(|(run, _)| run).collect();
        match runs.is_empty() {
            true => Ok(()),
            false => Err(Error::JournalLost { path: path.to_owned(), runs, dir: self.dir.clone() }),
        }
    }

    /// Fails when the journal holds fewer records of a run than `noted`.
    pub(super) fn refuse_lost_records(
        &self,
        path: &Path,
        run: &RunId,
        found: u64,
        noted: u64,
    ) -> Result<(), Error> {
        match found < noted {
            false => Ok(()),
            true => Err(Error::RecordsLost {
                path: path.to_owned(),
                run: run.clone(),
                found,
                noted,
                note: self.file(run),
            }),
        }
    }
}
