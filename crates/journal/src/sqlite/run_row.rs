//! Rows of the table of runs, and the checksums of rows.
//!
//! SQLite verifies neither the content of its pages nor that rows are complete. So each record and message carries a
//! checksum, and so does each run, whose row also counts its records and messages.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use sha2::{Digest as _, Sha256};

use super::fault::Fault;
use crate::{Digest, Error, Lease, Owner, RunId};

/// A run, as stored.
#[derive(Debug, Clone)]
pub(super) struct RunRow {
    /// Its key in the other tables.
    pub id: i64,
    pub run: RunId,
    pub created_at_ms: i64,
    /// The number of its records.
    pub records: u64,
    /// The number of messages in its inbox.
    pub messages: u64,
    pub token: u64,
    pub owner: Option<Owner>,
}

/// The columns that [`RunRow::from_row`] reads.
const COLUMNS: &str = "id, name, created_at_ms, records, token, owner_pid, owner_started, owner_boot, owner_namespace, \
                       owner_host, checksum, messages";

impl RunRow {
    /// Finds a run and verifies its checksum.
    pub fn find(connection: &Connection, run: &RunId) -> Result<Self, Fault> {
        let mut query = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM run WHERE name = ?1"))?;
        let found = query.query_row([run.as_str()], |row| Ok(Self::from_row(row))).optional()?;
        match found {
            Some(row) => row,
            None => Err(Error::NoSuchRun { run: run.clone() }.into()),
        }
    }

    /// All runs, the newest first.
    pub fn all(connection: &Connection) -> Result<Vec<Self>, Fault> {
        let mut query = connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM run ORDER BY created_at_ms DESC, id DESC"))?;
        let rows = query.query_map([], |row| Ok(Self::from_row(row)))?;
        rows.map(|row| row?).collect()
    }

    /// Adds a new run; false if it exists.
    pub fn insert(transaction: &Transaction<'_>, run: &RunId, created_at_ms: i64) -> Result<bool, Fault> {
        let row =
            Self { id: 0, run: run.clone(), created_at_ms, records: 0, messages: 0, token: 0, owner: None };
        let insert =
            "INSERT INTO run (name, created_at_ms, records, messages, token, checksum) VALUES (?1, ?2, 0, 0, 0, ?3)
                      ON CONFLICT (name) DO NOTHING";
        let checksum = row.checksum();
        let columns = params![run.as_str(), created_at_ms, checksum.as_bytes()];
        Ok(transaction.prepare_cached(insert)?.execute(columns)? > 0)
    }

    /// Stores what changed: the number of records and the lease.
    pub fn update(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        let update =
            "UPDATE run SET records = ?2, token = ?3, owner_pid = ?4, owner_started = ?5, owner_boot = ?6,
                                     owner_namespace = ?7, owner_host = ?8, checksum = ?9, messages = ?10
                      WHERE id = ?1";
        let owner = self.owner.as_ref();
        // SQLite's integers are signed: the cast keeps the bits, and reading casts back.
        transaction.prepare_cached(update)?.execute(params![
            self.id,
            self.records.cast_signed(),
            self.token.cast_signed(),
            owner.map(|owner| owner.pid),
            owner.map(|owner| owner.started.cast_signed()),
            owner.map(|owner| &owner.boot),
            owner.map(|owner| &owner.namespace),
            owner.map(|owner| &owner.host),
            self.checksum().as_bytes(),
            self.messages.cast_signed(),
        ])?;
        Ok(())
    }

    /// The lease, if the run is held.
    pub fn lease(&self) -> Option<Lease> {
        let owner = self.owner.clone()?;
        Some(Lease { run: self.run.clone(), token: self.token, owner })
    }

    fn from_row(row: &Row<'_>) -> Result<Self, Fault> {
        let unsigned = |column: usize| row.get(column).map(i64::cast_unsigned);
        let name: String = row.get(1)?;
        let damaged =
            |name: &str| Fault::Damaged(format!("the row of run `{name}` does not match its checksum"));
        let run = RunId::try_from(name).map_err(|error| damaged(&error.text))?;
        let owner = match row.get(5)? {
            Some(pid) => {
                let (boot, namespace, host) = (row.get(7)?, row.get(8)?, row.get(9)?);
                Some(Owner { pid, started: unsigned(6)?, boot, namespace, host })
            }
            None => None,
        };
        let found = Self {
            id: row.get(0)?,
            run,
            created_at_ms: row.get(2)?,
            records: unsigned(3)?,
            messages: unsigned(11)?,
            token: unsigned(4)?,
            owner,
        };
        let checksum: Vec<u8> = row.get(10)?;
        match checksum == found.checksum().as_bytes() {
            true => Ok(found),
            false => Err(damaged(found.run.as_str())),
        }
    }

    fn checksum(&self) -> Digest {
        let mut sum = Checksum::new();
        sum.text(self.run.as_str()).number(self.created_at_ms).number(self.records.cast_signed());
        sum.number(self.messages.cast_signed()).number(self.token.cast_signed());
        if let Some(owner) = &self.owner {
            sum.number(i64::from(owner.pid)).number(owner.started.cast_signed());
            sum.text(&owner.boot).text(&owner.namespace).text(&owner.host);
        }
        sum.end()
    }
}

pub(super) fn record_checksum(run: &RunId, seq: u64, at_ms: i64, body: &[u8]) -> Digest {
    let mut sum = Checksum::new();
    sum.text(run.as_str()).number(seq.cast_signed()).number(at_ms).bytes(body);
    sum.end()
}

/// The checksum of a message. Its id is known only after it is stored.
pub(super) fn message_checksum(run: &RunId, at_ms: i64, body: &[u8]) -> Digest {
    let mut sum = Checksum::new();
    sum.text(run.as_str()).number(at_ms).bytes(body);
    sum.end()
}

/// SHA-256 of a sequence of values, texts with their lengths.
struct Checksum(Sha256);

impl Checksum {
    fn new() -> Self {
        Self(Sha256::new())
    }

    fn number(&mut self, number: i64) -> &mut Self {
        self.0.update(number.to_le_bytes());
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    fn end(self) -> Digest {
        Digest::from_bytes(self.0.finalize().into())
    }
}
