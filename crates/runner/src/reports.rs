//! The reports of a run as files. They are derived from its records and rewritten when they differ.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use cuegate_engine::{ReportFile, Reports};
use cuegate_journal::{Journal, RunId};

use crate::{
    error::{Error, io_error_at as failed},
    prompt_text::read_stored_text,
};

/// Name of the file that is written first and then renamed, so that no reader sees a partial report.
const PARTIAL: &str = ".cuegate-partial";

/// Writes the reports that are missing or differ below the folder of a run. A failure does not stop the other reports.
///
/// # Errors
/// The first failure: the journal lacks a report, a file cannot be written, or a link leads out of the folder.
pub(crate) fn write_report_files(
    journal: &dyn Journal,
    run: &RunId,
    folder: &Path,
    reports: &Reports,
) -> Result<(), Error> {
    reports.files().iter().map(|report| keep_one(journal, run, folder, report)).fold(Ok(()), Result::and)
}

fn keep_one(journal: &dyn Journal, run: &RunId, folder: &Path, report: &ReportFile<'_>) -> Result<(), Error> {
    let file = folder.join(&report.path);
    let metadata = fs::symlink_metadata(&file).ok().filter(fs::Metadata::is_file);
    let content = read_stored_text(journal, run, &report.version.content)?;
    let same_length = metadata.is_some_and(|metadata| metadata.len() == content.len() as u64);
    if same_length && fs::read(&file).is_ok_and(|there| there == content.as_bytes()) {
        return Ok(());
    }
    let folder = folder_of(folder, &file)?;
    let name = file.file_name().unwrap_or_default();
    let partial = folder.join(PARTIAL);
    // Agents can write here: replace a link of that name instead of following it.
    let _ = fs::remove_file(&partial);
    fs::write(&partial, content).map_err(failed("write", &partial))?;
    fs::rename(&partial, folder.join(name)).map_err(failed("write", &file))
}

/// Creates the folder of a file. Agents can write near it and may have replaced it by a link.
fn folder_of(run: &Path, file: &Path) -> Result<PathBuf, Error> {
    let folder = file.parent().unwrap_or(run);
    fs::create_dir_all(folder).map_err(failed("create", folder))?;
    let real = |path: &Path| fs::canonicalize(path).map_err(failed("open", path));
    let (top, folder) = (real(run)?, real(folder)?);
    if !folder.starts_with(&top) {
        let source = io::Error::other("a link leads out of the folder of the run");
        return Err(Error::Io { doing: "write into", path: file.to_owned(), source });
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use cuegate_engine::{ReportVersion, Reports};
    use cuegate_flow::model::BlobRef;
    use cuegate_journal::{Blob, Journal, NewRecord, Owner, memory::MemoryJournal};

    use super::write_report_files;

    fn version(text: &str, seq: u64) -> ReportVersion {
        ReportVersion {
            step: "plan".into(),
            visit: seq as u32,
            content: BlobRef::for_bytes(text.as_bytes()),
            order: (seq, 0),
        }
    }

    fn journal(texts: &[&str]) -> MemoryJournal {
        let journal = MemoryJournal::default();
        let run = "r1".parse().unwrap();
        journal.create(&run, 0).unwrap();
        let lease = journal.acquire(&run, &Owner::current()).unwrap();
        let blobs: Vec<Blob> = texts.iter().map(|text| Blob::new(text.as_bytes().to_vec())).collect();
        journal.append(&lease, 0, NewRecord { at_ms: 0, body: b"{}", blobs: &blobs, consumes: &[] }).unwrap();
        journal
    }

    #[test]
    fn the_newest_version_has_the_plain_name_and_older_ones_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let journal = journal(&["one", "two", "deep"]);
        let mut reports = Reports::default();
        reports.write(&"a.md".into(), version("one", 1));
        write_report_files(&journal, &"r1".parse().unwrap(), folder.path(), &reports).unwrap();
        reports.write(&"a.md".into(), version("two", 2));
        reports.write(&"b/c.md".into(), version("deep", 3));
        write_report_files(&journal, &"r1".parse().unwrap(), folder.path(), &reports).unwrap();
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
        assert_eq!(read("reports/a.md"), "two");
        assert_eq!(read("report-versions/1/a.md"), "one");
        assert_eq!(read("reports/b/c.md"), "deep");
        // Changed and lost files are written again.
        fs::write(folder.path().join("reports/a.md"), "bad").unwrap();
        fs::remove_file(folder.path().join("reports/b/c.md")).unwrap();
        write_report_files(&journal, &"r1".parse().unwrap(), folder.path(), &reports).unwrap();
        assert_eq!((read("reports/a.md"), read("reports/b/c.md")), ("two".into(), "deep".into()));
        assert_eq!(fs::read_dir(folder.path().join("reports")).unwrap().count(), 2);
    }

    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let journal = journal(&["one"]);
        let mut reports = Reports::default();
        reports.write(&"a.md".into(), version("one", 1));
        fs::create_dir(folder.path().join("reports")).unwrap();
        fs::write(outside.path().join("kept"), "mine").unwrap();
        symlink(outside.path().join("kept"), folder.path().join("reports/a.md")).unwrap();
        write_report_files(&journal, &"r1".parse().unwrap(), folder.path(), &reports).unwrap();
        assert_eq!(fs::read_to_string(outside.path().join("kept")).unwrap(), "mine");
        fs::remove_dir_all(folder.path().join("reports")).unwrap();
        symlink(outside.path(), folder.path().join("reports")).unwrap();
        assert!(write_report_files(&journal, &"r1".parse().unwrap(), folder.path(), &reports).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
    #[test]
    fn a_failed_report_does_not_stop_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let journal = journal(&["one", "two"]);
        let mut reports = Reports::default();
        reports.write(&"a/b.md".into(), version("one", 1));
        reports.write(&"c.md".into(), version("two", 2));
        fs::create_dir(folder.path().join("reports")).unwrap();
        fs::write(folder.path().join("reports/a"), "in the way").unwrap();
        assert!(write_report_files(&journal, &"r1".parse().unwrap(), folder.path(), &reports).is_err());
        assert_eq!(fs::read_to_string(folder.path().join("reports/c.md")).unwrap(), "two");
    }
}
