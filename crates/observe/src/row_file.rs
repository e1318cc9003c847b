//! Keeps the row of a run that is at rest, so that a list does not read all records of all runs.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
};

use cuegate_journal::RunId;
use cuegate_runner::StateDir;
use cuegate_view::RunRow;
use serde::{Deserialize, Serialize};

/// The file in the folder of a run.
const ROW_FILE: &str = "row.json";

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
    /// That of a run now; `None` if it has no log.
    pub fn of(home: &StateDir, run: &RunId) -> Option<RunVersion> {
        let folder = home.run(run);
        let version = |file: &str| {
            let about = fs::metadata(folder.join(file)).ok()?;
            Some((about.size(), about.mtime(), about.mtime_nsec()))
        };
        let log = version("log")?;
        let [inbox, records] = ["inbox", "records"].map(|file| version(file).unwrap_or_default());
        Some(RunVersion { log, inbox, records })
    }
}

/// A row, and the files that it was made of.
#[derive(Serialize, Deserialize)]
struct KeptRow {
    version: RunVersion,
    row: RunRow,
}

/// Keeps the row of a run that no process drives. `version` is that of the files before they were read. If this fails,
/// lists read the records.
pub fn keep_row(home: &StateDir, run: &RunId, version: RunVersion, row: &RunRow) {
    let folder = home.run(run);
    let partial = folder.join(format!("{ROW_FILE}.{}", std::process::id()));
    let write = || {
        let text = serde_json::to_vec(&KeptRow { version, row: row.clone() })?;
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        file.write_all(&text)?;
        fs::rename(&partial, folder.join(ROW_FILE))
    };
    if write().is_err() {
        let _ = fs::remove_file(&partial);
    }
}

/// The kept row of a run; `None` if its files are others now.
pub(crate) fn read_kept_row(home: &StateDir, run: &RunId, version: RunVersion) -> Option<RunRow> {
    let path = home.run(run).join(ROW_FILE);
    // Reading a FIFO would wait for a writer.
    let text = fs::metadata(&path).ok().filter(fs::Metadata::is_file).and_then(|_| fs::read(&path).ok())?;
    let kept: KeptRow = serde_json::from_slice(&text).ok()?;
    (kept.version == version && kept.row.run == run.as_str()).then_some(kept.row)
}

#[cfg(test)]
mod tests {
    use cuegate_view::{Liveness, run_view};

    use super::*;

    #[test]
    fn a_row_counts_for_the_files_that_it_was_made_of() {
        let dir = tempfile::tempdir().unwrap();
        let home = StateDir::create(dir.path()).unwrap();
        let run: RunId = "abcdefgh".parse().unwrap();
        let row = RunRow::of(&run_view("abcdefgh", &[], Liveness::None));
        let read = |run: &RunId| read_kept_row(&home, run, RunVersion::of(&home, run)?);
        let keep = |run: &RunId| keep_row(&home, run, RunVersion::of(&home, run).unwrap(), &row);
        assert_eq!(RunVersion::of(&home, &run), None);
        assert_eq!(read(&run), None);
        fs::create_dir_all(home.run(&run)).unwrap();
        for (file, text) in
            [("log", "one record"), ("log", "other text"), ("inbox", "an answer"), ("records", "99")]
        {
            fs::write(home.run(&run).join(file), text).unwrap();
            assert_eq!(read(&run), None, "{text}");
            keep(&run);
            assert_eq!(read(&run).as_ref(), Some(&row));
        }
        fs::write(home.run(&run).join(ROW_FILE), "{\"row\": {").unwrap();
        assert_eq!(read(&run), None);
        keep(&run);
        let other: RunId = "other".parse().unwrap();
        fs::rename(home.run(&run), home.run(&other)).unwrap();
        assert_eq!(read(&other), None, "it is that of another run");
    }
}
