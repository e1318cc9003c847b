//! What the machines of a fleet decide at the same time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    thread,
};

use cuegate_journal::{Journal, Owner};
use cuegate_postgres::{
    Address, PostgresJournal,
    fleet::{FleetStore, FleetTask, HoldOutcome, HoldRequest, HoldVerdict, OfferedAccount, TAKE_OVERS_MAX},
};

use crate::{
    conformance::{record, run},
    server::fresh_address,
};

const CENT: i64 = 10_000;

fn open(address: &Address) -> (PostgresJournal, FleetStore) {
    let journal = PostgresJournal::open(address.clone(), true).unwrap();
    (journal, FleetStore::open(address.clone()).unwrap())
}

fn task(run: &str) -> FleetTask {
    FleetTask { run: run.into(), repository: "app".into(), workflow: "fix".into(), ..FleetTask::default() }
}

fn ask(store: &FleetStore, run: &str, accounts: &[OfferedAccount]) -> HoldVerdict {
    store
        .begin_hold(HoldRequest { run: run.into(), worker: "w".into(), accounts: accounts.to_vec() })
        .unwrap()
}

fn leave(store: &FleetStore, run: &str, state: &str, spent_micro: i64) {
    let is_ended = state == "completed";
    let outcome = HoldOutcome {
        run: run.into(),
        worker: "w".into(),
        state: state.into(),
        is_ended,
        spent_micro,
        ..HoldOutcome::default()
    };
    store.end_hold(outcome).unwrap();
}

fn waits(verdict: &HoldVerdict) -> &'static str {
    match verdict {
        HoldVerdict::Wait { state, .. } => state,
        HoldVerdict::Go { .. } => "goes",
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_is_submitted_once() {
    let (address, _server) = fresh_address();
    let (_, store) = open(&address);
    let keyed = |run: &str| FleetTask { key: Some("issue 7".into()), ..task(run) };
    let ids: Vec<String> = thread::scope(|scope| {
        let added: Vec<_> = (0..8)
            .map(|n| {
                scope.spawn({
                    let store = &store;
                    move || store.submit(keyed(&format!("r{n}"))).unwrap()
                })
            })
            .collect();
        added.into_iter().map(|added| added.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(store.list(1).unwrap().len(), 1);
    assert_eq!(ask(&store, "nobody", &[]), HoldVerdict::Unknown);
}

/// Machines that come together, each with a connection of its own, never spend more than a limit.
#[test]
fn a_budget_holds_whoever_asks_at_the_same_time() {
    let (address, _server) = fresh_address();
    let (_, store) = open(&address);
    store.set_limit("day", Some(100 * CENT)).unwrap();
    store.set_limit("batch:night", Some(70 * CENT)).unwrap();
    for n in 0..40 {
        let batch = (n % 2 == 0).then(|| "night".to_owned());
        store.submit(FleetTask { batch, limit_micro: Some(10 * CENT), ..task(&format!("r{n}")) }).unwrap();
    }
    store.submit(task("free")).unwrap();
    assert_eq!(
        waits(&ask(&store, "free", &[])),
        "budget",
        "a run without a limit waits while there are limits"
    );
    let spent = Arc::new(AtomicI64::new(0));
    thread::scope(|scope| {
        for worker in 0..4 {
            let (address, spent) = (address.clone(), spent.clone());
            scope.spawn(move || {
                let store = FleetStore::open(address).unwrap();
                for n in (worker..40).step_by(4) {
                    let id = format!("r{n}");
                    if waits(&ask(&store, &id, &[])) == "goes" {
                        // Asked again, as after a death, it reserves nothing more.
                        assert_eq!(waits(&ask(&store, &id, &[])), "goes");
                        for limit in store.limits().unwrap() {
                            assert!(limit.used_micro <= limit.micro, "{limit:?}");
                        }
                        let cost = 7 * CENT;
                        spent.fetch_add(cost, Ordering::SeqCst);
                        leave(&store, &id, "completed", cost);
                    }
                }
            });
        }
    });
    assert!(spent.load(Ordering::SeqCst) <= 100 * CENT);
    assert!(spent.load(Ordering::SeqCst) >= 91 * CENT, "what was not spent is given back: {spent:?}");
    store.set_limit("day", None).unwrap();
    assert_eq!(store.limits().unwrap().len(), 1);
}

#[test]
fn an_account_has_its_slots_and_is_out_for_all_until_its_reset() {
    let (address, _server) = fresh_address();
    let (journal, store) = open(&address);
    let account = |name: &str, slots| OfferedAccount { name: name.into(), slots };
    let both = [account("a", 1), account("b", 2)];
    for n in 0..5 {
        store.submit(task(&format!("r{n}"))).unwrap();
    }
    let mut taken: Vec<String> = Vec::new();
    for n in 0..3 {
        match ask(&store, &format!("r{n}"), &both) {
            HoldVerdict::Go { account: Some(name) } => taken.push(name),
            other => panic!("{other:?}"),
        }
    }
    taken.sort();
    assert_eq!(taken, ["a", "b", "b"]);
    assert_eq!(waits(&ask(&store, "r3", &both)), "account");
    // The run that used it ends at a limit that is reset in an hour.
    let hour = i64::try_from(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis(),
    )
    .unwrap()
        + 3_600_000;
    let user = (0..3)
        .find(|n| store.find(&format!("r{n}")).unwrap().unwrap().used_account.as_deref() == Some("a"))
        .unwrap();
    let outcome = HoldOutcome {
        run: format!("r{user}"),
        worker: "w".into(),
        state: "until".into(),
        until_ms: Some(hour),
        is_account_out: true,
        ..HoldOutcome::default()
    };
    store.end_hold(outcome).unwrap();
    match ask(&store, "r3", &[account("a", 1)]) {
        HoldVerdict::Wait { state: "account", until_ms: Some(until), .. } => {
            assert!((until - hour).abs() < 2_000)
        }
        other => panic!("{other:?}"),
    }
    // A holder that died keeps no slot: its lease is gone.
    journal.create(&run("r4"), 1).unwrap();
    let url = format!("postgres://cuegate@{}/postgres", address.to_string().split('/').next().unwrap());
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    client
        .batch_execute(&format!(
            "update {}.fleet_slots set taken_at = now() - interval '2 hours'",
            address.schema()
        ))
        .unwrap();
    assert_eq!(ask(&store, "r4", &both), HoldVerdict::Go { account: Some("b".into()) });
}

#[test]
fn a_run_that_kills_its_workers_is_paused() {
    let (address, _server) = fresh_address();
    let (journal, store) = open(&address);
    store.submit(task("bad")).unwrap();
    store.submit(task("good")).unwrap();
    journal.create(&run("good"), 1).unwrap();
    for round in 0..=u64::try_from(TAKE_OVERS_MAX).unwrap() + 2 {
        // A worker that dies in it, after a record.
        assert_eq!(waits(&ask(&store, "good", &[])), "goes", "round {round}");
        let lease = journal.acquire(&run("good"), &Owner::current()).unwrap();
        journal.append(&lease, round, record("a record")).unwrap();
        journal.release(&lease).unwrap();
    }
    for _ in 0..TAKE_OVERS_MAX {
        assert_eq!(waits(&ask(&store, "bad", &[])), "goes");
    }
    assert_eq!(waits(&ask(&store, "bad", &[])), "paused");
    assert!(store.is_paused("bad").unwrap() && !store.is_paused("good").unwrap());
    assert!(store.find("bad").unwrap().unwrap().why.contains("5 workers ended in it"));
    assert_eq!(store.list_wakeable().unwrap(), Vec::<String>::new());
    assert!(store.end_pause("run:bad").unwrap());
    assert_eq!(store.list_wakeable().unwrap(), ["bad"]);
    assert_eq!(waits(&ask(&store, "bad", &[])), "goes");
    // An orderly end is no death.
    leave(&store, "bad", "queued", 0);
    for _ in 0..TAKE_OVERS_MAX * 2 {
        assert_eq!(waits(&ask(&store, "bad", &[])), "goes");
        leave(&store, "bad", "queued", 0);
    }
    assert!(store.cancel("good").unwrap(), "it has begun");
    assert_eq!(store.list_unwanted().unwrap(), ["good"]);
    assert!(!store.cancel("bad").unwrap());
    assert_eq!(ask(&store, "bad", &[]), HoldVerdict::Ended { state: "cancelled".into() });
    // Cancelled while somebody begins it, who dies then.
    store.submit(task("late")).unwrap();
    assert_eq!(waits(&ask(&store, "late", &[])), "goes");
    assert!(store.cancel("late").unwrap());
    assert_eq!(ask(&store, "late", &[]), HoldVerdict::Ended { state: "cancelled".into() });
}
