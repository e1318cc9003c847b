//! The server of the tests: the one of `cargo xtask test`, else one of their own.

use std::sync::atomic::{AtomicU32, Ordering};

use cuegate_journal::Journal;
use cuegate_postgres::{Address, PostgresJournal};
use cuegate_testkit::postgres::PostgresServer;

/// Where the server of all tests is.
const SHARED: &str = "CUEGATE_TEST_POSTGRES";

/// An address with a schema of its own. A server of the test lives until `Lender` or the test ends it.
pub fn fresh_address() -> (Address, Option<PostgresServer>) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (url, own) = match std::env::var(SHARED) {
        Ok(url) if !url.is_empty() => (url, None),
        _ => {
            let server = PostgresServer::start().unwrap();
            (server.url(), Some(server))
        }
    };
    let schema = format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    (Address::parse(&url, None).unwrap().with_schema(&schema), own)
}

/// A fresh journal.
pub struct Lender {
    journal: PostgresJournal,
    _server: Option<PostgresServer>,
}

impl Lender {
    pub fn new() -> Lender {
        let (address, server) = fresh_address();
        Lender { journal: PostgresJournal::open(address, true).unwrap(), _server: server }
    }

    pub fn journal(&self) -> &dyn Journal {
        &self.journal
    }
}
