//! Tests of several processes with one journal.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use cuegate_journal::Journal;
use cuegate_journal::log::{Durability, LogJournal, Options};

use crate::conformance::{record, run, started};
use crate::other_process::OtherProcess;

/// Starts processes of one role and releases them when all are ready.
fn together(role: &str, count: usize, path: &Path) -> Vec<OtherProcess> {
    let mut others: Vec<_> = (0..count).map(|_| OtherProcess::start(role, path)).collect();
    for other in &mut others {
        assert_eq!(other.hear().as_deref(), Some("ready"));
    }
    for other in &mut others {
        other.nod();
    }
    others
}

#[test]
fn racing_processes_append_each_sequence_number_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs");
    let journal = LogJournal::open(&path, Options::default()).unwrap();
    started(&journal);
    let mut won = Vec::new();
    for mut other in together("racer", 2, &path) {
        won.push(other.hear().unwrap().parse::<u64>().unwrap());
        other.end();
    }
    assert_eq!(won.iter().sum::<u64>(), 300, "{won:?}");
    assert_eq!(journal.read(&run("a"), 0).unwrap().len(), 300);
}

#[test]
fn racing_processes_create_one_journal() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").join("runs");
        let mut said = Vec::new();
        for mut other in together("creator", 4, &path) {
            said.push(other.hear().unwrap());
            other.end();
        }
        said.sort();
        assert_eq!(said, ["created", "exists", "exists", "exists"]);
    }
}

#[test]
fn a_viewer_follows_writers_that_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs");
    let relaxed = Options { durability: Durability::Relaxed };
    let journal = LogJournal::open(&path, relaxed).unwrap();
    let lease = started(&journal);
    journal.append(&lease, 0, record("zero")).unwrap();
    drop(journal);

    let mut viewer = OtherProcess::start("viewer", &path);
    let mut seen = || {
        viewer.nod();
        viewer.hear().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(seen(), 1);
    assert_eq!(fs::read_dir(path.join("a")).unwrap().count(), 2, "a viewer creates no file");

    // Once closed before the viewer reads, and once open while it reads.
    let mut seq = 1;
    for more in [1, 2500, 1] {
        let journal = LogJournal::open(&path, relaxed).unwrap();
        for _ in 0..more {
            journal.append(&lease, seq, record("more")).unwrap();
            seq += 1;
            if more > 1 && seq % 100 == 0 {
                assert_eq!(seen(), seq);
            }
        }
        drop(journal);
        assert_eq!(seen(), seq);
    }
    viewer.end();
}

#[test]
fn a_reader_takes_records_that_are_being_written_for_no_damage() {
    for durability in [Durability::Relaxed, Durability::Synced] {
        let folder = tempfile::tempdir().unwrap();
        let writer = LogJournal::open(folder.path(), Options { durability }).unwrap();
        let lease = started(&writer);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // More readers than processors: one that is interrupted between two looks sees records come meanwhile.
            for _ in 0..6 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !is_over.load(Ordering::Relaxed) || last == 0 {
                        // One that reads from the start, and so looks behind the end.
                        let viewer = LogJournal::open_read_only(folder.path()).unwrap();
                        let seen = viewer.read(&run("a"), 0).unwrap().len();
                        assert!(seen >= last, "{seen} records after {last}");
                        last = seen;
                    }
                });
            }
            for seq in 0..6_000 {
                let body = "some ".repeat(1 + (seq as usize * 37) % 90);
                writer.append(&lease, seq, record(&body)).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
