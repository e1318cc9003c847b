//! Conformance tests of journals. `conformance!(expression)` runs them for an implementation; the expression returns a
//! value with a method `journal(&self) -> &dyn Journal` that lends a fresh journal.
//!
//! To add a case: write a function here and name it in the list at the end.

use std::ops::ControlFlow;
use std::sync::Barrier;
use std::thread;

use cuegate_journal::{Blob, Digest, Error, Journal, Lease, MessageId, NewRecord, Owner, Record, RunId};

pub fn run(name: &str) -> RunId {
    name.parse().unwrap()
}

pub fn record(body: &str) -> NewRecord<'_> {
    NewRecord { at_ms: 5, body: body.as_bytes(), blobs: &[], consumes: &[] }
}

/// A dead process whose id was reused: only the first process starts at tick 1.
pub fn dead() -> Owner {
    Owner { started: 1, ..Owner::current() }
}

/// Creates run `a` and takes its lease.
pub fn started(journal: &dyn Journal) -> Lease {
    journal.create(&run("a"), 1).unwrap();
    journal.acquire(&run("a"), &Owner::current()).unwrap()
}

fn bodies(journal: &dyn Journal, name: &str, from_seq: u64) -> Vec<String> {
    let records = journal.read(&run(name), from_seq).unwrap();
    for (record, seq) in records.iter().zip(from_seq..) {
        assert_eq!(record.seq, seq);
    }
    records.into_iter().map(|record| String::from_utf8(record.body).unwrap()).collect()
}

fn messages(journal: &dyn Journal, name: &str) -> Vec<String> {
    let inbox = journal.inbox(&run(name)).unwrap();
    assert!(inbox.is_sorted_by_key(|message| message.id));
    inbox.into_iter().map(|message| String::from_utf8(message.body).unwrap()).collect()
}

pub fn reads_records_in_the_order_of_appending(journal: &dyn Journal) {
    let lease = started(journal);
    for (seq, body) in ["zero", "one", ""].into_iter().enumerate() {
        journal.append(&lease, seq as u64, NewRecord { at_ms: -3 + seq as i64, ..record(body) }).unwrap();
    }
    assert_eq!(bodies(journal, "a", 0), ["zero", "one", ""]);
    assert_eq!(bodies(journal, "a", 1), ["one", ""]);
    for past_the_end in [3, 4, u64::MAX] {
        assert!(bodies(journal, "a", past_the_end).is_empty());
    }
    let times: Vec<_> = journal.read(&run("a"), 0).unwrap().iter().map(|record| record.at_ms).collect();
    assert_eq!(times, [-3, -2, -1]);
}

pub fn keeps_any_bytes(journal: &dyn Journal) {
    let lease = started(journal);
    let body: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let blobs = [Blob::new(body.clone())];
    journal.append(&lease, 0, NewRecord { body: &body, blobs: &blobs, ..record("") }).unwrap();
    assert_eq!(journal.read(&run("a"), 0).unwrap()[0].body, body);
    assert_eq!(journal.blob(&run("a"), &blobs[0].digest()).unwrap(), Some(body));
}

pub fn hands_records_out_until_it_is_enough(journal: &dyn Journal) {
    let lease = started(journal);
    let blob = Blob::new(vec![b'x'; 100_000]);
    for seq in 0..20 {
        let body = seq.to_string().repeat(20_000);
        let blobs = std::slice::from_ref(&blob);
        journal.append(&lease, seq, NewRecord { blobs, ..record(&body) }).unwrap();
    }
    for enough in [1, 7, 20] {
        let mut seen = Vec::new();
        let each = &mut |record: Record| {
            seen.push(record.seq);
            // It may read the journal, and write to it.
            assert!(journal.blob(&run("a"), &blob.digest()).unwrap().is_some());
            journal.post(&run("a"), 1, b"seen").unwrap();
            if seen.len() == enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        journal.read_each(&run("a"), 20 - enough as u64, each).unwrap();
        assert_eq!(seen, (20 - enough as u64..20).collect::<Vec<_>>());
    }
}

pub fn creates_a_run_once(journal: &dyn Journal) {
    let lease = started(journal);
    journal.append(&lease, 0, record("zero")).unwrap();
    let refused = journal.create(&run("a"), 2).unwrap_err();
    assert!(matches!(refused, Error::Exists { run: found } if found == run("a")));
    assert_eq!(bodies(journal, "a", 0), ["zero"]);
    assert_eq!(journal.runs().unwrap()[0].created_at_ms, 1);
}

pub fn refuses_an_append_at_another_sequence_number(journal: &dyn Journal) {
    let lease = started(journal);
    journal.append(&lease, 0, record("zero")).unwrap();
    for place in [0, 2, u64::MAX] {
        let refused = journal.append(&lease, place, record("other")).unwrap_err();
        assert!(
            matches!(refused, Error::Conflict { expected, found: 1, .. } if expected == place),
            "{refused}"
        );
    }
    assert_eq!(bodies(journal, "a", 0), ["zero"]);
    journal.append(&lease, 1, record("one")).unwrap();
}

pub fn keeps_runs_apart(journal: &dyn Journal) {
    let a = started(journal);
    journal.create(&run("b"), 1).unwrap();
    let b = journal.acquire(&run("b"), &Owner::current()).unwrap();
    journal.append(&a, 0, record("a0")).unwrap();
    journal.append(&b, 0, record("b0")).unwrap();
    journal.append(&a, 1, record("a1")).unwrap();
    let message = journal.post(&run("b"), 1, b"for b").unwrap();
    let refused = journal.append(&a, 2, NewRecord { consumes: &[message], ..record("a2") }).unwrap_err();
    assert!(matches!(refused, Error::NoSuchMessage { id, .. } if id == message));
    assert_eq!(bodies(journal, "a", 0), ["a0", "a1"]);
    assert_eq!(bodies(journal, "b", 0), ["b0"]);
    assert_eq!((messages(journal, "a").len(), messages(journal, "b").len()), (0, 1));
}

pub fn a_former_lease_cannot_append_after_a_takeover(journal: &dyn Journal) {
    journal.create(&run("a"), 1).unwrap();
    let old = journal.acquire(&run("a"), &dead()).unwrap();
    journal.append(&old, 0, record("zero")).unwrap();
    let new = journal.acquire(&run("a"), &Owner::current()).unwrap();
    assert!(new.token > old.token);
    let refused = journal.append(&old, 1, record("late")).unwrap_err();
    assert!(matches!(refused, Error::LeaseLost { token, .. } if token == old.token));
    let forged = Lease { token: new.token + 1, ..new.clone() };
    assert!(matches!(journal.append(&forged, 1, record("forged")), Err(Error::LeaseLost { .. })));
    journal.append(&new, 1, record("one")).unwrap();
    assert_eq!(bodies(journal, "a", 0), ["zero", "one"]);
}

pub fn a_released_lease_cannot_append(journal: &dyn Journal) {
    let lease = started(journal);
    journal.release(&lease).unwrap();
    assert!(matches!(journal.append(&lease, 0, record("late")), Err(Error::LeaseLost { .. })));
    assert!(bodies(journal, "a", 0).is_empty());
}

pub fn a_living_owner_keeps_its_lease(journal: &dyn Journal) {
    let lease = started(journal);
    for taker in [Owner::current(), dead()] {
        let refused = journal.acquire(&run("a"), &taker).unwrap_err();
        assert!(matches!(&refused, Error::Held { lease: held } if **held == lease), "{refused}");
    }
    journal.append(&lease, 0, record("zero")).unwrap();
}

pub fn an_owner_on_another_machine_keeps_its_lease(journal: &dyn Journal) {
    journal.create(&run("a"), 1).unwrap();
    let elsewhere = Owner { boot: "other".into(), host: "elsewhere".into(), ..dead() };
    let lease = journal.acquire(&run("a"), &elsewhere).unwrap();
    let Err(Error::Held { lease: held }) = journal.acquire(&run("a"), &Owner::current()) else {
        panic!("the lease was stolen");
    };
    assert_eq!(*held, lease);
    // The user may release the lease, knowing that the other machine has ended.
    journal.release(&held).unwrap();
    assert!(journal.acquire(&run("a"), &Owner::current()).unwrap().token > lease.token);
}

pub fn keeps_every_part_of_an_owner(journal: &dyn Journal) {
    journal.create(&run("a"), 1).unwrap();
    assert_eq!(journal.holder(&run("a")).unwrap(), None);
    let owner = Owner {
        pid: u32::MAX,
        started: u64::MAX,
        boot: "boot".into(),
        namespace: "space".into(),
        host: "höst".into(),
        seen: None,
    };
    let lease = journal.acquire(&run("a"), &owner).unwrap();
    assert_eq!(lease.owner, owner);
    assert_eq!(journal.holder(&run("a")).unwrap(), Some(lease));
}

pub fn releasing_a_lease_twice_keeps_a_newer_one(journal: &dyn Journal) {
    let first = started(journal);
    journal.release(&first).unwrap();
    journal.release(&first).unwrap();
    assert_eq!(journal.holder(&run("a")).unwrap(), None);
    let second = journal.acquire(&run("a"), &Owner::current()).unwrap();
    assert!(second.token > first.token);
    journal.release(&first).unwrap();
    assert_eq!(journal.holder(&run("a")).unwrap(), Some(second.clone()));
    journal.append(&second, 0, record("zero")).unwrap();
}

pub fn an_inbox_is_read_oldest_first(journal: &dyn Journal) {
    journal.create(&run("a"), 1).unwrap();
    for (body, at_ms) in [("first", 30), ("second", 20), ("third", 10)] {
        journal.post(&run("a"), at_ms, body.as_bytes()).unwrap();
    }
    assert_eq!(messages(journal, "a"), ["first", "second", "third"]);
    assert_eq!(journal.inbox(&run("a")).unwrap()[0].at_ms, 30);
}

pub fn a_record_consumes_its_messages(journal: &dyn Journal) {
    let lease = started(journal);
    let ids = ["first", "second", "third"].map(|body| journal.post(&run("a"), 1, body.as_bytes()).unwrap());
    journal.append(&lease, 0, NewRecord { consumes: &[ids[2], ids[0]], ..record("zero") }).unwrap();
    assert_eq!(messages(journal, "a"), ["second"]);
    let later = journal.post(&run("a"), 1, b"fourth").unwrap();
    assert!(later > ids[2], "a consumed id is not used again");
}

pub fn a_refused_record_consumes_nothing(journal: &dyn Journal) {
    let lease = started(journal);
    let id = journal.post(&run("a"), 1, b"stays").unwrap();
    let consuming = NewRecord { consumes: &[id], ..record("zero") };
    assert!(matches!(journal.append(&lease, 1, consuming), Err(Error::Conflict { .. })));
    let old = Lease { token: lease.token - 1, ..lease.clone() };
    assert!(matches!(journal.append(&old, 0, consuming), Err(Error::LeaseLost { .. })));
    let refused = journal.append(&lease, 0, NewRecord { consumes: &[id, id], ..record("zero") }).unwrap_err();
    assert!(matches!(refused, Error::NoSuchMessage { id: twice, .. } if twice == id));
    assert_eq!(messages(journal, "a"), ["stays"]);
    assert!(bodies(journal, "a", 0).is_empty());
    journal.append(&lease, 0, consuming).unwrap();
    assert!(messages(journal, "a").is_empty());
}

pub fn a_message_is_consumed_once(journal: &dyn Journal) {
    let lease = started(journal);
    let id = journal.post(&run("a"), 1, b"once").unwrap();
    let consuming = NewRecord { consumes: &[id], ..record("zero") };
    journal.append(&lease, 0, consuming).unwrap();
    assert!(matches!(journal.append(&lease, 1, consuming), Err(Error::NoSuchMessage { .. })));
    let never_posted = NewRecord { consumes: &[MessageId(u64::MAX)], ..record("one") };
    assert!(matches!(journal.append(&lease, 1, never_posted), Err(Error::NoSuchMessage { .. })));
    assert_eq!(bodies(journal, "a", 0), ["zero"]);
}

pub fn keeps_the_blobs_of_a_record(journal: &dyn Journal) {
    let lease = started(journal);
    let blobs = [Blob::new(b"prompt".to_vec()), Blob::new(Vec::new()), Blob::new(b"prompt".to_vec())];
    journal.append(&lease, 0, NewRecord { blobs: &blobs, ..record("zero") }).unwrap();
    for blob in &blobs {
        assert_eq!(journal.blob(&run("a"), &blob.digest()).unwrap().as_deref(), Some(blob.bytes()));
    }
}

pub fn equal_blobs_have_one_digest(journal: &dyn Journal) {
    let lease = started(journal);
    let blobs = [Blob::new(b"same".to_vec())];
    for seq in 0..2 {
        journal.append(&lease, seq, NewRecord { blobs: &blobs, ..record("again") }).unwrap();
    }
    let digest = Digest::for_bytes(b"same");
    assert_eq!(journal.blob(&run("a"), &digest).unwrap().as_deref(), Some(&b"same"[..]));
    assert_eq!(journal.blob(&run("a"), &Digest::for_bytes(b"other")).unwrap(), None);
}

pub fn copies_the_first_records_of_another_run(journal: &dyn Journal) {
    let lease = started(journal);
    let text = |text: &str| [Blob::new(text.as_bytes().to_vec())];
    let message = journal.post(&run("a"), 2, b"hello").unwrap();
    journal.append(&lease, 0, NewRecord { blobs: &text("one"), ..record("zero") }).unwrap();
    journal.append(&lease, 1, NewRecord { consumes: &[message], ..record("one") }).unwrap();
    journal.append(&lease, 2, NewRecord { blobs: &text("late"), ..record("two") }).unwrap();
    journal.create(&run("b"), 7).unwrap();
    let fork = journal.acquire(&run("b"), &Owner::current()).unwrap();
    // The other run is at work.
    journal
        .append_copy(&fork, &run("a"), 2, NewRecord { blobs: &text("own"), at_ms: 9, ..record("forked") })
        .unwrap();
    assert_eq!(bodies(journal, "b", 0), ["zero", "one", "forked"]);
    assert_eq!(journal.read(&run("b"), 1).unwrap()[0].at_ms, 5);
    for stored in ["one", "own"] {
        let digest = Digest::for_bytes(stored.as_bytes());
        assert_eq!(journal.blob(&run("b"), &digest).unwrap().as_deref(), Some(stored.as_bytes()));
    }
    journal.append(&fork, 3, NewRecord { blobs: &text("own"), ..record("goes on") }).unwrap();
    journal.append(&lease, 3, record("three")).unwrap();
    assert_eq!(bodies(journal, "b", 2), ["forked", "goes on"]);
    assert_eq!(bodies(journal, "a", 2), ["two", "three"]);
    assert!(messages(journal, "b").is_empty());
    journal.post(&run("b"), 3, b"own").unwrap();
    assert_eq!(messages(journal, "b"), ["own"]);
    journal.release(&fork).unwrap();
    assert_eq!(bodies(journal, "b", 3), ["goes on"]);
}

pub fn copies_nothing_where_a_copy_is_refused(journal: &dyn Journal) {
    let lease = started(journal);
    journal.append(&lease, 0, record("zero")).unwrap();
    journal.create(&run("b"), 7).unwrap();
    let fork = journal.acquire(&run("b"), &Owner::current()).unwrap();
    let copy =
        |lease: &Lease, from: &str, count| journal.append_copy(lease, &run(from), count, record("forked"));
    assert!(matches!(copy(&fork, "a", 2), Err(Error::Conflict { expected: 2, found: 1, .. })));
    assert!(matches!(copy(&lease, "a", 1), Err(Error::Conflict { expected: 0, found: 1, .. })));
    assert!(matches!(copy(&fork, "c", 1), Err(Error::NoSuchRun { .. })));
    journal.release(&fork).unwrap();
    assert!(matches!(copy(&fork, "a", 1), Err(Error::LeaseLost { .. })));
    assert!(bodies(journal, "b", 0).is_empty());
    assert!(!journal.runs().unwrap().iter().find(|known| known.run == run("b")).unwrap().has_records);
}

pub fn removes_a_run_for_ever(journal: &dyn Journal) {
    let lease = started(journal);
    journal.append(&lease, 0, record("zero")).unwrap();
    journal.create(&run("b"), 2).unwrap();
    journal.remove(&lease).unwrap();
    assert!(matches!(journal.read(&run("a"), 0), Err(Error::NoSuchRun { .. })));
    assert!(matches!(journal.append(&lease, 1, record("one")), Err(Error::NoSuchRun { .. })));
    assert_eq!(journal.runs().unwrap().len(), 1);
    let again = started(journal);
    assert!(bodies(journal, "a", 0).is_empty(), "another run of this name has nothing of it");
    journal.release(&again).unwrap();
    assert!(matches!(journal.remove(&again), Err(Error::LeaseLost { .. })));
}

pub fn a_missing_run_is_named_in_the_error(journal: &dyn Journal) {
    started(journal);
    let ghost = run("ghost");
    let lease = Lease { run: ghost.clone(), token: 1, owner: Owner::current() };
    let results = [
        journal.append(&lease, 0, record("zero")),
        journal.read(&ghost, 0).map(drop),
        journal.acquire(&ghost, &Owner::current()).map(drop),
        journal.release(&lease),
        journal.holder(&ghost).map(drop),
        journal.post(&ghost, 1, b"hello").map(drop),
        journal.inbox(&ghost).map(drop),
        journal.blob(&ghost, &Digest::for_bytes(b"")).map(drop),
    ];
    for (place, result) in results.into_iter().enumerate() {
        assert!(matches!(&result, Err(Error::NoSuchRun { run }) if *run == ghost), "{place}: {result:?}");
    }
}

pub fn lists_the_newest_run_first(journal: &dyn Journal) {
    assert!(journal.runs().unwrap().is_empty());
    for (name, at_ms) in [("m", 10), ("z", 30), ("c", 20), ("b", 20)] {
        journal.create(&run(name), at_ms).unwrap();
    }
    let lease = journal.acquire(&run("c"), &dead()).unwrap();
    journal.append(&lease, 0, record("zero")).unwrap();
    journal.append(&lease, 1, record("one")).unwrap();
    let runs = journal.runs().unwrap();
    let found: Vec<_> =
        runs.iter().map(|run| (run.run.as_str(), run.created_at_ms, run.has_records)).collect();
    assert_eq!(found, [("z", 30, false), ("b", 20, false), ("c", 20, true), ("m", 10, false)]);
    assert_eq!(
        runs.iter().map(|run| run.owner.clone()).collect::<Vec<_>>(),
        [None, None, Some(dead()), None]
    );
}

pub fn one_of_several_racing_appends_wins(journal: &dyn Journal) {
    const THREADS: usize = 4;
    let lease = started(journal);
    for seq in 0..25 {
        let barrier = Barrier::new(THREADS);
        let race = || {
            barrier.wait();
            match journal.append(&lease, seq, record("racing")) {
                Ok(()) => 1,
                Err(Error::Conflict { found, .. }) if found == seq + 1 => 0,
                Err(error) => panic!("{error}"),
            }
        };
        let wins: usize = thread::scope(|scope| {
            let racers: Vec<_> = (0..THREADS).map(|_| scope.spawn(race)).collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).sum()
        });
        assert_eq!(wins, 1);
    }
    assert_eq!(bodies(journal, "a", 0).len(), 25);
}

pub fn one_of_several_racing_owners_gets_the_lease(journal: &dyn Journal) {
    const THREADS: usize = 4;
    journal.create(&run("a"), 1).unwrap();
    journal.acquire(&run("a"), &dead()).unwrap();
    let barrier = Barrier::new(THREADS);
    let race = || {
        barrier.wait();
        journal.acquire(&run("a"), &Owner::current()).is_ok()
    };
    let wins = thread::scope(|scope| {
        let racers: Vec<_> = (0..THREADS).map(|_| scope.spawn(race)).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!(wins, 1);
}

macro_rules! conformance {
    ($journal:expr) => {
        crate::conformance::conformance! { $journal =>
            reads_records_in_the_order_of_appending
            keeps_any_bytes
            hands_records_out_until_it_is_enough
            creates_a_run_once
            refuses_an_append_at_another_sequence_number
            keeps_runs_apart
            a_former_lease_cannot_append_after_a_takeover
            a_released_lease_cannot_append
            a_living_owner_keeps_its_lease
            an_owner_on_another_machine_keeps_its_lease
            keeps_every_part_of_an_owner
            releasing_a_lease_twice_keeps_a_newer_one
            an_inbox_is_read_oldest_first
            a_record_consumes_its_messages
            a_refused_record_consumes_nothing
            a_message_is_consumed_once
            keeps_the_blobs_of_a_record
            equal_blobs_have_one_digest
            copies_the_first_records_of_another_run
            copies_nothing_where_a_copy_is_refused
            removes_a_run_for_ever
            a_missing_run_is_named_in_the_error
            lists_the_newest_run_first
            one_of_several_racing_appends_wins
            one_of_several_racing_owners_gets_the_lease
        }
    };
    ($journal:expr => $($case:ident)+) => {
        $(
            #[test]
            fn $case() {
                let lender = $journal;
                crate::conformance::$case(lender.journal());
            }
        )+
    };
}
pub(crate) use conformance;
