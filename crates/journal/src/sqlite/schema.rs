//! The tables, and the version of their format.

use rusqlite::{Connection, Transaction};

use super::fault::Fault;

/// The newest format that this program writes. It is kept in SQLite's `user_version`.
///
/// A program reads a newer format as if it were its own, so a new format may only add.
pub(super) const VERSION: u32 = 1;

/// Tells `file(1)` and us that a database is a journal of cuegate: "Cueg" in ASCII.
const APPLICATION_ID: i32 = 0x4375_6567;

/// The script at place *n* makes format *n + 1* out of format *n*; format 0 is an empty file.
const MIGRATIONS: [&str; VERSION as usize] = [V1];

/// Bodies are blobs because they are opaque; the `sqlite3` tool prints their JSON all the same.
///
/// `owner_pid` and the columns after it are null while nobody holds the run. Records and blobs are rowid tables:
/// SQLite stores rows of several kilobytes badly in a table without one.
const V1: &str = "
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at_ms INTEGER NOT NULL,
    token INTEGER NOT NULL DEFAULT 0,
    owner_pid INTEGER,
    owner_started INTEGER,
    owner_boot TEXT,
    owner_namespace TEXT,
    owner_host TEXT
) STRICT;
CREATE TABLE record (
    run INTEGER NOT NULL REFERENCES run (id),
    seq INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    body BLOB NOT NULL,
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
    body BLOB NOT NULL
) STRICT;
CREATE INDEX message_by_run ON message (run);
";

/// What a database file is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Nothing yet.
    Empty,
    /// A journal of this version.
    Version(u32),
    /// The database of another program.
    Foreign,
}

impl Format {
    /// Reads what the file is. Needs a transaction: another process may be creating the journal meanwhile.
    pub(super) fn of(transaction: &Transaction<'_>) -> Result<Self, Fault> {
        let application: i32 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let version = version(transaction)?;
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

/// Reads the format version; 0 where there is none.
pub(super) fn version(connection: &Connection) -> Result<u32, Fault> {
    // Cached, because every write asks: a newer program may have migrated the file since it was opened.
    let mut query = connection.prepare_cached("PRAGMA user_version")?;
    let version: i32 = query.query_row([], |row| row.get(0))?;
    Ok(version.cast_unsigned())
}

/// Brings a journal of format `from` to the newest format.
pub(super) fn migrate(transaction: &Transaction<'_>, from: u32) -> Result<(), Fault> {
    for script in MIGRATIONS.iter().skip(from as usize) {
        transaction.execute_batch(script)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}
