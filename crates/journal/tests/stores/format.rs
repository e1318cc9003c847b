//! Tests of the files, and of files that other programs wrote.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::slice;

use cuegate_journal::log::{LogJournal, Options};
use cuegate_journal::{Blob, Error, Journal, NewRecord, Owner};

use crate::conformance::{dead, record, run, started};

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn reopening_keeps_everything() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    let blob = Blob::new(b"prompt".to_vec());
    let message = {
        let journal = LogJournal::open(&dir, Options::default()).unwrap();
        let lease = started(&journal);
        journal.append(&lease, 0, NewRecord { blobs: slice::from_ref(&blob), ..record("zero") }).unwrap();
        journal.release(&lease).unwrap();
        journal.acquire(&run("a"), &dead()).unwrap();
        journal.post(&run("a"), 7, b"hello").unwrap()
    };
    assert_eq!(names(&dir.join("a")), ["held", "inbox", "log", "records"]);
    let size = fs::metadata(dir.join("a/log")).unwrap().len();
    assert!(size < 8192, "a released log has no zeros at its end: {size}");

    let journal = LogJournal::open(&dir, Options::default()).unwrap();
    assert_eq!(journal.read(&run("a"), 0).unwrap()[0].body, b"zero");
    assert_eq!(journal.blob(&run("a"), &blob.digest()).unwrap().as_deref(), Some(blob.bytes()));
    assert_eq!(journal.inbox(&run("a")).unwrap()[0].id, message);
    assert_eq!(journal.holder(&run("a")).unwrap().unwrap().owner, dead());
    let lease = journal.acquire(&run("a"), &Owner::current()).unwrap();
    journal.append(&lease, 1, NewRecord { consumes: &[message], ..record("one") }).unwrap();
}

#[test]
fn files_are_private_and_paths_may_have_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("a b%20").join("c?#").join("runs");
    let journal = LogJournal::open(&dir, Options::default()).unwrap();
    let lease = started(&journal);
    journal.append(&lease, 0, record("zero")).unwrap();
    journal.post(&run("a"), 7, b"hello").unwrap();
    for file in ["log", "inbox"] {
        let mode = fs::metadata(dir.join("a").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let viewer = LogJournal::open_read_only(&dir).unwrap();
    assert_eq!(viewer.read(&run("a"), 0).unwrap().len(), 1);
}

#[test]
fn a_newer_format_is_read_and_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    let lease = {
        let journal = LogJournal::open(&dir, Options::default()).unwrap();
        let lease = started(&journal);
        journal.append(&lease, 0, record("zero")).unwrap();
        lease
    };
    // The header of format 2, as this version would seal it.
    let log = fs::OpenOptions::new().read(true).write(true).open(dir.join("a/log")).unwrap();
    let mut sector = [0; 512];
    log.read_exact_at(&mut sector, 0).unwrap();
    sector[16] = 2;
    let sum = cuegate_journal::Digest::for_bytes(&sector[..480]);
    sector[480..].copy_from_slice(sum.as_bytes());
    log.write_all_at(&sector, 0).unwrap();

    let journal = LogJournal::open(&dir, Options::default()).unwrap();
    assert_eq!(journal.read(&run("a"), 0).unwrap()[0].body, b"zero");
    let refused = [
        journal.append(&lease, 1, record("one")),
        journal.acquire(&run("a"), &Owner::current()).map(drop),
        journal.release(&lease),
        journal.post(&run("a"), 1, b"hello").map(drop),
    ];
    for (place, result) in refused.into_iter().enumerate() {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::TooNew { found: 2, supported: 1, .. }), "{place}: {error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn a_viewer_needs_a_folder_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("none").join("runs");
    let missing = LogJournal::open_read_only(&dir).unwrap_err();
    assert!(matches!(missing, Error::Missing { .. }), "{missing}");
    assert!(!folder.path().join("none").exists());

    let lease = started(&LogJournal::open(&dir, Options::default()).unwrap());
    let viewer = LogJournal::open_read_only(&dir).unwrap();
    let before = (names(&dir), names(&dir.join("a")));
    assert!(viewer.read(&run("a"), 0).unwrap().is_empty());
    let refused = [
        viewer.create(&run("b"), 1),
        viewer.append(&lease, 0, record("zero")),
        viewer.acquire(&run("a"), &Owner::current()).map(drop),
        viewer.release(&lease),
        viewer.post(&run("a"), 1, b"hello").map(drop),
    ];
    for (place, result) in refused.into_iter().enumerate() {
        assert!(matches!(result, Err(Error::ReadOnly { .. })), "{place}: {result:?}");
    }
    assert_eq!((names(&dir), names(&dir.join("a"))), before);
}

#[test]
fn a_writer_that_was_killed_before_the_header_leaves_no_run() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    fs::create_dir_all(dir.join("a")).unwrap();
    fs::write(dir.join("a/log"), "").unwrap();
    let journal = LogJournal::open(&dir, Options::default()).unwrap();
    assert!(journal.runs().unwrap().is_empty());
    assert!(matches!(journal.read(&run("a"), 0), Err(Error::NoSuchRun { .. })));
    let lease = started(&journal);
    journal.append(&lease, 0, record("zero")).unwrap();
}

#[test]
fn many_runs_stay_open_no_longer_than_needed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = LogJournal::open(folder.path(), Options::default()).unwrap();
    let leases: Vec<_> = (0..150)
        .map(|n| {
            let name = run(&format!("run-{n}"));
            journal.create(&name, n).unwrap();
            journal.acquire(&name, &Owner::current()).unwrap()
        })
        .collect();
    for seq in 0..3 {
        for lease in &leases {
            journal.append(lease, seq, record("some")).unwrap();
        }
    }
    let open = fs::read_dir("/proc/self/fd").unwrap().count();
    // Besides the lock of each.
    assert!(open < 150 + leases.len(), "{open} files are open");
    assert!(leases.iter().all(|lease| journal.read(&lease.run, 0).unwrap().len() == 3));
}
