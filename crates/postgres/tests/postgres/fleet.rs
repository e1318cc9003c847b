//! What the machines of a fleet decide at the same time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use cuegate_journal::{Error, Journal, Owner};
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

/// Numbers that look random and are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// A run of the crowd as one of its workers drives it: it dies, sleeps too long, or ends.
fn drive_one(
    (journal, store): (&PostgresJournal, &FleetStore),
    id: &str,
    worker: u32,
    random: &mut Random,
) -> Option<i64> {
    let accounts =
        [OfferedAccount { name: "a".into(), slots: 7 }, OfferedAccount { name: "b".into(), slots: 5 }];
    let name = format!("w{worker}");
    let far = Owner { pid: worker, boot: name.clone(), host: name.clone(), ..Owner::current() };
    match journal.acquire(&run(id), &far) {
        Ok(lease) => journal.release(&lease).unwrap(),
        Err(Error::Held { .. }) => return None,
        Err(Error::NoSuchRun { .. }) => {
            let _ = journal.create(&run(id), 1);
        }
        Err(error) => panic!("{error}"),
    }
    let request = HoldRequest { run: id.into(), worker: name.clone(), accounts: accounts.to_vec() };
    let HoldVerdict::Go { .. } = store.begin_hold(request).unwrap() else { return None };
    // Another worker may come between: then its lease decides.
    let Ok(lease) = journal.acquire(&run(id), &far) else { return None };
    let begun = u64::try_from(journal.read(&run(id), 0).unwrap().len()).unwrap();
    for seq in begun..3 {
        match random.below(24) {
            // It dies, and nobody hears of it.
            0 => return None,
            // It stands still for longer than its lease.
            1 => thread::sleep(Duration::from_millis(1_500)),
            _ => thread::sleep(Duration::from_millis(random.below(8))),
        }
        match journal.append(&lease, seq, record("a record")) {
            Ok(()) => {}
            Err(Error::LeaseLost { .. } | Error::Conflict { .. }) => return None,
            Err(error) => panic!("{error}"),
        }
    }
    let spent_micro = i64::try_from(random.below(10)).unwrap() * CENT;
    let outcome = HoldOutcome {
        run: id.into(),
        worker: name,
        state: "completed".into(),
        is_ended: true,
        spent_micro,
        ..HoldOutcome::default()
    };
    store.end_hold(outcome).unwrap();
    journal.release(&lease).unwrap();
    Some(spent_micro)
}

/// Fifty workers, which nobody can see from elsewhere, and a thousand runs: they die and stand still all the time.
#[test]
fn a_crowd_of_workers_that_die_keeps_limits_and_leases() {
    let (address, _server) = fresh_address();
    let seed = std::env::var("CUEGATE_FLEET_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    let (_, store) = open(&address);
    let url = format!("postgres://cuegate@{}/postgres", address.to_string().split('/').next().unwrap());
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    client
        .batch_execute(&format!("set search_path to {}; update format set lease_s = 1", address.schema()))
        .unwrap();
    let most = 800 * CENT;
    store.set_limit("day", Some(most)).unwrap();
    let ids: Vec<String> = (0..1_000).map(|n| format!("r{n}")).collect();
    for id in &ids {
        store.submit(FleetTask { limit_micro: Some(10 * CENT), ..task(id) }).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    let taken_over = thread::scope(|scope| {
        for group in 0..10 {
            let (address, ids) = (address.clone(), &ids);
            scope.spawn(move || {
                // Five workers share a connection: a server has not endlessly many.
                let here = open(&address);
                thread::scope(|scope| {
                    for worker in group * 5..group * 5 + 5 {
                        let here = &here;
                        scope.spawn(move || {
                            let mut random = Random(seed * 1_000 + u64::from(worker));
                            while Instant::now() < deadline {
                                let id = &ids[usize::try_from(random.below(1_000)).unwrap()];
                                let _ = drive_one((&here.0, &here.1), id, worker, &mut random);
                            }
                        });
                    }
                });
            });
        }
        let mut worst = 0;
        while Instant::now() < deadline {
            for limit in store.limits().unwrap() {
                assert!(limit.used_micro <= limit.micro, "{limit:?}");
            }
            let over = "select account, count(*) from fleet_slots group by account";
            for row in client.query(over, &[]).unwrap() {
                let (account, count): (String, i64) = (row.get(0), row.get(1));
                assert!(count <= if account == "a" { 7 } else { 5 }, "{account} has {count} runs");
                worst = worst.max(count);
            }
            thread::sleep(Duration::from_millis(20));
        }
        assert!(worst >= 5, "nobody used the accounts at the same time");
        client.query_one("select count(*) from runs where token > 3", &[]).unwrap().get::<_, i64>(0)
    });
    // No record was written under an older right than the one before it, and none is missing.
    let wrong = client
        .query_one(
            "select count(*) from records a join records b on a.run = b.run and b.seq = a.seq + 1 where b.token < a.token",
            &[],
        )
        .unwrap();
    assert_eq!(wrong.get::<_, i64>(0), 0);
    let counted = client
        .query_one(
            "select count(*) filter (where ended_at is not null),
                 count(*) filter (where ended_at is not null and (select count(*) from records r where r.run = f.run) <> 3),
                 coalesce(sum(spent_micro), 0)::bigint from fleet_runs f",
            &[],
        )
        .unwrap();
    let (ended, short, spent): (i64, i64, i64) = (counted.get(0), counted.get(1), counted.get(2));
    println!("{ended} runs ended, {taken_over} were taken over, ${:.2} spent", spent as f64 / 1e6);
    assert!(ended > 50 && short == 0 && spent <= most, "{ended} ended, {short} too early, {spent} spent");
    assert!(taken_over > 20, "too little went wrong");
}
