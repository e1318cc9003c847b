//! A run with its journal: the one place where records are written.

use std::{collections::HashSet, sync::Arc, time::Duration};

use cuegate_engine::{Completion, Decision, Event, Moment, Record, Resume, Run, Start, decide};
use cuegate_flow::model::Flow;
use cuegate_journal::{Blob, Digest, Journal, Lease, MessageId, NewRecord, Owner, RunId};

use crate::{
    clock::{Clock, MachineClock},
    error::Error,
};

/// A record as it was journaled.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its number.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// What it holds.
    pub events: Vec<Event>,
}

/// A run that this process drives: nobody else writes to it while the book is open.
pub struct RunWriter {
    journal: Arc<dyn Journal>,
    lease: Lease,
    flow: Arc<Flow>,
    run: Run,
    /// Texts that this process has stored already: prompts repeat from visit to visit.
    stored: HashSet<Digest>,
    clock: Arc<dyn Clock>,
    /// What the clock showed as gone by at the last record, or when it was opened.
    since: Duration,
}

/// How often the time that a run is driven is journaled, where it is limited, while nothing else is.
const TELL_MIN: Duration = Duration::from_secs(1);
const TELL_MAX: Duration = Duration::from_secs(15);

/// All records of a run, in order.
///
/// # Errors
/// When the journal cannot be read, or holds a record of a newer format.
pub fn records(journal: &dyn Journal, run: &RunId) -> Result<Vec<Entry>, Error> {
    journal
        .read(run, 0)?
        .into_iter()
        .map(|row| match Record::parse(&row.body) {
            Ok(record) => Ok(Entry { seq: row.seq, at_ms: row.at_ms, events: record.events }),
            Err(source) => Err(Error::Record { run: run.to_string(), seq: row.seq, source }),
        })
        .collect()
}

impl RunWriter {
    /// Begins a run: its first record, together with every text that the record names.
    ///
    /// # Errors
    /// When the journal refuses.
    pub fn begin(
        journal: Arc<dyn Journal>,
        id: &RunId,
        flow: Arc<Flow>,
        start: Start,
        texts: Vec<Vec<u8>>,
    ) -> Result<(RunWriter, Entry), Error> {
        RunWriter::begin_by(Arc::new(MachineClock::new()), journal, id, flow, start, texts)
    }

    /// The same, by another clock than the machine's.
    ///
    /// # Errors
    /// As of [`RunWriter::begin`].
    pub fn begin_by(
        clock: Arc<dyn Clock>,
        journal: Arc<dyn Journal>,
        id: &RunId,
        flow: Arc<Flow>,
        start: Start,
        texts: Vec<Vec<u8>>,
    ) -> Result<(RunWriter, Entry), Error> {
        journal.create(id, clock.now_ms())?;
        let lease = journal.acquire(id, &Owner::current())?;
        let since = clock.gone();
        let mut book =
            RunWriter { journal, lease, flow, run: Run::default(), stored: HashSet::new(), clock, since };
        let entry = book.commit(Completion::Start(Box::new(start)), texts, &[])?;
        Ok((book, entry.expect("a run that has not begun can begin")))
    }

    /// Opens a run that has begun, if nobody else has it.
    ///
    /// # Errors
    /// When somebody else has it, or the journal cannot be read.
    pub fn reopen(journal: Arc<dyn Journal>, id: &RunId, flow: Arc<Flow>) -> Result<RunWriter, Error> {
        let lease = journal.acquire(id, &Owner::current())?;
        // Read after the lease is ours: nobody adds to it any more.
        let entries = records(&*journal, id)?;
        let run = Run::fold(entries.iter().map(|entry| entry.events.as_slice()));
        let clock = Arc::new(MachineClock::new());
        Ok(RunWriter { journal, lease, flow, run, stored: HashSet::new(), since: clock.gone(), clock })
    }

    /// Lets a run go on.
    ///
    /// # Errors
    /// When the journal refuses.
    pub fn resume(&mut self, resume: Resume, texts: Vec<Vec<u8>>) -> Result<Option<Entry>, Error> {
        self.commit(Completion::Resumed(Box::new(resume)), texts, &[])
    }

    /// Decides what follows from a completion, journals it, and only then believes it.
    ///
    /// # Errors
    /// When the journal refuses; then nothing has changed.
    pub fn commit(
        &mut self,
        completion: Completion,
        texts: Vec<Vec<u8>>,
        consumes: &[MessageId],
    ) -> Result<Option<Entry>, Error> {
        let at_ms = self.clock.now_ms();
        let driven = self.elapsed();
        let driven_ms = u64::try_from(driven.as_millis()).unwrap_or(u64::MAX);
        let Decision { events, blobs } =
            decide(&self.flow, &self.run, Moment { at_ms, driven_ms }, completion);
        if events.is_empty() {
            return Ok(None);
        }
        let record = Record { v: Record::VERSION, events };
        let body = serde_json::to_vec(&record).expect("events are plain data and can be written as JSON");
        let mut blobs: Vec<Blob> = texts.into_iter().chain(blobs).map(Blob::new).collect();
        blobs.retain(|blob| !self.stored.contains(&blob.digest()));
        let seq = self.run.seq;
        self.journal.append(&self.lease, seq, NewRecord { at_ms, body: &body, blobs: &blobs, consumes })?;
        self.stored.extend(blobs.iter().map(Blob::digest));
        self.run.apply_record(&record.events);
        // By whole milliseconds, so that what was not told now is told with the next record.
        self.since += Duration::from_millis(driven_ms);
        Ok(Some(Entry { seq, at_ms, events: record.events }))
    }

    /// How long it was driven since the last record.
    fn elapsed(&self) -> Duration {
        self.clock.gone().saturating_sub(self.since)
    }

    /// How long the run may still be driven; `None` where that is not limited.
    pub fn time_left(&self) -> Option<Duration> {
        let ledger = &self.run.ledger;
        let most = Duration::from_millis(ledger.budget.driven_ms?);
        let spent = Duration::from_millis(ledger.spent.driven_ms);
        Some(most.saturating_sub(spent).saturating_sub(self.elapsed()))
    }

    /// Whether so much of a limited time passed since the last record that a kill should not lose it.
    pub fn time_to_tell(&self) -> bool {
        self.run
            .ledger
            .budget
            .driven_ms
            .is_some_and(|most| self.elapsed() >= Duration::from_millis(most / 50).clamp(TELL_MIN, TELL_MAX))
    }

    /// The state.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The run's name.
    pub fn id(&self) -> &RunId {
        &self.lease.run
    }

    /// What it follows.
    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// Where it is kept.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Lets others have it. Dropping the book does the same.
    pub fn close(self) {}
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        // A lease that cannot be given back is one that somebody takes over when this process has ended.
        let _ = self.journal.release(&self.lease);
    }
}
