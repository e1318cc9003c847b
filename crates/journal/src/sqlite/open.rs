//! Opens a journal for writing and creates a missing one.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::fault::Fault;
use super::files;
use super::record_counts::RecordCounts;
use super::schema::{self, Format};
use crate::Error;

/// How long an operation waits for other processes, which hold the lock for a few milliseconds per append.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Pages that SQLite keeps in memory, in KiB (negative: its way of saying "not a number of pages"). Reading a run once
/// and appending needs few; the whole program should stay below 20 MiB.
const CACHE_SIZE: i32 = -1024;

/// The number of cached statements: all statements of this crate.
const STATEMENTS_MAX: usize = 32;

/// The number of log pages after which SQLite writes the log back, which waits for the disk twice. With the default of
/// 1,000 this took half of the time of an append without other syncs; 4,000 pages are 16 MiB.
const CHECKPOINT_PAGES: u32 = 4_000;
/// The size limit of the write-ahead log after a checkpoint, in bytes: 1000 pages, SQLite's default between
/// checkpoints.
const LOG_SIZE_MAX: i64 = 4 << 20;

/// Options for opening a journal for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The crashes that a finished operation survives.
    pub durability: Durability,
}

/// The crashes that a finished operation survives. The file stays consistent in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power failure: each operation waits for the disk.
    #[default]
    Synced,
    /// A crash of the program. After a power failure the last operations may be missing.
    Relaxed,
}

/// Opens the journal at `path`. Creates it and its folders if missing.
pub(super) fn open_writer(path: &Path, counts: &RecordCounts, options: Options) -> Result<Connection, Error> {
    if !path.exists() {
        counts.refuse_lost_journal(path)?;
    }
    files::create_journal_file(path)?;
    files::refuse_cut(&files::resolve_links(path)?)?;
    let doing = "open it";
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)
        .map_err(|error| Fault::from(error).into_error(path, doing))?;
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match prepare_database(&mut connection, path, counts, options) {
            // Two processes that create a journal may conflict at the change to WAL, where SQLite does not wait.
            Err(fault) if fault.is_busy() && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5))
            }
            Err(fault) => return Err(fault.into_error(path, doing)),
            Ok(()) => return Ok(connection),
        }
    }
}

/// Sets the options common to readers and writers.
pub(super) fn configure_connection(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.pragma_update(None, "cache_size", CACHE_SIZE)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "memory")
}

fn prepare_database(
    connection: &mut Connection,
    path: &Path,
    counts: &RecordCounts,
    options: Options,
) -> Result<(), Fault> {
    configure_connection(connection)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Check the format first: neither the database of another program nor a newer journal may be changed.
    let format = Format::of(&connection.transaction()?)?;
    match format {
        Format::Foreign => return Err(Error::Foreign { path: path.to_owned() }.into()),
        Format::Version(version) if version > schema::VERSION => return Ok(()),
        Format::Empty => counts.refuse_lost_journal(path)?,
        Format::Version(_) => {}
    }
    connection.pragma_update(None, "page_size", files::PAGE_SIZE.cast_signed())?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        let source =
            format!("the file system does not support a write-ahead log (journal mode `{mode}`)").into();
        return Err(Error::Store { path: path.to_owned(), doing: "open it", source }.into());
    }
    connection.pragma_update(None, "journal_size_limit", LOG_SIZE_MAX)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    let synced = options.durability == Durability::Synced;
    connection.pragma_update(None, "synchronous", if synced { "full" } else { "normal" })?;
    // On macOS a plain fsync leaves the data in the disk's cache; elsewhere this has no effect.
    connection.pragma_update(None, "fullfsync", synced)?;
    match format {
        Format::Version(schema::VERSION) => Ok(()),
        _ => migrate_if_older(connection),
    }
}

fn migrate_if_older(connection: &mut Connection) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Check again, now that no other process can interfere.
    let from = match Format::of(&transaction)? {
        Format::Version(version) => version,
        Format::Empty | Format::Foreign => 0,
    };
    if from < schema::VERSION {
        schema::run_migrations(&transaction, from)?;
    }
    Ok(transaction.commit()?)
}
