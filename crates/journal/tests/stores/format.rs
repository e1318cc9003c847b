//! Tests of the SQLite file format, and of files that other programs wrote.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::slice;

use cuegate_journal::sqlite::{Options, SqliteJournal};
use cuegate_journal::{Blob, Error, Journal, NewRecord, Owner};
use rusqlite::Connection;

use crate::conformance::{dead, record, run, started};

#[test]
fn reopening_keeps_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let blob = Blob::new(b"prompt".to_vec());
    let message = {
        let journal = SqliteJournal::open(&path, Options::default()).unwrap();
        let lease = started(&journal);
        journal.append(&lease, 0, NewRecord { blobs: slice::from_ref(&blob), ..record("zero") }).unwrap();
        journal.release(&lease).unwrap();
        journal.acquire(&run("a"), &dead()).unwrap();
        journal.post(&run("a"), 7, b"hello").unwrap()
    };
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "a closed journal is one file, beside `runs`"
    );

    let journal = SqliteJournal::open(&path, Options::default()).unwrap();
    assert_eq!(journal.read(&run("a"), 0).unwrap()[0].body, b"zero");
    assert_eq!(journal.blob(&blob.digest()).unwrap().as_deref(), Some(blob.bytes()));
    assert_eq!(journal.inbox(&run("a")).unwrap()[0].id, message);
    let lease = journal.acquire(&run("a"), &Owner::current()).unwrap();
    assert_eq!(lease.token, 3);
    journal.append(&lease, 1, NewRecord { consumes: &[message], ..record("one") }).unwrap();
}

#[test]
fn creates_its_folders_and_keeps_its_files_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b%20").join("c?#").join("journal.db");
    let journal = SqliteJournal::open(&path, Options::default()).unwrap();
    started(&journal);
    for suffix in ["", "-wal", "-shm"] {
        let file = format!("{}{suffix}", path.display());
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    drop(journal);
    let viewer = SqliteJournal::open_read_only(&path).unwrap();
    assert_eq!(viewer.runs().unwrap().len(), 1);
}

#[test]
fn equal_blobs_are_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path, Options::default()).unwrap();
    let lease = started(&journal);
    let blob = Blob::new(vec![7; 10_000]);
    journal.put_blob(blob.bytes()).unwrap();
    for seq in 0..3 {
        let blobs = [blob.clone(), blob.clone()];
        journal.append(&lease, seq, NewRecord { blobs: &blobs, ..record("again") }).unwrap();
    }
    let reader = Connection::open(&path).unwrap();
    let rows: i64 = reader.query_row("SELECT count(*) FROM blob", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}

#[test]
fn a_newer_format_is_read_and_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let open_before = SqliteJournal::open(&path, Options::default()).unwrap();
    let lease = started(&open_before);
    open_before.append(&lease, 0, record("zero")).unwrap();
    let newer = "PRAGMA user_version = 2; ALTER TABLE record ADD COLUMN later TEXT; CREATE TABLE more (x)";
    Connection::open(&path).unwrap().execute_batch(newer).unwrap();

    let open_after = SqliteJournal::open(&path, Options::default()).unwrap();
    for journal in [&open_before, &open_after] {
        assert_eq!(journal.read(&run("a"), 0).unwrap()[0].body, b"zero");
        assert_eq!(journal.runs().unwrap()[0].records, 1);
        let refused = [
            journal.append(&lease, 1, record("one")),
            journal.create(&run("b"), 1),
            journal.put_blob(b"blob").map(drop),
            journal.acquire(&run("a"), &Owner::current()).map(drop),
            journal.release(&lease),
            journal.post(&run("a"), 1, b"hello").map(drop),
        ];
        for result in refused {
            assert!(matches!(result, Err(Error::TooNew { found: 2, supported: 1, .. })), "{result:?}");
        }
    }
    drop((open_before, open_after));
    let viewer = SqliteJournal::open_read_only(&path).unwrap();
    assert_eq!(viewer.read(&run("a"), 0).unwrap().len(), 1);
}

#[test]
fn the_database_of_another_program_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE run (id); PRAGMA user_version = 1").unwrap();
    let before = fs::read(&path).unwrap();
    for refused in [SqliteJournal::open(&path, Options::default()), SqliteJournal::open_read_only(&path)] {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert!(error.to_string().contains("other.db"));
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_viewer_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none").join("journal.db");
    let missing = SqliteJournal::open_read_only(&path).unwrap_err();
    assert!(matches!(missing, Error::Missing { .. }), "{missing}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let lease = started(&SqliteJournal::open(&path, Options::default()).unwrap());
    let before = fs::read(&path).unwrap();
    let viewer = SqliteJournal::open_read_only(&path).unwrap();
    let refused = [
        viewer.append(&lease, 0, record("zero")),
        viewer.create(&run("b"), 1),
        viewer.put_blob(b"blob").map(drop),
        viewer.acquire(&run("a"), &Owner::current()).map(drop),
        viewer.release(&lease),
        viewer.post(&run("a"), 1, b"hello").map(drop),
    ];
    for result in refused {
        assert!(matches!(result, Err(Error::ReadOnly { .. })), "{result:?}");
    }
    assert_eq!(viewer.holder(&run("a")).unwrap(), Some(lease));
    drop(viewer);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path().join("none")).unwrap().count(), 1, "nothing was recorded");
}

#[test]
fn an_empty_file_is_a_journal_yet_to_be_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    fs::write(&path, "").unwrap();
    assert!(matches!(SqliteJournal::open_read_only(&path), Err(Error::Missing { .. })));
    started(&SqliteJournal::open(&path, Options::default()).unwrap());
}
