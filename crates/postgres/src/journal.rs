//! The operations of a journal, as statements.

use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cuegate_journal::{
    Digest, Error, Journal, Lease, Liveness, Message, MessageId, NewRecord, Owner, Record, RunId, RunSummary,
    log::RunVersion, random_token,
};
use postgres::{Client, Error as DbError, Row};

use crate::{
    address::Address,
    connection::{Access, Connection},
    listener::Listener,
};

/// Whether the lease of a run was renewed in time, as a part of a statement: by the clock of the database, and with the time
/// that it gives to all.
pub(crate) const IS_FRESH: &str =
    "renewed_at + make_interval(secs => (select max(lease_s) from format)) > clock_timestamp()";
/// How often this process renews its leases.
const RENEWAL: Duration = Duration::from_secs(3);
/// How long a record waits for a server that is away: what an agent was paid for is in it.
const PATIENCE_TO_WRITE: Duration = Duration::from_secs(300);
/// How long everything else waits.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many records are read at a time.
const PAGE: i64 = 200;

/// Stores records in tables. Threads share one `PostgresJournal`; processes on any machine open the same address.
#[derive(Debug)]
pub struct PostgresJournal {
    connection: Connection,
    listener: Listener,
    address: Address,
    access: Access,
    /// The tokens of the leases that this process holds, by run.
    held: Arc<Mutex<HashMap<String, i64>>>,
    /// The messages of a run that were read last, at the number of changes that were heard then.
    read_messages: Mutex<HashMap<RunId, (u64, Vec<Message>)>>,
}

impl PostgresJournal {
    /// Opens the journal at an address for reading and writing, and makes the tables if they are missing. `is_synced`: each
    /// record waits until it survives a loss of power of the server.
    ///
    /// # Errors
    /// [`Error::Database`] when the server cannot be reached or refuses; [`Error::TooNew`] when a newer program made the
    /// tables.
    pub fn open(address: Address, is_synced: bool) -> Result<PostgresJournal, Error> {
        PostgresJournal::with_access(address, Access::Write { is_synced })
    }

    /// The same for reading. Changes and creates nothing.
    ///
    /// # Errors
    /// [`Error::Missing`] when there are no tables; [`Error::Database`]. Writing fails with [`Error::ReadOnly`].
    pub fn open_read_only(address: Address) -> Result<PostgresJournal, Error> {
        PostgresJournal::with_access(address, Access::Read)
    }

    fn with_access(address: Address, access: Access) -> Result<PostgresJournal, Error> {
        let held = Arc::new(Mutex::new(HashMap::<String, i64>::new()));
        let renewed = Arc::clone(&held);
        let connection = Connection::start(address.clone(), access, RENEWAL, move |session| {
            let (runs, tokens): (Vec<String>, Vec<i64>) =
                lock_mutex(&renewed).iter().map(|(run, token)| (run.clone(), *token)).unzip();
            if !runs.is_empty() {
                // Missed renewals are made up for; a record is refused if somebody else took the run meanwhile.
                let _ = session.run(Duration::ZERO, |client, _| renew_leases(client, &runs, &tokens));
            }
        });
        let listener = Listener::new(address.clone());
        let journal =
            PostgresJournal { connection, listener, address, access, held, read_messages: Mutex::default() };
        // The address is right, and the tables are there.
        journal.connection.run(Duration::ZERO, |client, _| client.execute("select 1", &[]))?;
        Ok(journal)
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Grows with each change of a run that this process has heard of. Starts to listen when it is called first.
    pub fn changes(&self) -> u64 {
        self.listener.changes()
    }

    fn write<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnMut(&mut Client, bool) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, Error> {
        if self.access == Access::Read {
            return Err(Error::ReadOnly { path: self.address.to_string().into() });
        }
        self.connection.run(patience, work)
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Client, bool) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, Error> {
        self.connection.run(PATIENCE, work)
    }

    /// The lease of a run, if it is held and has not run out.
    fn read_lease(&self, run: &RunId) -> Result<Option<Lease>, Error> {
        let name = run.to_string();
        let row = self.read(move |client, _| {
            client.query_opt(&format!("select token, owner, {IS_FRESH} from runs where run = $1"), &[&name])
        })?;
        let row = row.ok_or_else(|| Error::NoSuchRun { run: run.clone() })?;
        Ok(self.live_owner(&row, 1, 2)?.map(|owner| Lease {
            run: run.clone(),
            token: get_number(&row, 0),
            owner,
        }))
    }

    /// The owner in a column; `None` if there is none, or if the lease has run out and its process cannot be seen from here.
    fn live_owner(&self, row: &Row, owner: usize, is_fresh: usize) -> Result<Option<Owner>, Error> {
        let Some(text) = row.get::<_, Option<String>>(owner) else { return Ok(None) };
        let owner: Owner =
            serde_json::from_str(&text).map_err(|error| self.damage(format!("an owner: {error}")))?;
        let is_fresh = row.get::<_, Option<bool>>(is_fresh).unwrap_or(false);
        Ok((is_fresh || owner.liveness() != Liveness::Unknown).then_some(owner))
    }

    fn damage(&self, what: String) -> Error {
        Error::Damaged { path: self.address.to_string().into(), what }
    }

    /// Why an append was refused, or whether an earlier attempt did it.
    fn explain_refusal(
        &self,
        lease: &Lease,
        expected_seq: u64,
        record: &AppendedRecord,
        is_in_doubt: bool,
    ) -> Result<(), Error> {
        let run = || lease.run.clone();
        let (name, seq) = (lease.run.to_string(), limit_number(expected_seq));
        let (state, stored) = self.read(move |client, _| {
            let state = client
                .query_opt("select token, owner is not null, records from runs where run = $1", &[&name])?;
            let stored = client
                .query_opt("select token, body from records where run = $1 and seq = $2", &[&name, &seq])?;
            Ok((state, stored))
        })?;
        let Some(state) = state else { return Err(Error::NoSuchRun { run: run() }) };
        let is_own = |row: &Row| get_number(row, 0) == lease.token && row.get::<_, Vec<u8>>(1) == record.body;
        if is_in_doubt && stored.as_ref().is_some_and(is_own) {
            return Ok(());
        }
        if get_number(&state, 0) != lease.token || !state.get::<_, bool>(1) {
            return Err(Error::LeaseLost { run: run(), token: lease.token });
        }
        let found = get_number(&state, 2);
        if found != expected_seq {
            return Err(Error::Conflict { run: run(), expected: expected_seq, found });
        }
        let mut left: Vec<MessageId> =
            self.read_inbox(&lease.run)?.into_iter().map(|message| message.id).collect();
        for id in &record.consumes {
            match left.iter().position(|there| there == id) {
                Some(at) => left.remove(at),
                None => return Err(Error::NoSuchMessage { run: run(), id: *id }),
            };
        }
        Err(Error::Conflict { run: run(), expected: expected_seq, found })
    }

    fn read_inbox(&self, run: &RunId) -> Result<Vec<Message>, Error> {
        let name = run.to_string();
        let (is_there, rows) = self.read(move |client, _| {
            let rows = client.query(
                "select id, at_ms, body from inbox where run = $1 and consumed_by is null order by id",
                &[&name],
            )?;
            let is_there = !rows.is_empty()
                || client.query_opt("select 1 from runs where run = $1", &[&name])?.is_some();
            Ok((is_there, rows))
        })?;
        if !is_there {
            return Err(Error::NoSuchRun { run: run.clone() });
        }
        Ok(rows
            .iter()
            .map(|row| Message { id: MessageId(get_number(row, 0)), at_ms: row.get(1), body: row.get(2) })
            .collect())
    }

    fn check_run(&self, run: &RunId) -> Result<(), Error> {
        let name = run.to_string();
        let found =
            self.read(move |client, _| client.query_opt("select 1 from runs where run = $1", &[&name]))?;
        found.map(drop).ok_or_else(|| Error::NoSuchRun { run: run.clone() })
    }
}

/// A record in the shape of a statement.
#[derive(Clone)]
struct AppendedRecord {
    at_ms: i64,
    body: Vec<u8>,
    digests: Vec<Vec<u8>>,
    texts: Vec<Vec<u8>>,
    consumes: Vec<MessageId>,
}

impl AppendedRecord {
    fn of(record: NewRecord<'_>) -> AppendedRecord {
        AppendedRecord {
            at_ms: record.at_ms,
            body: record.body.to_vec(),
            digests: record.blobs.iter().map(|blob| blob.digest().as_bytes().to_vec()).collect(),
            texts: record.blobs.iter().map(|blob| blob.bytes().to_vec()).collect(),
            consumes: record.consumes.to_vec(),
        }
    }

    fn messages(&self) -> Vec<i64> {
        self.consumes.iter().map(|id| limit_number(id.0)).collect()
    }
}

/// One statement: the token and the number decide, and everything belongs to the record. The first part locks the row of the
/// run, so that of several writers one after the other is looked at.
const APPEND: &str = "
with held as (
    update runs set records = records + 1, renewed_at = clock_timestamp()
    where run = $1 and token = $2 and owner is not null and records = $3
      and (select count(*) from inbox where run = $1 and id = any($6) and consumed_by is null) = cardinality($6)
    returning run
), consumed as (
    update inbox set consumed_by = $3 where run = $1 and id = any($6) and exists (select from held)
), stored as (
    insert into blobs select $1, digest, body from unnest($7::bytea[], $8::bytea[]) as texts (digest, body)
    where exists (select from held) on conflict do nothing
), told as (
    select pg_notify($9, run) from held
), appended as (
    insert into records select run, $3, $4, $2, $5 from held returning seq
)
select seq, (select count(*) from told) from appended";

fn append_record(
    client: &mut impl postgres::GenericClient,
    channel: &str,
    run: &str,
    token: i64,
    seq: i64,
    record: &AppendedRecord,
) -> Result<bool, DbError> {
    let row = client.query_opt(
        APPEND,
        &[
            &run,
            &token,
            &seq,
            &record.at_ms,
            &record.body,
            &record.messages(),
            &record.digests,
            &record.texts,
            &channel,
        ],
    )?;
    Ok(row.is_some())
}

fn renew_leases(client: &mut Client, runs: &[String], tokens: &[i64]) -> Result<u64, DbError> {
    client.execute(
        "update runs set renewed_at = clock_timestamp() from unnest($1::text[], $2::bigint[]) as held (run, token) \
         where runs.run = held.run and runs.token = held.token and owner is not null",
        &[&runs, &tokens],
    )
}

/// The name of the channel on which changes are told.
pub(crate) fn channel_of(address: &Address) -> String {
    format!("cuegate {}", address.schema)
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is kept is changed in one step, so a panic leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn limit_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn get_number(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or_default()
}

impl Journal for PostgresJournal {
    fn create(&self, run: &RunId, at_ms: i64) -> Result<(), Error> {
        let (name, channel) = (run.to_string(), channel_of(&self.address));
        let created = self.write(PATIENCE, move |client, is_in_doubt| {
            let sql = "with made as (insert into runs (run, created_at_ms) values ($1, $2) on conflict do nothing returning run) \
                       select pg_notify($3, run) from made";
            let made = client.query_opt(sql, &[&name, &at_ms, &channel])?.is_some();
            // The one of an earlier attempt is as empty as it was made.
            let sql = "select 1 from runs where run = $1 and created_at_ms = $2 and records = 0 and token = 0";
            Ok(made || (is_in_doubt && client.query_opt(sql, &[&name, &at_ms])?.is_some()))
        })?;
        created.then_some(()).ok_or_else(|| Error::Exists { run: run.clone() })
    }

    fn append(&self, lease: &Lease, expected_seq: u64, record: NewRecord<'_>) -> Result<(), Error> {
        let record = AppendedRecord::of(record);
        let (run, token, seq) =
            (lease.run.to_string(), limit_number(lease.token), limit_number(expected_seq));
        let (channel, appended) = (channel_of(&self.address), record.clone());
        let (is_done, is_in_doubt) = self.write(PATIENCE_TO_WRITE, move |client, is_in_doubt| {
            Ok((append_record(client, &channel, &run, token, seq, &appended)?, is_in_doubt))
        })?;
        lock_mutex(&self.read_messages).remove(&lease.run);
        match is_done {
            true => Ok(()),
            false => self.explain_refusal(lease, expected_seq, &record, is_in_doubt),
        }
    }

    fn append_copy(&self, lease: &Lease, from: &RunId, count: u64, then: NewRecord<'_>) -> Result<(), Error> {
        let record = AppendedRecord::of(then);
        let (run, source, token) = (lease.run.to_string(), from.to_string(), limit_number(lease.token));
        let (channel, appended, wanted) = (channel_of(&self.address), record.clone(), limit_number(count));
        let (found, is_done, is_in_doubt) = self.write(PATIENCE_TO_WRITE, move |client, is_in_doubt| {
            let mut work = client.transaction()?;
            let found = work.query_opt("select records from runs where run = $1 for share", &[&source])?;
            let found: Option<i64> = found.map(|row| row.get(0));
            if found.is_none_or(|found| found < wanted) {
                return Ok((found, false, is_in_doubt));
            }
            let held = work.execute(
                "update runs set records = $3 where run = $1 and token = $2 and owner is not null and records = 0",
                &[&run, &token, &wanted],
            )?;
            if held == 0 {
                return Ok((found, false, is_in_doubt));
            }
            work.execute(
                "insert into records select $1, seq, at_ms, $2, body from records where run = $3 and seq < $4",
                &[&run, &token, &source, &wanted],
            )?;
            // Texts of later records do no harm here.
            work.execute(
                "insert into blobs select $1, digest, body from blobs where run = $2",
                &[&run, &source],
            )?;
            let is_done = append_record(&mut work, &channel, &run, token, wanted, &appended)?;
            if is_done {
                work.commit()?;
            }
            Ok((found, is_done, is_in_doubt))
        })?;
        match found {
            _ if is_done => Ok(()),
            None => Err(Error::NoSuchRun { run: from.clone() }),
            Some(found) if found < limit_number(count) => Err(Error::Conflict {
                run: from.clone(),
                expected: count,
                found: u64::try_from(found).unwrap_or_default(),
            }),
            Some(_) => match self.explain_refusal(lease, count, &record, is_in_doubt) {
                // It is to have none.
                Err(Error::Conflict { run, found, .. }) => Err(Error::Conflict { run, expected: 0, found }),
                other => other,
            },
        }
    }

    fn remove(&self, lease: &Lease) -> Result<(), Error> {
        let (run, token, channel) =
            (lease.run.to_string(), limit_number(lease.token), channel_of(&self.address));
        let is_removed = self.write(PATIENCE, move |client, is_in_doubt| {
            let sql = "with gone as (delete from runs where run = $1 and token = $2 and owner is not null returning run) \
                       select pg_notify($3, run) from gone";
            let is_gone = client.query_opt(sql, &[&run, &token, &channel])?.is_some();
            Ok(is_gone || (is_in_doubt && client.query_opt("select 1 from runs where run = $1", &[&run])?.is_none()))
        })?;
        if is_removed {
            lock_mutex(&self.held).remove(lease.run.as_str());
            lock_mutex(&self.read_messages).remove(&lease.run);
            return Ok(());
        }
        self.check_run(&lease.run)?;
        Err(Error::LeaseLost { run: lease.run.clone(), token: lease.token })
    }

    fn read_each(
        &self,
        run: &RunId,
        from_seq: u64,
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let name = run.to_string();
        let row = self.read({
            let name = name.clone();
            move |client, _| client.query_opt("select records from runs where run = $1", &[&name])
        })?;
        let count = get_number(&row.ok_or_else(|| Error::NoSuchRun { run: run.clone() })?, 0);
        let mut next = from_seq;
        while next < count {
            let (name, from) = (name.clone(), limit_number(next));
            let rows = self.read(move |client, _| {
                client.query(
                    "select seq, at_ms, body from records where run = $1 and seq >= $2 and seq < $2 + $3 order by seq",
                    &[&name, &from, &PAGE],
                )
            })?;
            if rows.is_empty() {
                return Err(self.damage(format!("record {next} of run `{run}` is missing")));
            }
            for row in rows {
                let record = Record { seq: get_number(&row, 0), at_ms: row.get(1), body: row.get(2) };
                if record.seq != next {
                    return Err(self.damage(format!("record {next} of run `{run}` is missing")));
                }
                next += 1;
                if each(record).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn blob(&self, run: &RunId, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        let (name, wanted) = (run.to_string(), digest.as_bytes().to_vec());
        let row = self.read(move |client, _| {
            client.query_opt("select body from blobs where run = $1 and digest = $2", &[&name, &wanted])
        })?;
        let Some(row) = row else { return self.check_run(run).map(|()| None) };
        let body: Vec<u8> = row.get(0);
        match Digest::for_bytes(&body) == *digest {
            true => Ok(Some(body)),
            false => Err(self.damage(format!("a text of run `{run}` does not match its digest"))),
        }
    }

    fn runs(&self) -> Result<Vec<RunSummary>, Error> {
        let rows = self.read(|client, _| {
            client.query(
                &format!(
                    "select run, created_at_ms, records, owner, {IS_FRESH}, token, posted from runs
                     order by created_at_ms desc, age desc"
                ),
                &[],
            )
        })?;
        rows.iter()
            .map(|row| {
                let name: String = row.get(0);
                Ok(RunSummary {
                    run: name.parse().map_err(|_| self.damage(format!("a run is called `{name}`")))?,
                    created_at_ms: row.get(1),
                    has_records: get_number(row, 2) > 0,
                    owner: self.live_owner(row, 3, 4)?,
                    damage: None,
                    version: Some(RunVersion::shared(
                        get_number(row, 2),
                        get_number(row, 5),
                        get_number(row, 6),
                    )),
                })
            })
            .collect()
    }

    fn acquire(&self, run: &RunId, owner: &Owner) -> Result<Lease, Error> {
        let text = serde_json::to_string(owner).map_err(|_| Error::TooLong { run: run.clone() })?;
        // Until the row is as it was seen: whether a process lives is seen here, not there.
        loop {
            let name = run.to_string();
            let row = self.read(move |client, _| {
                client
                    .query_opt(&format!("select token, owner, {IS_FRESH} from runs where run = $1"), &[&name])
            })?;
            let row = row.ok_or_else(|| Error::NoSuchRun { run: run.clone() })?;
            let seen: i64 = row.get(0);
            if let Some(holder) = self.live_owner(&row, 1, 2)?
                && holder.liveness() != Liveness::Dead
            {
                let token = get_number(&row, 0);
                return Err(Error::Held {
                    lease: Box::new(Lease { run: run.clone(), token, owner: holder }),
                });
            }
            let was: Option<String> = row.get(1);
            let (name, text, channel) = (run.to_string(), text.clone(), channel_of(&self.address));
            let token = self.write(PATIENCE, move |client, is_in_doubt| {
                let sql = "with taken as (update runs set token = token + 1, owner = $3, renewed_at = clock_timestamp() \
                           where run = $1 and token = $2 and owner is not distinct from $4 returning run, token) \
                           select token, pg_notify($5, run)::text from taken";
                let row = client.query_opt(sql, &[&name, &seen, &text, &was, &channel])?;
                // It is that of an earlier attempt.
                let sql = "select token from runs where run = $1 and token = $2 + 1 and owner = $3";
                match row {
                    None if is_in_doubt => client.query_opt(sql, &[&name, &seen, &text]),
                    row => Ok(row),
                }
                .map(|row| row.map(|row| row.get::<_, i64>(0)))
            })?;
            if let Some(token) = token {
                lock_mutex(&self.held).insert(run.to_string(), token);
                let token = u64::try_from(token).unwrap_or_default();
                return Ok(Lease { run: run.clone(), token, owner: owner.clone() });
            }
        }
    }

    fn release(&self, lease: &Lease) -> Result<(), Error> {
        let (run, token, channel) =
            (lease.run.to_string(), limit_number(lease.token), channel_of(&self.address));
        {
            let mut held = lock_mutex(&self.held);
            if held.get(&run) == Some(&token) {
                held.remove(&run);
            }
        }
        let released = self.write(PATIENCE, move |client, _| {
            let sql = "with freed as (update runs set owner = null where run = $1 and token = $2 returning run) \
                       select pg_notify($3, run) from freed";
            Ok(client.query_opt(sql, &[&run, &token, &channel])?.is_some())
        })?;
        if released { Ok(()) } else { self.check_run(&lease.run) }
    }

    fn holder(&self, run: &RunId) -> Result<Option<Lease>, Error> {
        self.read_lease(run)
    }

    fn post(&self, run: &RunId, at_ms: i64, body: &[u8]) -> Result<MessageId, Error> {
        let (name, body, channel) = (run.to_string(), body.to_vec(), channel_of(&self.address));
        // A second attempt must not post it twice.
        let key = random_token();
        let id = self.write(PATIENCE, move |client, is_in_doubt| {
            let sql = "select id from inbox where run = $1 and key = $2";
            if is_in_doubt && let Some(row) = client.query_opt(sql, &[&name, &key])? {
                return Ok(Some(get_number(&row, 0)));
            }
            let sql = "with counted as (update runs set posted = posted + 1 where run = $1 returning run, posted), \
                       kept as (insert into inbox select run, posted, $2, $3, $4 from counted) \
                       select posted, pg_notify($5, run)::text from counted";
            let row = client.query_opt(sql, &[&name, &key, &at_ms, &body, &channel])?;
            Ok(row.map(|row| get_number(&row, 0)))
        })?;
        lock_mutex(&self.read_messages).remove(run);
        id.map(MessageId).ok_or_else(|| Error::NoSuchRun { run: run.clone() })
    }

    fn inbox(&self, run: &RunId) -> Result<Vec<Message>, Error> {
        // The driver of a run looks several times a second: while nothing is heard, nothing is there.
        let heard = self.listener.heard();
        if let (Some(heard), Some((at, messages))) = (heard, lock_mutex(&self.read_messages).get(run))
            && *at == heard
        {
            return Ok(messages.clone());
        }
        let messages = self.read_inbox(run)?;
        if let Some(heard) = heard {
            lock_mutex(&self.read_messages).insert(run.clone(), (heard, messages.clone()));
        }
        Ok(messages)
    }
}
