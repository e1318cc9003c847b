//! A writer that is killed at any moment loses no confirmed record and leaves no partial one.

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use cuegate_journal::log::{LogJournal, Options};
use cuegate_journal::{Digest, Error, Journal};

use crate::conformance::run;
use crate::other_process::OtherProcess;

const KILLS: u64 = 30;

#[test]
fn a_killed_writer_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs");
    let random = RandomState::new();
    let mut kept = 0;
    for kill in 0..KILLS {
        let mut writer = OtherProcess::start("writer", &path);
        // Kill the writer at different stages, from before it opens the journal to after some dozens of records; the
        // scheduler adds randomness.
        let wait_for = random.hash_one(kill) % 40;
        let heard =
            (0..wait_for).map(|_| writer.hear().expect("the writer goes on until it is killed")).last();
        let last = writer.kill().pop().or(heard);
        let promised = last.map_or(kept, |seq| seq.parse::<u64>().unwrap() + 1);

        let before = names(folder.path());
        if let Some(journal) = view(&path) {
            kept = whole(&journal);
            assert!(kept >= promised, "kill {kill}: {kept} records are kept, {promised} were promised");
        }
        assert_eq!(names(folder.path()), before, "a viewer creates and removes nothing");
        let journal = LogJournal::open(&path, Options::default()).unwrap();
        if kept > 0 {
            assert_eq!(whole(&journal), kept);
        }
    }
    assert!(kept > KILLS, "the writers came to nothing");
}

/// Opens the journal of the killed writer; `None` when it was killed before creating one.
fn view(path: &Path) -> Option<LogJournal> {
    match LogJournal::open_read_only(path) {
        Err(Error::Missing { .. }) => None,
        opened => {
            let journal = opened.unwrap();
            (!journal.runs().unwrap().is_empty()).then_some(journal)
        }
    }
}

/// Counts the records of run `a`. Checks that the blob of each exists and that its message is consumed.
fn whole(journal: &LogJournal) -> u64 {
    let records = journal.read(&run("a"), 0).unwrap();
    let waiting: HashSet<_> =
        journal.inbox(&run("a")).unwrap().iter().map(|message| message.id.to_string()).collect();
    for (record, seq) in records.iter().zip(0..) {
        assert_eq!(record.seq, seq);
        let body = str::from_utf8(&record.body).unwrap();
        let (digest, message) = body.split_once(' ').unwrap();
        assert!(
            journal.blob(&run("a"), &digest.parse::<Digest>().unwrap()).unwrap().is_some(),
            "blob of record {seq}"
        );
        assert!(!waiting.contains(message), "message {message} of record {seq}");
    }
    records.len() as u64
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
