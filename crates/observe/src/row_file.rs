//! Keeps the row of a run that is at rest, so that a list does not read all records of all runs.

use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _};

use cuegate_journal::{RunId, log::RunVersion};
use cuegate_runner::StateDir;
use cuegate_view::RunRow;
use serde::{Deserialize, Serialize};

/// The file in the folder of a run.
const ROW_FILE: &str = "row.json";

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
        let read = |run: &RunId| read_kept_row(&home, run, RunVersion::of(&home.run(run))?);
        let keep = |run: &RunId| keep_row(&home, run, RunVersion::of(&home.run(run)).unwrap(), &row);
        assert_eq!(RunVersion::of(&home.run(&run)), None);
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
