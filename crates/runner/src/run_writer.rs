//! The run writer: the only place that writes the records of a run.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use cuegate_engine::{
    Completion, Decision, Event, Moment, Record, RecordedCompletion, ResumeSettings, Run, RunForked, Start,
};
use cuegate_flow::model::Flow;
use cuegate_journal::{Blob, Journal, Lease, MessageId, NewRecord, Owner, RunId};

use crate::{
    clock::{Clock, MachineClock, now_ms},
    error::Error,
    state_packer::StatePacker,
};

/// A record as it was journaled.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its number.
    pub seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub at_ms: i64,
    pub events: Vec<Event>,
}

/// A run that this process drives. Its lease keeps other processes from writing to the run.
pub struct RunWriter {
    journal: Arc<dyn Journal>,
    lease: Lease,
    flow: Arc<Flow>,
    run: Run,
    clock: Arc<dyn Clock>,
    /// Keeps the files of the run in the journal, for other machines that share it.
    packer: Option<StatePacker>,
    /// The elapsed time of the clock at the last record, or when the run was opened.
    since: Duration,
}

/// Bounds of the interval at which a run with a time limit journals the elapsed time while nothing else happens.
const JOURNAL_TIME_MIN: Duration = Duration::from_secs(1);
const JOURNAL_TIME_MAX: Duration = Duration::from_secs(15);

/// All records of a run, in order. Prefer [`read_each_record`] where they are only looked through: a long run has many.
///
/// # Errors
/// When the journal cannot be read, or holds a record of a newer format.
pub fn read_records(journal: &dyn Journal, run: &RunId) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    read_each_record(journal, run, 0, |entry| entries.push(entry))?;
    Ok(entries)
}

/// Hands out the records of a run from a position on, in order.
///
/// # Errors
/// As [`read_records`].
pub fn read_each_record(
    journal: &dyn Journal,
    run: &RunId,
    from_seq: u64,
    mut each: impl FnMut(Entry),
) -> Result<(), Error> {
    let mut unreadable = None;
    journal.read_each(run, from_seq, &mut |row| match Record::parse(&row.body) {
        Ok(record) => {
            each(Entry { seq: row.seq, at_ms: row.at_ms, events: record.events });
            ControlFlow::Continue(())
        }
        Err(source) => {
            unreadable = Some(Error::Record { run: run.to_string(), seq: row.seq, source });
            ControlFlow::Break(())
        }
    })?;
    unreadable.map_or(Ok(()), Err)
}

/// The first record of a run, with its start; `None` if it has none.
///
/// # Errors
/// As [`read_records`].
pub fn read_first_record(journal: &dyn Journal, run: &RunId) -> Result<Option<Entry>, Error> {
    let mut first = None;
    journal.read_each(run, 0, &mut |row| {
        first = Some(row);
        ControlFlow::Break(())
    })?;
    let Some(row) = first else { return Ok(None) };
    match Record::parse(&row.body) {
        Ok(record) => Ok(Some(Entry { seq: row.seq, at_ms: row.at_ms, events: record.events })),
        Err(source) => Err(Error::Record { run: run.to_string(), seq: row.seq, source }),
    }
}

/// The state of a run after its last record.
///
/// # Errors
/// As [`read_records`].
pub fn read_run(journal: &dyn Journal, id: &RunId) -> Result<Run, Error> {
    Ok(fold_run(journal, id)?.0)
}

/// The state of a run after its last record, and when that was written.
fn fold_run(journal: &dyn Journal, id: &RunId) -> Result<(Run, i64), Error> {
    let (mut run, mut last) = (Run::default(), 0);
    read_each_record(journal, id, 0, |entry| {
        run.apply_record(&entry.events);
        last = entry.at_ms;
    })?;
    Ok((run, last))
}

impl RunWriter {
    /// Starts a run: writes its first record and every text that the record names.
    ///
    /// # Errors
    /// When the journal refuses.
    pub fn begin(
        journal: Arc<dyn Journal>,
        id: &RunId,
        flow: Arc<Flow>,
        start: Start,
        texts: Vec<Vec<u8>>,
        packer: Option<StatePacker>,
    ) -> Result<(RunWriter, Entry), Error> {
        RunWriter::begin_by(Arc::new(MachineClock::new()), journal, id, flow, start, texts, packer)
    }

    /// As [`RunWriter::begin`], with another clock than the machine's.
    ///
    /// # Errors
    /// As [`RunWriter::begin`].
    pub fn begin_by(
        clock: Arc<dyn Clock>,
        journal: Arc<dyn Journal>,
        id: &RunId,
        flow: Arc<Flow>,
        start: Start,
        texts: Vec<Vec<u8>>,
        packer: Option<StatePacker>,
    ) -> Result<(RunWriter, Entry), Error> {
        let lease = RunWriter::claim_lease(&*journal, id, clock.now_ms())?;
        let since = clock.elapsed();
        let mut writer = RunWriter { journal, lease, flow, run: Run::default(), clock, packer, since };
        let entry = writer.commit(Completion::Start(Box::new(start)), texts, &[])?;
        Ok((writer, entry.expect("a run that has not begun can begin")))
    }

    /// Starts a run from the first records of another one: copies them with their texts, and writes that it goes on from
    /// there, all of it or nothing.
    ///
    /// # Errors
    /// When the journal refuses, or the source run has no such record.
    pub fn fork(
        journal: Arc<dyn Journal>,
        id: &RunId,
        source: &RunId,
        flow: Arc<Flow>,
        fork: RunForked,
        packer: Option<StatePacker>,
    ) -> Result<RunWriter, Error> {
        let lease = RunWriter::claim_lease(&*journal, id, now_ms())?;
        let (mut run, mut last) = (Run::default(), 0);
        read_each_record(&*journal, source, 0, |entry| {
            if entry.seq < fork.records {
                run.apply_record(&entry.events);
                last = entry.at_ms;
            }
        })?;
        let clock = Arc::new(MachineClock::not_before(last));
        let since = clock.elapsed();
        let mut writer = RunWriter { journal, lease, flow, run, since, clock, packer };
        let (at_ms, count) = (writer.clock.now_ms(), fork.records);
        let mut completion = Completion::Forked(Box::new(fork));
        let packs = writer.pack_states(&mut completion)?;
        let recorded = RecordedCompletion::of(&completion);
        let Decision { events, blobs } = writer.run.advance(&writer.flow, at_ms, completion);
        let body = Record::encode(&recorded, &events);
        let blobs: Vec<Blob> = blobs.into_iter().chain(recorded.texts).chain(packs).map(Blob::new).collect();
        let record = NewRecord { at_ms, body: &body, blobs: &blobs, consumes: &[] };
        writer.journal.append_copy(&writer.lease, source, count, record)?;
        Ok(writer)
    }

    /// Creates a run in the journal and takes its lease, before anything is created for it on disk: what exists for a
    /// run without records is then known to be unused. Repeated by the same process it returns the same lease.
    ///
    /// # Errors
    /// When the journal refuses.
    pub fn claim_lease(journal: &dyn Journal, id: &RunId, now_ms: i64) -> Result<Lease, Error> {
        let owner = Owner::current();
        match journal.create(id, now_ms) {
            Err(exists @ cuegate_journal::Error::Exists { .. }) => match journal.holder(id)? {
                Some(lease) if lease.owner == owner && read_first_record(journal, id)?.is_none() => Ok(lease),
                // The process that was to start the run died before its first record.
                _ if read_first_record(journal, id)?.is_none() => Ok(journal.acquire(id, &owner)?),
                _ => Err(exists.into()),
            },
            created => {
                created?;
                Ok(journal.acquire(id, &owner)?)
            }
        }
    }

    /// Opens a started run that no other process holds.
    ///
    /// # Errors
    /// When another process holds the run, or the journal cannot be read.
    pub fn reopen(journal: Arc<dyn Journal>, id: &RunId, flow: Arc<Flow>) -> Result<RunWriter, Error> {
        let lease = journal.acquire(id, &Owner::current())?;
        // Read after taking the lease, so that no other process appends.
        let (run, last) = match fold_run(&*journal, id) {
            Ok(folded) => folded,
            Err(error) => {
                let _ = journal.release(&lease);
                return Err(error);
            }
        };
        let clock = Arc::new(MachineClock::not_before(last));
        Ok(RunWriter { journal, lease, flow, run, since: clock.elapsed(), clock, packer: None })
    }

    /// Keeps the files of the run in the journal from now on.
    pub fn set_packer(&mut self, packer: Option<StatePacker>) {
        self.packer = packer;
    }

    /// The right by which this process writes to the run.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Packs the states of the working tree that a completion reports. Returns the packs.
    fn pack_states(&mut self, completion: &mut Completion) -> Result<Vec<Vec<u8>>, Error> {
        let mut packs = Vec::new();
        if let Some(packer) = &mut self.packer {
            for state in completion.tree_states_mut() {
                packs.extend(packer.pack(state)?);
            }
        }
        Ok(packs)
    }

    /// The clock of the run.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    /// Resumes a run.
    ///
    /// # Errors
    /// When the journal refuses.
    pub fn resume(&mut self, resume: ResumeSettings, texts: Vec<Vec<u8>>) -> Result<Option<Entry>, Error> {
        self.commit(Completion::Resumed(Box::new(resume)), texts, &[])
    }

    /// Lets the engine decide on a completion, journals the resulting events, then applies them.
    ///
    /// # Errors
    /// When the journal fails; then nothing has changed.
    pub fn commit(
        &mut self,
        mut completion: Completion,
        texts: Vec<Vec<u8>>,
        consumes: &[MessageId],
    ) -> Result<Option<Entry>, Error> {
        let packs = self.pack_states(&mut completion)?;
        let at_ms = self.clock.now_ms();
        let driven = self.elapsed();
        let driven_ms = u64::try_from(driven.as_millis()).unwrap_or(u64::MAX);
        let seq = self.run.seq;
        let recorded = RecordedCompletion::of(&completion);
        let Decision { events, blobs } =
            self.run.advance(&self.flow, Moment { at_ms, driven_ms }, completion);
        if events.is_empty() {
            return Ok(None);
        }
        let body = Record::encode(&recorded, &events);
        let blobs: Vec<Blob> =
            texts.into_iter().chain(packs).chain(blobs).chain(recorded.texts).map(Blob::new).collect();
        let appended =
            self.journal.append(&self.lease, seq, NewRecord { at_ms, body: &body, blobs: &blobs, consumes });
        if let Err(error) = appended {
            // The run is ahead of its journal now. If that cannot be read either, the next append is refused.
            if let Ok((journaled, _)) = fold_run(&*self.journal, &self.lease.run) {
                self.run = journaled;
            }
            return Err(error.into());
        }
        // Whole milliseconds only: the next record includes the rest.
        self.since += Duration::from_millis(driven_ms);
        Ok(Some(Entry { seq, at_ms, events }))
    }

    /// How long the run was driven since the last record.
    fn elapsed(&self) -> Duration {
        self.clock.elapsed().saturating_sub(self.since)
    }

    /// The rest of the time limit; `None` without a limit.
    pub fn time_left(&self) -> Option<Duration> {
        let ledger = &self.run.spending.ledger;
        let most = Duration::from_millis(ledger.budget.driven_ms?);
        let spent = Duration::from_millis(ledger.spent.driven_ms);
        Some(most.saturating_sub(spent).saturating_sub(self.elapsed()))
    }

    /// Whether the elapsed time has to be journaled now, so that a kill cannot lose more of a limited time.
    pub fn must_journal_time(&self) -> bool {
        self.run.spending.ledger.budget.driven_ms.is_some_and(|most| {
            self.elapsed() >= Duration::from_millis(most / 50).clamp(JOURNAL_TIME_MIN, JOURNAL_TIME_MAX)
        })
    }

    /// The state.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The run's name.
    pub fn id(&self) -> &RunId {
        &self.lease.run
    }

    /// The flow that it runs.
    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// The journal that holds it.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Releases the run. Dropping the writer does the same.
    pub fn close(self) {}
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        // If the release fails, another process can take over the lease when this one has ended.
        let _ = self.journal.release(&self.lease);
    }
}
