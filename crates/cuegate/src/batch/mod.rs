//! Works through a queue: claims tasks, and runs a `cuegate run` in a process of its own for each.

mod child;
mod queue;
pub(crate) mod shown;
mod tasks;

use std::{
    collections::{BTreeMap, VecDeque},
    fs::{self, File, TryLockError},
    sync::Arc,
    time::Duration,
};

use cuegate_engine::{
    Batch, BatchEnd, BatchEvent, BatchStarted, EndState, Progress, QueueSource, RunStopped, SpentBudget,
    StopKind, TakenTask, WaitKind,
};
use cuegate_flow::model::BlobRef;
use cuegate_journal::{Journal, Liveness, RunId, log::Durability};
use cuegate_runner::{BatchWriter, StateDir};
use cuegate_view::RunState;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use self::child::Child;
pub use self::queue::{Queue, QueueContext};
use crate::{Failure, Program, project};

/// The waits before a queue that could not be read, or a claim that could not be pushed, is tried again.
const TRIES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20)];
/// How long a resumed batch waits for the processes of its former runs to end.
const FORMER_MAX: Duration = Duration::from_secs(30);
/// How often a process that this one did not start is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A batch that this process works on.
pub struct Worker<'t> {
    id: RunId,
    queue: Queue,
    home: StateDir,
    batches: Arc<dyn Journal>,
    runs: Arc<dyn Journal>,
    /// As it was when the batch began: an upgrade meanwhile must not break it.
    program: Program,
    writer: BatchWriter,
    children: BTreeMap<String, Child>,
    /// The keys of tasks whose runs are continued first.
    left: VecDeque<String>,
    /// Whether runs are continued of whose process nobody here can see whether it lives.
    takes_over: bool,
    /// Turns true when the user wants it to stop.
    stop: watch::Receiver<bool>,
    tell: &'t mut dyn FnMut(BatchMessage<'_>),
    /// Keeps other processes from taking tasks of the same file.
    _lock: Option<File>,
}

/// Something to print.
pub enum BatchMessage<'a> {
    /// The queue was read.
    Queue(&'a Batch),
    /// Something happened to a task or the batch.
    Line(String),
    /// The process of a task's run printed a line.
    Output {
        /// The name of the task.
        name: &'a str,
        /// The line.
        line: &'a str,
    },
}

impl<'t> Worker<'t> {
    /// Starts a batch.
    ///
    /// # Errors
    /// When another process takes tasks of the same file, or the journal refuses.
    pub fn start(
        home: &StateDir,
        runs: Arc<dyn Journal>,
        queue: Queue,
        started: BatchStarted,
        stop: watch::Receiver<bool>,
        tell: &'t mut dyn FnMut(BatchMessage<'_>),
    ) -> Result<Worker<'t>, Failure> {
        Worker::open((home, runs, queue), stop, tell, |batches| {
            let id = project::new_run_id();
            let first = BatchEvent::BatchStarted(Box::new(started));
            let writer = BatchWriter::create(batches, &id, first)?;
            Ok((id, writer))
        })
    }

    /// Resumes a batch. `takes_over`: also if nobody here can see whether its former process lives.
    ///
    /// # Errors
    /// When another process works on it, or the journal refuses.
    pub fn resume(
        parts: (&StateDir, Arc<dyn Journal>, Queue),
        id: RunId,
        takes_over: bool,
        stop: watch::Receiver<bool>,
        tell: &'t mut dyn FnMut(BatchMessage<'_>),
    ) -> Result<Worker<'t>, Failure> {
        let mut worker = Worker::open(parts, stop, tell, |batches| {
            if takes_over
                && let Some(lease) = batches.holder(&id)?
                && lease.owner.liveness() == Liveness::Unknown
            {
                batches.release(&lease)?;
            }
            let mut writer =
                BatchWriter::open(batches, &id).map_err(|error| explain_held_batch(&id, error))?;
            writer.write(BatchEvent::BatchResumed { program: env!("CARGO_PKG_VERSION").to_owned() })?;
            Ok((id, writer))
        })?;
        worker.takes_over = takes_over;
        worker.find_what_is_left();
        Ok(worker)
    }

    /// Locks the queue and opens the journal of the batches; `begin` creates or opens the batch in it.
    fn open(
        (home, runs, queue): (&StateDir, Arc<dyn Journal>, Queue),
        stop: watch::Receiver<bool>,
        tell: &'t mut dyn FnMut(BatchMessage<'_>),
        begin: impl FnOnce(Arc<dyn Journal>) -> Result<(RunId, BatchWriter), Failure>,
    ) -> Result<Worker<'t>, Failure> {
        let lock = lock_task_file(home, &queue.source)?;
        let batches = open_journal(home)?;
        let (id, writer) = begin(batches.clone())?;
        Ok(Worker {
            id,
            queue,
            home: home.clone(),
            batches,
            runs,
            program: Program::current()?,
            writer,
            children: BTreeMap::new(),
            left: VecDeque::new(),
            takes_over: false,
            stop,
            tell,
            _lock: lock,
        })
    }

    /// The batch.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Its state.
    pub fn batch(&self) -> &Batch {
        self.writer.batch()
    }

    /// Works until nothing is left to do, or until it is stopped.
    ///
    /// # Errors
    /// When the journal fails. The runs in progress are suspended then.
    pub async fn drive(&mut self) -> Result<(), Failure> {
        let (send, mut news) = mpsc::unbounded_channel();
        let mut stop = self.stop.clone();
        let mut next_read = Some(Instant::now());
        let mut broken = None;
        loop {
            let more = !*stop.borrow() && broken.is_none();
            match if more { self.begin_tasks(&send, &mut next_read).await } else { Ok(()) } {
                Ok(()) | Err(HaltReason::Interrupted) => {}
                Err(HaltReason::Broken(why)) => {
                    (self.tell)(BatchMessage::Line(format!("no further task is taken: {why}")));
                    broken = Some(why);
                }
                Err(HaltReason::Failed(failure)) => return Err(failure),
            }
            let stopping = *stop.borrow();
            if stopping {
                self.children.values_mut().for_each(Child::interrupt);
            }
            if self.children.is_empty() {
                let batch = self.writer.batch();
                let end = if stopping {
                    Some(BatchEnd::Interrupted)
                } else if let Some(why) = &broken {
                    Some(BatchEnd::Broken(why.clone()))
                } else if batch.is_failing() {
                    Some(BatchEnd::Failing)
                } else if next_read.is_some() {
                    None
                } else if !batch.started().once && batch.found > 0 {
                    // New tasks may have come meanwhile, and what the runs did not use is left of the budget.
                    next_read = Some(Instant::now());
                    continue;
                } else {
                    Some(BatchEnd::Done)
                };
                if let Some(end) = end {
                    self.writer.write(BatchEvent::BatchStopped { end })?;
                    return Ok(());
                }
            }
            let read_at = next_read.filter(|_| !stopping && broken.is_none() && self.has_room());
            tokio::select! {
                Some(said) = news.recv() => match self.hear(said).await {
                    Ok(()) | Err(HaltReason::Interrupted) => {}
                    Err(HaltReason::Broken(why)) => {
                        (self.tell)(BatchMessage::Line(why.clone()));
                        broken.get_or_insert(why);
                    }
                    Err(HaltReason::Failed(failure)) => return Err(failure),
                },
                _ = stop.changed(), if !stopping => {}
                () = sleep_until(read_at.unwrap_or_else(Instant::now)), if read_at.is_some() => {}
            }
        }
    }
}

/// Why something about a task cannot go on.
enum HaltReason {
    /// The user wants the batch to stop.
    Interrupted,
    /// The queue, a claim or a run cannot be read or changed.
    Broken(String),
    /// The journal of the batch failed.
    Failed(Failure),
}

impl From<cuegate_runner::Error> for HaltReason {
    fn from(error: cuegate_runner::Error) -> HaltReason {
        HaltReason::Failed(error.into())
    }
}

/// Locks a file of tasks: two processes would take the same ones.
fn lock_task_file(home: &StateDir, source: &QueueSource) -> Result<Option<File>, Failure> {
    let QueueSource::File { path } = source else { return Ok(None) };
    let folder = home.batches();
    let name = format!("{}.lock", &BlobRef::for_bytes(path.as_bytes()).digest[..16]);
    let failed = |error| Failure::environment(format!("failed to lock `{path}`: {error}"));
    fs::create_dir_all(&folder).map_err(failed)?;
    let file = File::create(folder.join(name)).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Failure::usage(
            format!("another `cuegate work` takes tasks from `{path}`"),
            "wait until it has ended; `--parallel N` lets one work on several tasks at a time",
        )),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Names the batch, not a run, if another process works on it.
fn explain_held_batch(id: &RunId, error: cuegate_runner::Error) -> Failure {
    match error {
        cuegate_runner::Error::Journal(cuegate_journal::Error::Held { lease }) => Failure::usage(
            format!("another process works on batch {id}: {}", lease.owner),
            match lease.owner.liveness() {
                Liveness::Unknown => {
                    "if its container or machine is gone: `cuegate work --resume --take-over`".to_owned()
                }
                _ => "`cuegate work --show` prints its tasks; Ctrl-C ends it there".to_owned(),
            },
        ),
        error => error.into(),
    }
}

/// Opens the journal of the batches of a project.
///
/// # Errors
/// When it cannot be opened.
pub fn open_journal(home: &StateDir) -> Result<Arc<dyn Journal>, Failure> {
    let journal = home.open_batches(Some(Durability::Synced))?;
    journal.ok_or_else(|| Failure::environment("the journal of the batches cannot be made".to_owned()))
}

/// The validator that ended a failed run and failed before its first call as well: the next run would end in the same way.
pub fn failed_before(journal: &dyn Journal, run: &str) -> Option<String> {
    let view = project::view_of(journal, &run.parse().ok()?).ok()?;
    let is_failed = matches!(view.state, RunState::Ended(EndState::Failed | EndState::Exhausted));
    let last = view.validators.last().filter(|last| is_failed && !last.passed)?;
    view.failed_before.iter().any(|name| **name == *last.validator).then(|| last.validator.to_string())
}

/// The state of the run of a task; `None` before it has one. That of a run which was removed since is what the batch recorded.
///
/// # Errors
/// As [`run_of`].
pub(crate) fn run_of_task(journal: &dyn Journal, taken: &TakenTask) -> Option<Result<RunStopped, String>> {
    let is = run_of(journal, taken.run.as_ref()?);
    let is_gone = is.as_ref().is_ok_and(|is| is.stop == StopKind::NotStarted);
    Some(match &taken.progress {
        Progress::Stopped(stopped) if is_gone => Ok(stopped.clone()),
        _ => is,
    })
}

/// The state of a run, from its journal.
///
/// # Errors
/// When its records cannot be read. Nobody knows then what it did.
pub fn run_of(journal: &dyn Journal, run: &str) -> Result<RunStopped, String> {
    let not_started = || RunStopped {
        stop: StopKind::NotStarted,
        state: "not started".to_owned(),
        spent: SpentBudget::default(),
    };
    let unreadable = |why: String| format!("run {run} cannot be read: {why}");
    let id: RunId = run.parse().map_err(|_| unreadable("its name is damaged".to_owned()))?;
    let known = journal.runs().map_err(|error| unreadable(error.to_string()))?;
    let known = known.into_iter().find(|known| known.run == id);
    if let Some(damage) = known.as_ref().and_then(|known| known.damage.as_ref()) {
        return Err(unreadable(damage.to_string()));
    }
    if known.is_none_or(|known| !known.has_records) {
        return Ok(not_started());
    }
    let view = project::view_of(journal, &id).map_err(|failure| unreadable(failure.message))?;
    let stop = match &view.state {
        RunState::Ended(EndState::Completed) => StopKind::Completed,
        RunState::Ended(_) => StopKind::Failed,
        RunState::Suspended(waiting) if waiting.kind == WaitKind::Person && !view.is_answered => {
            StopKind::Waiting
        }
        _ => StopKind::Suspended,
    };
    let (ledger, usage) = (view.ledger.spent, &view.usage);
    let usd = usage.cost_usd.unwrap_or_default().max(0.0) * 1e6;
    let spent = SpentBudget {
        usd_micro: ledger.usd_micro.max(usd.round() as u64),
        tokens: ledger.tokens.max(usage.input_tokens.saturating_add(usage.output_tokens)),
        asks: ledger.asks.max(view.asks.total()),
        driven_ms: ledger.driven_ms,
    };
    Ok(RunStopped { stop, state: view.standing(), spent })
}
