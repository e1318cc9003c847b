//! The operations of a journal, as SQL.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::fault::Fault;
use super::open::{self, Options};
use super::schema;
use super::viewer::Viewer;
use crate::{
    Digest, Error, Journal, Lease, Liveness, Message, MessageId, NewRecord, Owner, Record, RunId, RunSummary,
};

/// Stores records in one SQLite file.
///
/// Threads share one `SqliteJournal`; processes open the same file. A process that writes a journal also reads it
/// through the same `SqliteJournal`: [`open_read_only`](Self::open_read_only) is for other processes, because in POSIX
/// closing a second handle of a file drops the locks that the process holds on it.
#[derive(Debug)]
pub struct SqliteJournal {
    path: PathBuf,
    link: Mutex<Link>,
}

#[derive(Debug)]
enum Link {
    Writer(Connection),
    Viewer(Viewer),
}

impl SqliteJournal {
    /// Opens the journal at `path` for reading and writing. Creates a missing one with its folders; only the user can
    /// read it (mode 0600).
    ///
    /// # Errors
    /// [`Error::Damaged`] when the file is not a database or is inconsistent, [`Error::Foreign`] when it is the
    /// database of another program; [`Error::Io`], [`Error::Busy`], [`Error::Store`]. A journal of a newer format
    /// opens, but writing to it fails with [`Error::TooNew`].
    pub fn open(path: impl Into<PathBuf>, options: Options) -> Result<Self, Error> {
        let path = path.into();
        let link = Mutex::new(Link::Writer(open::writer(&path, options)?));
        Ok(Self { path, link })
    }

    /// Opens the journal at `path` for reading, also while another process writes it. Changes no file, except that
    /// SQLite restores the index (`-shm`) of a write-ahead log that was copied without it.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no journal; else as [`open`](Self::open). Writing fails with
    /// [`Error::ReadOnly`].
    pub fn open_read_only(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let link = Mutex::new(Link::Viewer(Viewer::open(&path)?));
        Ok(Self { path, link })
    }

    /// Returns the path that the journal was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn read_with<T>(
        &self,
        doing: &'static str,
        query: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let answer = match &mut *self.lock() {
            Link::Writer(connection) => query(connection),
            Link::Viewer(viewer) => viewer.read(query),
        };
        answer.map_err(|fault| fault.into_error(&self.path, doing))
    }

    /// Runs `step` as one transaction that holds the write lock from its start, so that other processes change nothing
    /// between its reads and writes.
    fn write_with<T>(
        &self,
        doing: &'static str,
        step: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let mut link = self.lock();
        let Link::Writer(connection) = &mut *link else {
            return Err(Error::ReadOnly { path: self.path.clone() });
        };
        let attempt = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let found = schema::version(&transaction)?;
            if found > schema::VERSION {
                return Err(
                    Error::TooNew { path: self.path.clone(), found, supported: schema::VERSION }.into()
                );
            }
            let answer = step(&transaction)?;
            transaction.commit()?;
            Ok(answer)
        };
        attempt().map_err(|fault: Fault| fault.into_error(&self.path, doing))
    }

    fn lock(&self) -> MutexGuard<'_, Link> {
        // A panicking thread rolls its transaction back, so the connection stays usable.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for SqliteJournal {
    fn create(&self, run: &RunId, at_ms: i64) -> Result<(), Error> {
        self.write_with("create a run", |transaction| {
            let insert =
                "INSERT INTO run (name, created_at_ms) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
            match transaction.prepare_cached(insert)?.execute(params![run.as_str(), at_ms])? {
                0 => Err(Error::Exists { run: run.clone() }.into()),
                _ => Ok(()),
            }
        })
    }

    fn append(&self, lease: &Lease, expected_seq: u64, record: NewRecord<'_>) -> Result<(), Error> {
        self.write_with("append a record", |transaction| {
            let end = run_end(transaction, &lease.run)?;
            if !end.held || end.token != lease.token {
                return Err(Error::LeaseLost { run: lease.run.clone(), token: lease.token }.into());
            }
            if end.seq.cast_unsigned() != expected_seq {
                let found = end.seq.cast_unsigned();
                return Err(Error::Conflict { run: lease.run.clone(), expected: expected_seq, found }.into());
            }
            for blob in record.blobs {
                keep_blob(transaction, blob.digest(), blob.bytes())?;
            }
            transaction
                .prepare_cached("INSERT INTO record (run, seq, at_ms, body) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![end.run, end.seq, record.at_ms, record.body])?;
            for &id in record.consumes {
                consume(transaction, &lease.run, end.run, id)?;
            }
            Ok(())
        })
    }

    fn read(&self, run: &RunId, from_seq: u64) -> Result<Vec<Record>, Error> {
        self.read_with("read records", |connection| {
            let row = row_of(connection, run)?;
            let mut query = connection.prepare_cached(
                "SELECT seq, at_ms, body FROM record WHERE run = ?1 AND seq >= ?2 ORDER BY seq",
            )?;
            // Larger than any integer in SQLite: no records.
            let first = i64::try_from(from_seq).unwrap_or(i64::MAX);
            let rows = query.query_map(params![row, first], |row| {
                let seq: i64 = row.get(0)?;
                Ok(Record { seq: seq.cast_unsigned(), at_ms: row.get(1)?, body: row.get(2)? })
            })?;
            let mut records = Vec::new();
            for (record, seq) in rows.zip(from_seq..) {
                let record = record?;
                if record.seq != seq {
                    return Err(Fault::Damaged(format!("record {seq} of run `{run}` is missing")));
                }
                records.push(record);
            }
            Ok(records)
        })
    }

    fn put_blob(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = Digest::for_bytes(bytes);
        self.write_with("keep a blob", |transaction| keep_blob(transaction, digest, bytes))?;
        Ok(digest)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        let kept = self.read_with("read a blob", |connection| {
            let mut query = connection.prepare_cached("SELECT body FROM blob WHERE digest = ?1")?;
            let bytes: Option<Vec<u8>> = query.query_row([digest.as_bytes()], |row| row.get(0)).optional()?;
            Ok(bytes)
        })?;
        match kept {
            Some(bytes) if Digest::for_bytes(&bytes) != *digest => {
                let what = format!("the content of blob {digest} does not match its digest");
                Err(Error::Damaged { path: self.path.clone(), what, source: None })
            }
            kept => Ok(kept),
        }
    }

    fn runs(&self) -> Result<Vec<RunSummary>, Error> {
        self.read_with("list runs", |connection| {
            let mut query = connection.prepare_cached(
                "SELECT owner_pid, owner_started, owner_boot, owner_namespace, owner_host, name, created_at_ms,
                        (SELECT max(seq) + 1 FROM record WHERE record.run = run.id)
                 FROM run ORDER BY created_at_ms DESC, id DESC",
            )?;
            let rows = query.query_map([], |row| {
                let records: Option<i64> = row.get(7)?;
                Ok((owner(row)?, row.get(5)?, row.get(6)?, records.unwrap_or(0).cast_unsigned()))
            })?;
            let mut runs = Vec::new();
            for row in rows {
                let (owner, name, created_at_ms, records): (_, String, _, _) = row?;
                let run = RunId::try_from(name).map_err(|error| Fault::Damaged(error.to_string()))?;
                runs.push(RunSummary { run, created_at_ms, records, owner });
            }
            Ok(runs)
        })
    }

    fn acquire(&self, run: &RunId, owner: &Owner) -> Result<Lease, Error> {
        self.write_with("acquire a lease", |transaction| {
            if let Some(lease) = holder(transaction, run)?
                && lease.owner.liveness() != Liveness::Dead
            {
                return Err(Error::Held { lease: Box::new(lease) }.into());
            }
            let mut update = transaction.prepare_cached(
                "UPDATE run SET token = token + 1, owner_pid = ?2, owner_started = ?3, owner_boot = ?4,
                        owner_namespace = ?5, owner_host = ?6
                 WHERE name = ?1 RETURNING token",
            )?;
            // SQLite's integers are signed: the cast keeps the bits, and reading casts back.
            let started = owner.started.cast_signed();
            let columns = params![run.as_str(), owner.pid, started, owner.boot, owner.namespace, owner.host];
            let token: i64 = update.query_row(columns, |row| row.get(0))?;
            Ok(Lease { run: run.clone(), token: token.cast_unsigned(), owner: owner.clone() })
        })
    }

    fn release(&self, lease: &Lease) -> Result<(), Error> {
        self.write_with("release a lease", |transaction| {
            row_of(transaction, &lease.run)?;
            transaction
                .prepare_cached(
                    "UPDATE run SET owner_pid = NULL, owner_started = NULL, owner_boot = NULL,
                            owner_namespace = NULL, owner_host = NULL
                     WHERE name = ?1 AND token = ?2",
                )?
                .execute(params![lease.run.as_str(), lease.token.cast_signed()])?;
            Ok(())
        })
    }

    fn holder(&self, run: &RunId) -> Result<Option<Lease>, Error> {
        self.read_with("read a lease", |connection| holder(connection, run))
    }

    fn post(&self, run: &RunId, at_ms: i64, body: &[u8]) -> Result<MessageId, Error> {
        self.write_with("post a message", |transaction| {
            let row = row_of(transaction, run)?;
            transaction
                .prepare_cached("INSERT INTO message (run, at_ms, body) VALUES (?1, ?2, ?3)")?
                .execute(params![row, at_ms, body])?;
            Ok(MessageId(transaction.last_insert_rowid().cast_unsigned()))
        })
    }

    fn inbox(&self, run: &RunId) -> Result<Vec<Message>, Error> {
        self.read_with("read an inbox", |connection| {
            let row = row_of(connection, run)?;
            let mut query = connection
                .prepare_cached("SELECT id, at_ms, body FROM message WHERE run = ?1 ORDER BY id")?;
            let messages = query.query_map([row], |row| {
                let id: i64 = row.get(0)?;
                Ok(Message { id: MessageId(id.cast_unsigned()), at_ms: row.get(1)?, body: row.get(2)? })
            })?;
            Ok(messages.collect::<Result<_, _>>()?)
        })
    }
}

/// The end of a run and the token of its lease.
struct RunEnd {
    /// The key of the run in the other tables.
    run: i64,
    token: u64,
    held: bool,
    /// The sequence number of the next record.
    seq: i64,
}

fn run_end(connection: &Connection, run: &RunId) -> Result<RunEnd, Fault> {
    let mut query = connection.prepare_cached(
        "SELECT id, token, owner_pid IS NOT NULL, (SELECT max(seq) + 1 FROM record WHERE record.run = run.id)
         FROM run WHERE name = ?1",
    )?;
    let end = query.query_row([run.as_str()], |row| {
        let (token, seq): (i64, Option<i64>) = (row.get(1)?, row.get(3)?);
        Ok(RunEnd {
            run: row.get(0)?,
            token: token.cast_unsigned(),
            held: row.get(2)?,
            seq: seq.unwrap_or(0),
        })
    });
    end.optional()?.ok_or_else(|| no_such(run))
}

/// Finds the key of a run in the other tables.
fn row_of(connection: &Connection, run: &RunId) -> Result<i64, Fault> {
    let mut query = connection.prepare_cached("SELECT id FROM run WHERE name = ?1")?;
    query.query_row([run.as_str()], |row| row.get(0)).optional()?.ok_or_else(|| no_such(run))
}

fn no_such(run: &RunId) -> Fault {
    Error::NoSuchRun { run: run.clone() }.into()
}

fn keep_blob(transaction: &Transaction<'_>, digest: Digest, bytes: &[u8]) -> Result<(), Fault> {
    let mut insert =
        transaction.prepare_cached("INSERT OR IGNORE INTO blob (digest, body) VALUES (?1, ?2)")?;
    insert.execute(params![digest.as_bytes(), bytes])?;
    Ok(())
}

fn consume(transaction: &Transaction<'_>, run: &RunId, row: i64, id: MessageId) -> Result<(), Fault> {
    let mut delete = transaction.prepare_cached("DELETE FROM message WHERE id = ?1 AND run = ?2")?;
    match delete.execute(params![id.0.cast_signed(), row])? {
        0 => Err(Error::NoSuchMessage { run: run.clone(), id }.into()),
        _ => Ok(()),
    }
}

fn holder(connection: &Connection, run: &RunId) -> Result<Option<Lease>, Fault> {
    let mut query = connection.prepare_cached(
        "SELECT owner_pid, owner_started, owner_boot, owner_namespace, owner_host, token FROM run WHERE name = ?1",
    )?;
    let found = query.query_row([run.as_str()], |row| {
        let token: i64 = row.get(5)?;
        Ok((owner(row)?, token.cast_unsigned()))
    });
    let (owner, token) = found.optional()?.ok_or_else(|| no_such(run))?;
    Ok(owner.map(|owner| Lease { run: run.clone(), token, owner }))
}

/// Reads the owner from the first five columns of a row.
fn owner(row: &Row<'_>) -> rusqlite::Result<Option<Owner>> {
    let Some(pid) = row.get(0)? else { return Ok(None) };
    let started: i64 = row.get(1)?;
    let (boot, namespace, host) = (row.get(2)?, row.get(3)?, row.get(4)?);
    Ok(Some(Owner { pid, started: started.cast_unsigned(), boot, namespace, host }))
}
