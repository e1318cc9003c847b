//! One run: its records as they come, and what its agents do right now.

use std::{collections::BTreeMap, ops::ControlFlow};

use cuegate_engine::{CommandId, Event};
use cuegate_journal::RunId;
use cuegate_runner::{
    ActivityReader, Error, TimedActivity, has_inbox_answer, now_ms, output_so_far, read_each_record,
};
use cuegate_view::{Liveness, RunFold, RunState, RunView, SpanKind, Spans, StampedRecord};

use crate::{Observer, observer::liveness_of_owner};

/// How many activities of an ask are kept.
const ACTIVITIES_MAX: usize = 200;

/// A command in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningCommand {
    /// Its id.
    pub command: CommandId,
    /// Whether it is an ask; otherwise a validator or an effect.
    pub is_ask: bool,
    /// The step, validator or action.
    pub name: String,
    /// The kind of the ask.
    pub detail: String,
    /// Its beginning, in milliseconds since 1970.
    pub from_ms: i64,
    /// What the agent did so far, oldest first.
    pub activities: Vec<TimedActivity>,
    /// The last lines that a validator has printed.
    pub output: Vec<String>,
}

/// Reads a run as it goes on.
#[derive(Debug)]
pub struct RunReader {
    run: RunId,
    /// The number of records that were read.
    count: u64,
    fold: RunFold,
    spans: Spans,
    live: Liveness,
    is_answered: bool,
    task: Option<String>,
    readers: BTreeMap<CommandId, (ActivityReader, Vec<TimedActivity>)>,
}

impl RunReader {
    pub(crate) fn new(run: RunId) -> RunReader {
        RunReader {
            fold: RunFold::new(run.as_str()),
            run,
            count: 0,
            spans: Spans::default(),
            live: Liveness::None,
            is_answered: false,
            task: None,
            readers: BTreeMap::new(),
        }
    }

    /// The run.
    pub fn id(&self) -> &RunId {
        &self.run
    }

    /// Reads the new records, and whether a process drives the run. Returns whether anything changed.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn refresh(&mut self, observer: &Observer) -> Result<bool, Error> {
        let Some(journal) = observer.journal()? else { return Ok(false) };
        let live = liveness_of_owner(journal.holder(&self.run)?.as_ref().map(|lease| &lease.owner));
        let is_answered = has_inbox_answer(&*journal, &self.run)?;
        let (before, mut task) = (self.count, None);
        let read = read_each_record(&*journal, &self.run, self.count, |entry| {
            if let (0, Some(Event::RunStarted(started))) = (entry.seq, entry.events.first()) {
                task.clone_from(&started.task);
            }
            let stamped = StampedRecord { seq: entry.seq, at_ms: entry.at_ms, events: entry.events };
            self.fold.apply(&stamped);
            self.fold.forget_visits();
            self.spans.apply(&stamped);
            self.count = stamped.seq + 1;
        });
        if let Some(task) = task {
            self.task = observer.text(&self.run, &task);
        }
        read?;
        let changed = self.count > before || live != self.live || is_answered != self.is_answered;
        (self.live, self.is_answered) = (live, is_answered);
        Ok(changed)
    }

    /// The number of its records so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Hands out its records from a position on, until `goes_on` says that it is enough. They are read from the journal
    /// again: a long run has many.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn read_records(
        &self,
        observer: &Observer,
        from_seq: u64,
        mut goes_on: impl FnMut(&StampedRecord) -> bool,
    ) -> Result<(), Error> {
        let Some(journal) = observer.journal()? else { return Ok(()) };
        let mut unreadable = None;
        journal.read_each(&self.run, from_seq, &mut |row| match StampedRecord::decode(
            row.seq, row.at_ms, &row.body,
        ) {
            Ok(record) if !goes_on(&record) => ControlFlow::Break(()),
            Ok(_) => ControlFlow::Continue(()),
            Err(source) => {
                unreadable = Some(Error::Record { run: self.run.to_string(), seq: row.seq, source });
                ControlFlow::Break(())
            }
        })?;
        unreadable.map_or(Ok(()), Err)
    }

    /// Its spans so far.
    pub fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Whether a process drives it.
    pub fn live(&self) -> Liveness {
        self.live
    }

    /// Whether it has an answer that it has not read yet.
    pub fn has_answer(&self) -> bool {
        self.is_answered
    }

    /// Its state, without rows of visits: its spans have them.
    pub fn view(&self) -> RunView {
        self.complete(self.fold.view(self.live))
    }

    /// Its state with the rows of its visits, for which the journal is read again.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn view_with_visits(&self, observer: &Observer) -> Result<RunView, Error> {
        let mut fold = RunFold::new(self.run.as_str());
        self.read_records(observer, 0, |record| {
            fold.apply(record);
            true
        })?;
        Ok(self.complete(fold.into_view(self.live)))
    }

    fn complete(&self, view: RunView) -> RunView {
        let (task, seen_ms) = (self.task.clone(), Some(now_ms()));
        RunView { is_answered: self.is_answered, task, seen_ms, ..view }
    }

    /// What is in progress, with what agents did and validators printed since the command started. Nothing if no process
    /// drives the run.
    pub fn working(&mut self, observer: &Observer, output_lines: usize) -> Vec<RunningCommand> {
        let goes_on = self.live == Liveness::Alive && matches!(self.fold.state(), RunState::Running);
        let open = self.spans.open().filter(|_| goes_on);
        let mut working: Vec<RunningCommand> = open
            .filter_map(|span| {
                Some(RunningCommand {
                    command: span.command?,
                    is_ask: span.kind == SpanKind::Ask,
                    name: span.name.to_string(),
                    detail: span.detail.to_string(),
                    from_ms: span.from_ms,
                    activities: Vec::new(),
                    output: Vec::new(),
                })
            })
            .collect();
        working.sort_by_key(|working| working.command);
        self.readers.retain(|command, _| working.iter().any(|working| working.command == *command));
        for working in &mut working {
            if !working.is_ask {
                working.output = output_so_far(observer.home(), &self.run, working.command, output_lines);
                continue;
            }
            let reader = || (ActivityReader::new(observer.home(), &self.run, working.command), Vec::new());
            let (reader, seen) = self.readers.entry(working.command).or_insert_with(reader);
            seen.extend(reader.read_new());
            seen.drain(..seen.len().saturating_sub(ACTIVITIES_MAX));
            working.activities.clone_from(seen);
        }
        working
    }
}
