//! The tables, and the version of their format.

use rusqlite::{Connection, Transaction};

use super::fault::Fault;

/// The newest format that this program writes. It is stored in SQLite's `user_version`.
///
/// A program reads a newer format as if it were its own, so a new format may only add.
pub(super) const VERSION: u32 = 1;

/// The application id of a cuegate journal, for `file(1)` and for us: "Cueg" in ASCII.
const APPLICATION_ID: i32 = 0x4375_6567;

/// The script at index *n* migrates format *n* to *n + 1*; format 0 is an empty file.
const MIGRATIONS: [&str; VERSION as usize] = [V1];

/// Bodies are blobs because they are opaque; the `sqlite3` tool still prints their JSON.
///
/// `owner_pid` and the columns after it are null while the run is free. Records and blobs are rowid tables, because
/// SQLite stores rows of several kilobytes inefficiently in tables without rowid.
const V1: &str = "
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at_ms INTEGER NOT NULL,
    records INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    token INTEGER NOT NULL,
    owner_pid INTEGER,
    owner_started INTEGER,
    owner_boot TEXT,
    owner_namespace TEXT,
    owner_host TEXT,
    checksum BLOB NOT NULL
) STRICT;
CREATE TABLE record (
    run INTEGER NOT NULL REFERENCES run (id),
    seq INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;
CREATE TABLE blob (
    digest BLOB NOT NULL PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE message (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES run (id),
    at_ms INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum BLOB NOT NULL
) STRICT;
CREATE INDEX message_by_run ON message (run);
";

/// The kind of a database file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// An empty database.
    Empty,
    /// A journal of this version.
    Version(u32),
    /// The database of another program.
    Foreign,
}

impl Format {
    /// Reads the kind of the file. Requires a transaction: another process may be creating the journal.
    pub(super) fn of(transaction: &Transaction<'_>) -> Result<Self, Fault> {
        let application: i32 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let version = read_format_version(transaction)?;
        if application == APPLICATION_ID {
            return match version {
                0 => Err(Fault::Damaged("it has no format version".to_owned())),
                _ => Ok(Self::Version(version)),
            };
        }
        let objects: i64 =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok(if application == 0 && version == 0 && objects == 0 { Self::Empty } else { Self::Foreign })
    }
}

/// Reads the format version; 0 if there is none.
pub(super) fn read_format_version(connection: &Connection) -> Result<u32, Fault> {
    // Every write checks this, because a newer program may have migrated the file since it was opened. So the statement
    // is cached.
    let mut query = connection.prepare_cached("PRAGMA user_version")?;
    let version: i32 = query.query_row([], |row| row.get(0))?;
    Ok(version.cast_unsigned())
}

/// Migrates a journal of format `from` to the newest format.
pub(super) fn run_migrations(transaction: &Transaction<'_>, from: u32) -> Result<(), Fault> {
    for script in MIGRATIONS.iter().skip(from as usize) {
        transaction.execute_batch(script)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}
