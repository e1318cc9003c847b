//! The lock of a run tells whether its holder lives where process ids say nothing.

use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

use cuegate_journal::log::{LogJournal, Options};
use cuegate_journal::{Error, Journal, Liveness, Owner};
use rustix::fs::{FlockOperation, flock};

use crate::conformance::run;

/// The owner of the lease as another process sees it.
fn seen(folder: &Path) -> Liveness {
    let journal = LogJournal::open(folder, Options::default()).expect("the journal opens");
    journal.holder(&run("a")).expect("the lease is read").expect("it is held").owner.liveness()
}

/// A run that `owner` holds.
fn held_by(folder: &Path, owner: &Owner) -> LogJournal {
    let journal = LogJournal::open(folder, Options::default()).expect("the journal opens");
    journal.create(&run("a"), 1).expect("the run is made");
    journal.acquire(&run("a"), owner).expect("it is free");
    journal
}

fn in_another_container() -> Owner {
    Owner { namespace: "pid:[1]".into(), pid: 1, ..Owner::current() }
}

#[test]
fn the_holder_of_a_run_keeps_its_file_locked() {
    let dir = tempfile::tempdir().unwrap();
    let journal = held_by(dir.path(), &Owner::current());
    let file = File::open(dir.path().join("a/held")).unwrap();
    assert!(flock(&file, FlockOperation::NonBlockingLockShared).is_err());
    let lease = journal.holder(&run("a")).unwrap().unwrap();
    journal.release(&lease).unwrap();
    flock(&file, FlockOperation::NonBlockingLockShared).unwrap();
    // Whoever looks does not keep anybody from taking it.
    drop(file);
    journal.acquire(&run("a"), &Owner::current()).unwrap();
}

#[test]
fn the_holder_in_another_container_lives_as_long_as_its_lock() {
    let dir = tempfile::tempdir().unwrap();
    let journal = held_by(dir.path(), &in_another_container());
    // An older program held no lock.
    assert_eq!(seen(dir.path()), Liveness::Unknown);
    let file = File::create(dir.path().join("a/held")).unwrap();
    flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(seen(dir.path()), Liveness::Alive);
    assert_eq!(journal.runs().unwrap()[0].owner.as_ref().unwrap().liveness(), Liveness::Alive);
    let refused = journal.acquire(&run("a"), &Owner::current()).unwrap_err();
    assert!(matches!(refused, Error::Held { .. }), "{refused}");
    drop(file);
    assert_eq!(seen(dir.path()), Liveness::Dead);
    journal.acquire(&run("a"), &Owner::current()).unwrap();
}

#[test]
fn the_holder_on_another_machine_lives_as_long_as_it_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Owner { boot: "other".into(), host: "elsewhere".into(), ..Owner::current() };
    let _journal = held_by(dir.path(), &owner);
    let file = File::create(dir.path().join("a/held")).unwrap();
    assert_eq!(seen(dir.path()), Liveness::Unknown);
    let before = SystemTime::now() - Duration::from_secs(90);
    file.set_times(FileTimes::new().set_modified(before)).unwrap();
    assert_eq!(seen(dir.path()), Liveness::Dead);
    // Reading alone makes no file, and so cannot tell the time of a server.
    let reader = LogJournal::open_read_only(dir.path()).unwrap();
    assert_eq!(reader.holder(&run("a")).unwrap().unwrap().owner.liveness(), Liveness::Unknown);
    // A lock that this machine sees says that it lives, whatever the time.
    flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(seen(dir.path()), Liveness::Alive);
}
