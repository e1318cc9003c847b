//! What a server far away does: it ends, answers get lost, and others come.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use cuegate_journal::{Blob, Error, Journal, Liveness, NewRecord, Owner, RunId};
use cuegate_postgres::{Address, PostgresJournal};
use cuegate_testkit::postgres::PostgresServer;

use crate::{
    conformance::{record, run, started},
    server::fresh_address,
};

fn open(address: &Address) -> PostgresJournal {
    PostgresJournal::open(address.clone(), true).unwrap()
}

/// A process on a machine that cannot be seen from here.
fn elsewhere() -> Owner {
    Owner { boot: "other".into(), host: "elsewhere".into(), ..Owner::current() }
}

/// `HOST:PORT` of an address.
fn place_of(address: &Address) -> String {
    address.to_string().split('/').next().unwrap().to_owned()
}

/// Runs a statement beside the journal.
fn execute(address: &Address, sql: &str) {
    let url = format!("postgres://cuegate@{}/postgres", place_of(address));
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    client.batch_execute(&format!("set search_path to {}; {sql}", address.schema())).unwrap();
}

fn until(what: &str, holds: &dyn Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_lease_that_ran_out_is_taken_by_another_machine_and_its_holder_is_fenced() {
    let (address, _server) = fresh_address();
    let (here, there) = (open(&address), open(&address));
    here.create(&run("a"), 1).unwrap();
    let old = here.acquire(&run("a"), &elsewhere()).unwrap();
    here.append(&old, 0, record("zero")).unwrap();
    assert!(matches!(there.acquire(&run("a"), &Owner::current()), Err(Error::Held { .. })));
    assert_eq!(there.holder(&run("a")).unwrap().unwrap().owner.liveness(), Liveness::Unknown);
    // The other machine renews no more; time passes by the clock of the database.
    let time_passes = || execute(&address, "update runs set renewed_at = renewed_at - interval '46 s'");
    time_passes();
    assert_eq!(there.holder(&run("a")).unwrap(), None);
    assert_eq!(there.runs().unwrap()[0].owner, None);
    let new = there.acquire(&run("a"), &Owner::current()).unwrap();
    assert!(new.token > old.token);
    assert!(matches!(here.append(&old, 1, record("late")), Err(Error::LeaseLost { .. })));
    here.release(&old).unwrap();
    there.append(&new, 1, record("one")).unwrap();
    assert_eq!(here.read(&run("a"), 0).unwrap().len(), 2);
    // A lease that ran out while nobody took it still writes.
    time_passes();
    there.append(&new, 2, record("two")).unwrap();
}

#[test]
fn machines_hear_of_messages_and_records_of_each_other() {
    let (address, _server) = fresh_address();
    let (here, there) = (open(&address), open(&address));
    let lease = started(&here);
    let first = here.changes();
    until("it listens", &|| here.changes() > first);
    assert!(here.inbox(&run("a")).unwrap().is_empty());
    let id = there.post(&run("a"), 1, b"answer").unwrap();
    until("the message is heard", &|| !here.inbox(&run("a")).unwrap().is_empty());
    assert!(!there.inbox(&run("a")).unwrap().is_empty());
    here.append(&lease, 0, NewRecord { consumes: &[id], ..record("zero") }).unwrap();
    assert!(here.inbox(&run("a")).unwrap().is_empty(), "what was just consumed is not read from memory");
    until("the other one hears it", &|| there.inbox(&run("a")).unwrap().is_empty());
}

/// Hands bytes on, and drops the answers of the server when it is told to.
struct Wire {
    port: u16,
    drop_answers: Arc<AtomicUsize>,
}

impl Wire {
    fn to(server: &str) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, server) = (listener.local_addr().unwrap().port(), server.to_owned());
        let drop_answers = Arc::new(AtomicUsize::new(0));
        let told = Arc::clone(&drop_answers);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(upstream) = TcpStream::connect(&server) else { continue };
                let (mut from_client, mut to_server) =
                    (client.try_clone().unwrap(), upstream.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from_client, &mut to_server);
                    let _ = to_server.shutdown(Shutdown::Both);
                });
                let (mut from_server, mut to_client, told) = (upstream, client, Arc::clone(&told));
                thread::spawn(move || {
                    let mut bytes = [0; 16_384];
                    while let Ok(count @ 1..) = from_server.read(&mut bytes) {
                        // The server has done what was asked, and its answer is dropped.
                        let mut is_lost = false;
                        let _ = told.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                            is_lost = left == 1;
                            left.checked_sub(1)
                        });
                        if is_lost || to_client.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = to_client.shutdown(Shutdown::Both);
                    let _ = from_server.shutdown(Shutdown::Both);
                });
            }
        });
        Wire { port, drop_answers }
    }
}

/// Each operation is done once, whichever of its answers is lost. A statement has two: to its text, and to its values.
#[test]
fn an_answer_that_is_lost_is_read_back() {
    let (address, _server) = fresh_address();
    let direct = open(&address);
    let wire = Wire::to(&place_of(&address));
    let url = format!("postgres://cuegate@127.0.0.1:{}/postgres?sslmode=disable", wire.port);
    let far = open(&Address::parse(&url, None).unwrap().with_schema(address.schema()));
    for lost in 1..=2 {
        let name: RunId = format!("r{lost}").parse().unwrap();
        let lose = || wire.drop_answers.store(lost, Ordering::Release);
        let all_well =
            || assert_eq!(wire.drop_answers.swap(0, Ordering::AcqRel), 0, "{lost}: no answer was lost");
        lose();
        far.create(&name, 1).unwrap();
        all_well();
        lose();
        let lease = far.acquire(&name, &Owner::current()).unwrap();
        all_well();
        lose();
        let id = far.post(&name, 1, b"hello").unwrap();
        all_well();
        assert_eq!(direct.inbox(&name).unwrap().len(), 1, "{lost}: it is posted once");
        let blobs = [Blob::new(b"text".to_vec())];
        lose();
        far.append(&lease, 0, NewRecord { consumes: &[id], blobs: &blobs, ..record("zero") }).unwrap();
        all_well();
        assert_eq!(direct.read(&name, 0).unwrap().len(), 1, "{lost}");
        far.append(&lease, 1, record("one")).unwrap();
        let copy: RunId = format!("c{lost}").parse().unwrap();
        far.create(&copy, 1).unwrap();
        let fork = far.acquire(&copy, &Owner::current()).unwrap();
        lose();
        far.append_copy(&fork, &name, 1, record("forked")).unwrap();
        all_well();
        assert_eq!(direct.read(&copy, 0).unwrap().len(), 2, "{lost}");
        lose();
        far.remove(&fork).unwrap();
        all_well();
        lose();
        far.release(&lease).unwrap();
        all_well();
        assert_eq!(direct.holder(&name).unwrap(), None);
    }
}

#[test]
fn a_server_that_was_killed_loses_no_record() {
    let mut server = PostgresServer::start().unwrap();
    let address = Address::parse(&server.url(), None).unwrap();
    let journal = open(&address);
    let lease = started(&journal);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for seq in 0..60 {
                journal.append(&lease, seq, record(&seq.to_string())).unwrap();
                thread::sleep(Duration::from_millis(15));
            }
        });
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(200));
            server.kill();
            thread::sleep(Duration::from_millis(300));
            server.restart().unwrap();
        }
        writer.join().unwrap();
    });
    let records = journal.read(&run("a"), 0).unwrap();
    assert_eq!(records.len(), 60);
    assert!(records.iter().all(|record| record.body == record.seq.to_string().as_bytes()));
}

#[test]
fn a_connection_is_encrypted_and_the_certificate_verified() {
    let mut server = PostgresServer::start().unwrap();
    let certificate = server.encrypt().unwrap();
    let url = format!("{}?sslmode=require", server.url());
    let journal = open(&Address::parse(&url, Some(&certificate)).unwrap());
    let lease = started(&journal);
    journal.append(&lease, 0, record("zero")).unwrap();
    let plain = Address::parse(&format!("{}?sslmode=disable", server.url()), None).unwrap();
    assert_eq!(open(&plain).read(&run("a"), 0).unwrap().len(), 1, "the server itself would take another one");
    for mode in ["require", "prefer"] {
        let unknown = Address::parse(&format!("{}?sslmode={mode}", server.url()), None).unwrap();
        let before = Instant::now();
        let error = PostgresJournal::open(unknown, true).unwrap_err();
        assert!(
            error.to_string().contains("certificate") && before.elapsed() < Duration::from_secs(5),
            "{error}"
        );
    }
}

#[test]
fn a_wrong_address_is_said_at_once() {
    let wrong = Address::parse("postgres://cuegate@127.0.0.1:1/none", None).unwrap();
    let before = Instant::now();
    let error = PostgresJournal::open(wrong, true).unwrap_err();
    assert!(
        matches!(&error, Error::Database { address, .. } if address == "127.0.0.1:1/none, schema cuegate"),
        "{error}"
    );
    assert!(error.to_string().contains("Connection refused") && error.hint().is_some(), "{error}");
    assert!(before.elapsed() < Duration::from_secs(5));
    let (address, _server) = fresh_address();
    assert!(matches!(PostgresJournal::open_read_only(address.clone()), Err(Error::Missing { .. })));
    let journal = open(&address);
    let reader = PostgresJournal::open_read_only(address.clone()).unwrap();
    assert!(matches!(reader.create(&run("a"), 1), Err(Error::ReadOnly { .. })));
    drop(journal);
    execute(&address, "update format set version = 9");
    assert!(matches!(PostgresJournal::open(address.clone(), true), Err(Error::TooNew { found: 9, .. })));
    assert!(PostgresJournal::open_read_only(address).unwrap().runs().unwrap().is_empty());
}
