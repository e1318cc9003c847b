//! Notes the number of records of a run in a file next to its log.
//!
//! A log cannot tell that its own end is missing: cut between two records, it is an intact shorter log. The number of
//! records in another file shows it. The file is written after the record was synced, so after any crash it shows at
//! most as many records as the log holds. Without syncs it is not written.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::file_io::io_error;
use crate::Error;

/// The file in the folder of a run.
pub(super) const COUNT_FILE: &str = "records";

/// The number of records of one run.
#[derive(Debug)]
pub(super) struct CountFile {
    path: PathBuf,
    /// Once this process has written it.
    file: Option<File>,
}

impl CountFile {
    /// The file in the folder of a run.
    pub(super) fn of(folder: &Path) -> Self {
        CountFile { path: folder.join(COUNT_FILE), file: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The noted number of records; 0 if none is noted.
    pub(super) fn get(&self) -> Result<u64, Error> {
        // Reading a FIFO would wait for a writer.
        if self.is_other() {
            return Ok(0);
        }
        let text = match fs::read(&self.path) {
            Ok(text) => String::from_utf8_lossy(&text).trim().to_owned(),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(0);
            }
            Err(source) => return Err(io_error(&self.path, "read")(source)),
        };
        // A process was killed between creating the file and writing into it, or the file is damaged. The log is
        // verified without it.
        Ok(text.parse().unwrap_or(0))
    }

    /// Notes the number of records. It has a fixed width and replaces the former one in place, so a kill leaves one or the
    /// other.
    pub(super) fn set(&mut self, records: u64) -> Result<(), Error> {
        if self.file.is_none() {
            if self.is_other() {
                return Ok(());
            }
            let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&self.path);
            self.file = Some(opened.map_err(io_error(&self.path, "write"))?);
        }
        let line = format!("{records:020}\n");
        let written = self.file.iter().try_for_each(|file| file.write_all_at(line.as_bytes(), 0));
        written.map_err(io_error(&self.path, "write"))
    }

    fn is_other(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| !found.is_file())
    }
}
