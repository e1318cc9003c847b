//! Hears of changes that any process makes.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use postgres::fallible_iterator::FallibleIterator as _;

use crate::{address::Address, journal::channel_of, schema::quote_name};

/// How often the thread looks whether anybody is left to tell.
const PAUSE: Duration = Duration::from_secs(1);

/// A connection of its own, on which the server tells of changes; it is made when somebody asks first.
#[derive(Debug)]
pub(crate) struct Listener {
    address: Address,
    heard: OnceLock<Arc<Heard>>,
}

#[derive(Debug, Default)]
struct Heard {
    changes: AtomicU64,
    is_listening: AtomicBool,
}

impl Listener {
    pub(crate) fn new(address: Address) -> Listener {
        Listener { address, heard: OnceLock::new() }
    }

    /// The number of changes; it grows too when the connection was lost, as changes may be missed then.
    pub(crate) fn changes(&self) -> u64 {
        self.start().changes.load(Ordering::Acquire)
    }

    /// The number of changes, if none can be missed now.
    pub(crate) fn heard(&self) -> Option<u64> {
        let heard = self.start();
        let changes = heard.changes.load(Ordering::Acquire);
        heard.is_listening.load(Ordering::Acquire).then_some(changes)
    }

    fn start(&self) -> &Heard {
        self.heard.get_or_init(|| {
            let heard = Arc::new(Heard::default());
            let (address, told) = (self.address.clone(), Arc::downgrade(&heard));
            thread::spawn(move || {
                while told.strong_count() > 0 {
                    if let Err(error) = listen_for_changes(&address, &told) {
                        tracing::debug!(%error, "postgres: not listening");
                    }
                    if let Some(heard) = told.upgrade() {
                        heard.is_listening.store(false, Ordering::Release);
                        heard.changes.fetch_add(1, Ordering::AcqRel);
                    }
                    thread::sleep(PAUSE);
                }
            });
            heard
        })
    }
}

/// Counts the notifications of the server until the journal is dropped or the connection is lost.
fn listen_for_changes(address: &Address, told: &Weak<Heard>) -> Result<(), postgres::Error> {
    let mut client = address.config.connect(address.connector())?;
    client.batch_execute(&format!("listen {}", quote_name(&channel_of(address))))?;
    let mut is_first = true;
    while let Some(heard) = told.upgrade() {
        if is_first {
            // What happened before is not told.
            heard.changes.fetch_add(1, Ordering::AcqRel);
            heard.is_listening.store(true, Ordering::Release);
            is_first = false;
        }
        drop(heard);
        let mut notifications = client.notifications();
        let mut iterator = notifications.timeout_iter(PAUSE);
        while iterator.next()?.is_some() {
            match told.upgrade() {
                Some(heard) => heard.changes.fetch_add(1, Ordering::AcqRel),
                None => return Ok(()),
            };
        }
        drop(iterator);
        drop(notifications);
        if client.is_closed() {
            return Ok(());
        }
    }
    Ok(())
}
