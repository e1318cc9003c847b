//! Damaged files are refused with their path, without a panic, and stay unchanged.

use std::fs;
use std::path::Path;

use cuegate_journal::sqlite::{Options, SqliteJournal};
use cuegate_journal::{Error, Journal};
use rusqlite::Connection;

use crate::conformance::{record, run, started};

/// A closed journal of twenty records, each longer than a page.
fn written(path: &Path) {
    let journal = SqliteJournal::open(path, Options::default()).unwrap();
    let lease = started(&journal);
    for seq in 0..20 {
        journal.append(&lease, seq, record(&"long ".repeat(1000))).unwrap();
    }
    journal.put_blob(b"prompt").unwrap();
}

fn refused_as_damaged(path: &Path) {
    for opened in [SqliteJournal::open(path, Options::default()), SqliteJournal::open_read_only(path)] {
        let error = opened.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("journal.db` is damaged: "), "{error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn garbage_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    for garbage in [vec![b'x'; 10], b"{\"seq\": 0}\n".repeat(1000), vec![0; 4096], vec![0xFF; 8192]] {
        fs::write(&path, &garbage).unwrap();
        refused_as_damaged(&path);
        assert_eq!(fs::read(&path).unwrap(), garbage);
    }
}

#[test]
fn a_truncated_file_is_damaged_wherever_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    written(&path);
    let whole = fs::read(&path).unwrap();
    let pages = (4096..whole.len()).step_by(4096);
    for cut in [1, 16, 99, 100, 512, 4095, 5000, whole.len() - 1].into_iter().chain(pages) {
        fs::write(&path, &whole[..cut]).unwrap();
        refused_as_damaged(&path);
    }
}

#[test]
fn the_log_of_an_emptied_file_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (open, path) = (folder.path().join("open.db"), folder.path().join("journal.db"));
    let journal = SqliteJournal::open(&open, Options::default()).unwrap();
    started(&journal);
    let log = fs::read(folder.path().join("open.db-wal")).unwrap();
    fs::write(&path, "").unwrap();
    fs::write(folder.path().join("journal.db-wal"), &log).unwrap();
    refused_as_damaged(&path);
    assert_eq!(fs::read(folder.path().join("journal.db-wal")).unwrap(), log);
}

#[test]
fn overwritten_pages_are_detected_when_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    written(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0xFF);
    fs::write(&path, &bytes).unwrap();
    let error = SqliteJournal::open_read_only(&path).unwrap().read(&run("a"), 0).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn a_blob_with_another_content_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    written(&path);
    Connection::open(&path).unwrap().execute("UPDATE blob SET body = x'00'", []).unwrap();
    let journal = SqliteJournal::open(&path, Options::default()).unwrap();
    let error = journal.blob(&cuegate_journal::Digest::for_bytes(b"prompt")).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn a_missing_record_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    written(&path);
    Connection::open(&path).unwrap().execute("DELETE FROM record WHERE seq = 7", []).unwrap();
    let journal = SqliteJournal::open(&path, Options::default()).unwrap();
    let error = journal.read(&run("a"), 5).unwrap_err();
    assert!(error.to_string().ends_with("is damaged: record 7 of run `a` is missing"), "{error}");
    assert_eq!(journal.read(&run("a"), 8).unwrap().len(), 12);
}
