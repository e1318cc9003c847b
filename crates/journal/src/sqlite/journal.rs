//! The operations of a journal, as SQL.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::fault::Fault;
use super::open::{self, Durability, Options};
use super::record_counts::RecordCounts;
use super::run_row::{RunRow, message_checksum, record_checksum};
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
    counts: RecordCounts,
    is_synced: bool,
    link: Mutex<JournalConnection>,
    in_use: Mutex<FilesInUse>,
}

/// The files that a writer has open, to notice that they were deleted: writing to a deleted file succeeds.
#[derive(Debug, Default)]
struct FilesInUse {
    /// The database.
    database: Option<(u64, u64)>,
    /// The write-ahead log, which exists from the first write on and stays while a connection is open.
    log: Option<(u64, u64)>,
}

#[derive(Debug)]
enum JournalConnection {
    Writer(Connection),
    Viewer(Viewer),
}

impl SqliteJournal {
    /// Opens the journal at `path` for reading and writing. Creates a missing one with its folders; only the user can
    /// read it (mode 0600).
    ///
    /// # Errors
    /// [`Error::Damaged`] when the file is not a database or is inconsistent, [`Error::Foreign`] when it is the
    /// database of another program, [`Error::JournalLost`] when it is missing or empty although runs were recorded,
    /// [`Error::NoFile`] for a folder, FIFO or device; [`Error::Io`], [`Error::Busy`], [`Error::Store`]. A journal of a newer format
    /// opens, but writing to it fails with [`Error::TooNew`].
    pub fn open(path: impl Into<PathBuf>, options: Options) -> Result<Self, Error> {
        let path = path.into();
        let counts = RecordCounts::next_to(&path);
        let is_synced = options.durability == Durability::Synced;
        let link = Mutex::new(JournalConnection::Writer(open::open_writer(&path, &counts, options)?));
        let in_use = Mutex::new(FilesInUse { database: file_identity(&path), log: None });
        Ok(Self { path, counts, is_synced, link, in_use })
    }

    /// Opens the journal at `path` for reading, also while another process writes it. Changes no file, except that
    /// SQLite restores the index (`-shm`) of a write-ahead log that was copied without it.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no journal; else as [`open`](Self::open). Writing fails with
    /// [`Error::ReadOnly`].
    pub fn open_read_only(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let counts = RecordCounts::next_to(&path);
        let link = Mutex::new(JournalConnection::Viewer(Viewer::open(&path, &counts)?));
        Ok(Self { path, counts, is_synced: false, link, in_use: Mutex::default() })
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
            JournalConnection::Writer(connection) => {
                self.refuse_vanished()?;
                query(connection)
            }
            JournalConnection::Viewer(viewer) => viewer.read(query),
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
        let JournalConnection::Writer(connection) = &mut *link else {
            return Err(Error::ReadOnly { path: self.path.clone() });
        };
        self.refuse_vanished()?;
        let attempt = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let found = schema::read_format_version(&transaction)?;
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

    /// Fails when a file that this process writes is no longer the one at its path.
    fn refuse_vanished(&self) -> Result<(), Error> {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let mut name = self.path.clone().into_os_string();
        name.push("-wal");
        let log = PathBuf::from(name);
        in_use.log = in_use.log.or_else(|| file_identity(&log));
        let is_there =
            |path: &Path, known: Option<(u64, u64)>| known.is_none() || file_identity(path) == known;
        match (is_there(&self.path, in_use.database), is_there(&log, in_use.log)) {
            (true, true) => Ok(()),
            (false, _) => Err(Error::Vanished { path: self.path.clone() }),
            (true, false) => Err(Error::Vanished { path: log }),
        }
    }

    /// Fails when the journal holds fewer records of a run than were once written.
    fn refuse_lost(&self, run: &RunId, found: Result<u64, &Error>, noted: u64) -> Result<(), Error> {
        let found = match found {
            Ok(records) => records,
            Err(Error::NoSuchRun { .. }) => 0,
            Err(_) => return Ok(()),
        };
        self.counts.refuse_lost_records(&self.path, run, found, noted)
    }

    fn lock(&self) -> MutexGuard<'_, JournalConnection> {
        // A panicking thread rolls its transaction back, so the connection stays usable.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The device and number of a file; `None` if it cannot be read.
fn file_identity(path: &Path) -> Option<(u64, u64)> {
    let about = path.metadata().ok()?;
    Some((about.dev(), about.ino()))
}

impl Journal for SqliteJournal {
    fn create(&self, run: &RunId, at_ms: i64) -> Result<(), Error> {
        self.write_with("create a run", |transaction| match RunRow::insert(transaction, run, at_ms)? {
            true => Ok(()),
            false => Err(Error::Exists { run: run.clone() }.into()),
        })
    }

    fn append(&self, lease: &Lease, expected_seq: u64, record: NewRecord<'_>) -> Result<(), Error> {
        self.write_with("append a record", |transaction| {
            let mut row = RunRow::find(transaction, &lease.run)?;
            if row.owner.is_none() || row.token != lease.token {
                return Err(Error::LeaseLost { run: lease.run.clone(), token: lease.token }.into());
            }
            if row.records != expected_seq {
                let found = row.records;
                return Err(Error::Conflict { run: lease.run.clone(), expected: expected_seq, found }.into());
            }
            for blob in record.blobs {
                keep_blob(transaction, blob.digest(), blob.bytes())?;
            }
            let checksum = record_checksum(&lease.run, row.records, record.at_ms, record.body);
            transaction
                .prepare_cached(
                    "INSERT INTO record (run, seq, at_ms, body, checksum) VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    row.id,
                    row.records.cast_signed(),
                    record.at_ms,
                    record.body,
                    checksum.as_bytes()
                ])?;
            for &id in record.consumes {
                consume_message(transaction, &lease.run, row.id, id)?;
                row.messages = row.messages.saturating_sub(1);
            }
            row.records += 1;
            row.update(transaction)
        })?;
        tracing::trace!(run = %lease.run, seq = expected_seq, bytes = record.body.len(), "append");
        // After a loss of power the file could be ahead of a journal that is not synced.
        if self.is_synced { self.counts.set(&lease.run, expected_seq + 1) } else { Ok(()) }
    }

    fn read(&self, run: &RunId, from_seq: u64) -> Result<Vec<Record>, Error> {
        // Read before the journal, which only grows.
        let noted = self.counts.get(run)?;
        let read = self.read_with("read records", |connection| {
            // One transaction, so that the number of records is the one of these records.
            let connection = connection.unchecked_transaction()?;
            let row = RunRow::find(&connection, run)?;
            Ok((row.records, read_records(&connection, &row, from_seq)?))
        });
        self.refuse_lost(run, read.as_ref().map(|(records, _)| *records), noted)?;
        Ok(read?.1)
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
        let noted = self.counts.all()?;
        let rows = self.read_with("list runs", RunRow::all)?;
        let mut runs: Vec<RunSummary> = rows
            .into_iter()
            .map(|RunRow { run, created_at_ms, records, owner, .. }| RunSummary {
                run,
                created_at_ms,
                records,
                owner,
                damage: None,
            })
            .collect();
        for (run, noted) in noted {
            let at = runs.iter().position(|summary| summary.run == run);
            let found = at.map_or(0, |at| runs[at].records);
            let Err(lost) = self.counts.refuse_lost_records(&self.path, &run, found, noted) else { continue };
            let damage = Some(lost.to_string());
            match at {
                Some(at) => runs[at].damage = damage,
                None => runs.push(RunSummary { run, created_at_ms: 0, records: 0, owner: None, damage }),
            }
        }
        Ok(runs)
    }

    fn acquire(&self, run: &RunId, owner: &Owner) -> Result<Lease, Error> {
        self.write_with("acquire a lease", |transaction| {
            let mut row = RunRow::find(transaction, run)?;
            if let Some(lease) = row.lease()
                && lease.owner.liveness() != Liveness::Dead
            {
                return Err(Error::Held { lease: Box::new(lease) }.into());
            }
            row.token += 1;
            row.owner = Some(owner.clone());
            row.update(transaction)?;
            Ok(Lease { run: run.clone(), token: row.token, owner: owner.clone() })
        })
    }

    fn release(&self, lease: &Lease) -> Result<(), Error> {
        self.write_with("release a lease", |transaction| {
            let mut row = RunRow::find(transaction, &lease.run)?;
            if row.token == lease.token && row.owner.is_some() {
                row.owner = None;
                row.update(transaction)?;
            }
            Ok(())
        })
    }

    fn holder(&self, run: &RunId) -> Result<Option<Lease>, Error> {
        self.read_with("read a lease", |connection| Ok(RunRow::find(connection, run)?.lease()))
    }

    fn post(&self, run: &RunId, at_ms: i64, body: &[u8]) -> Result<MessageId, Error> {
        self.write_with("post a message", |transaction| {
            let mut row = RunRow::find(transaction, run)?;
            let checksum = message_checksum(run, at_ms, body);
            transaction
                .prepare_cached("INSERT INTO message (run, at_ms, body, checksum) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![row.id, at_ms, body, checksum.as_bytes()])?;
            let id = transaction.last_insert_rowid().cast_unsigned();
            row.messages += 1;
            row.update(transaction)?;
            Ok(MessageId(id))
        })
    }

    fn inbox(&self, run: &RunId) -> Result<Vec<Message>, Error> {
        self.read_with("read an inbox", |connection| {
            let connection = connection.unchecked_transaction()?;
            let row = RunRow::find(&connection, run)?;
            let mut query = connection
                .prepare_cached("SELECT id, at_ms, body, checksum FROM message WHERE run = ?1 ORDER BY id")?;
            let messages = query.query_map([row.id], |row| {
                let id: i64 = row.get(0)?;
                let message =
                    Message { id: MessageId(id.cast_unsigned()), at_ms: row.get(1)?, body: row.get(2)? };
                Ok((message, row.get(3)?))
            })?;
            let verified = messages.map(|read| {
                let (message, checksum): (Message, Vec<u8>) = read?;
                match checksum == message_checksum(run, message.at_ms, &message.body).as_bytes() {
                    true => Ok(message),
                    false => {
                        let id = message.id;
                        Err(Fault::Damaged(format!(
                            "message {id} of run `{run}` does not match its checksum"
                        )))
                    }
                }
            });
            let messages: Vec<Message> = verified.collect::<Result<_, Fault>>()?;
            match messages.len() as u64 == row.messages {
                true => Ok(messages),
                false => Err(Fault::Damaged(format!("messages in the inbox of run `{run}` are missing"))),
            }
        })
    }
}

/// Reads the records of a run from `from_seq` on and verifies that they are complete and unchanged.
fn read_records(connection: &Connection, row: &RunRow, from_seq: u64) -> Result<Vec<Record>, Fault> {
    let run = &row.run;
    let mut query = connection.prepare_cached(
        "SELECT seq, at_ms, body, checksum FROM record WHERE run = ?1 AND seq >= ?2 ORDER BY seq",
    )?;
    // Larger than any integer in SQLite: no records.
    let first = i64::try_from(from_seq).unwrap_or(i64::MAX);
    let mut rows = query.query(params![row.id, first])?;
    let mut records: Vec<Record> = Vec::new();
    for expected in from_seq..row.records {
        let missing = || Fault::Damaged(format!("record {expected} of run `{run}` is missing"));
        let found = rows.next()?.ok_or_else(missing)?;
        let seq: i64 = found.get(0)?;
        let (at_ms, body, checksum): (i64, Vec<u8>, Vec<u8>) = (found.get(1)?, found.get(2)?, found.get(3)?);
        if seq.cast_unsigned() != expected {
            return Err(missing());
        }
        if checksum != record_checksum(run, expected, at_ms, &body).as_bytes() {
            return Err(Fault::Damaged(format!(
                "record {expected} of run `{run}` does not match its checksum"
            )));
        }
        records.push(Record { seq: expected, at_ms, body });
    }
    match rows.next()? {
        Some(_) => Err(Fault::Damaged(format!("run `{run}` has more than its {} records", row.records))),
        None => Ok(records),
    }
}

fn keep_blob(transaction: &Transaction<'_>, digest: Digest, bytes: &[u8]) -> Result<(), Fault> {
    let mut insert =
        transaction.prepare_cached("INSERT OR IGNORE INTO blob (digest, body) VALUES (?1, ?2)")?;
    insert.execute(params![digest.as_bytes(), bytes])?;
    Ok(())
}

fn consume_message(transaction: &Transaction<'_>, run: &RunId, row: i64, id: MessageId) -> Result<(), Fault> {
    let mut delete = transaction.prepare_cached("DELETE FROM message WHERE id = ?1 AND run = ?2")?;
    match delete.execute(params![id.0.cast_signed(), row])? {
        0 => Err(Error::NoSuchMessage { run: run.clone(), id }.into()),
        _ => Ok(()),
    }
}
