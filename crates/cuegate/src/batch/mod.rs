//! Works through a queue: claims tasks, and runs a `cuegate run` in a process of its own for each.

mod child;
mod queue;

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::OsString,
    fs::{self, File, TryLockError},
    sync::Arc,
    time::Duration,
};

use cuegate_engine::{
    Batch, BatchEnd, BatchEvent, BatchStarted, Claimed, EndState, Progress, QueueSource, RunStopped, Spent,
    Stop, Task, WaitKind,
};
use cuegate_flow::model::BlobRef;
use cuegate_journal::{
    Journal, Liveness, RunId,
    sqlite::{Durability, Options, SqliteJournal},
};
use cuegate_runner::{BatchWriter, StateDir, worktree::claim::branch_of_issue};
use cuegate_view::RunState;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until},
};

use self::child::{Child, News};
pub use self::queue::{Known, Queue};
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
    /// Turns true when the user wants it to stop.
    stop: watch::Receiver<bool>,
    tell: &'t mut dyn FnMut(Told<'_>),
    /// Keeps other processes from taking tasks of the same file.
    _lock: Option<File>,
}

/// Something to print.
pub enum Told<'a> {
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
        tell: &'t mut dyn FnMut(Told<'_>),
    ) -> Result<Worker<'t>, Failure> {
        let lock = lock(home, &queue.source)?;
        let (id, batches) = (project::new_run_id(), open_journal(home)?);
        let first = BatchEvent::BatchStarted(Box::new(started));
        let writer = BatchWriter::create(batches.clone(), &id, first)?;
        let (home, children, left) = (home.clone(), BTreeMap::new(), VecDeque::new());
        let program = Program::current()?;
        Ok(Worker {
            id,
            queue,
            home,
            batches,
            runs,
            program,
            writer,
            children,
            left,
            stop,
            tell,
            _lock: lock,
        })
    }

    /// Resumes a batch.
    ///
    /// # Errors
    /// When another process works on it, or the journal refuses.
    pub fn resume(
        home: &StateDir,
        runs: Arc<dyn Journal>,
        queue: Queue,
        id: RunId,
        stop: watch::Receiver<bool>,
        tell: &'t mut dyn FnMut(Told<'_>),
    ) -> Result<Worker<'t>, Failure> {
        let lock = lock(home, &queue.source)?;
        let batches = open_journal(home)?;
        let mut writer = BatchWriter::open(batches.clone(), &id)?;
        writer.write(BatchEvent::BatchResumed { program: env!("CARGO_PKG_VERSION").to_owned() })?;
        let (home, children, left) = (home.clone(), BTreeMap::new(), VecDeque::new());
        let program = Program::current()?;
        let mut worker = Worker {
            id,
            queue,
            home,
            batches,
            runs,
            program,
            writer,
            children,
            left,
            stop,
            tell,
            _lock: lock,
        };
        worker.find_what_is_left()?;
        Ok(worker)
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
            if !*stop.borrow()
                && broken.is_none()
                && let Err(why) = self.begin_tasks(&send, &mut next_read).await?
            {
                (self.tell)(Told::Line(format!("no further task is taken: {why}")));
                broken = Some(why);
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
                Some(said) = news.recv() => self.hear(said).await?,
                _ = stop.changed(), if !stopping => {}
                () = sleep_until(read_at.unwrap_or_else(Instant::now)), if read_at.is_some() => {}
            }
        }
    }

    /// Whether a further task may start.
    fn has_room(&self) -> bool {
        let batch = self.writer.batch();
        !batch.is_failing()
            && batch.next.is_empty()
            && batch.running() < usize::from(batch.started().parallel.max(1))
    }

    /// Reads the queue if it is time to, and starts as many runs as may work now. Returns why no further one can start.
    async fn begin_tasks(
        &mut self,
        send: &mpsc::UnboundedSender<News>,
        next_read: &mut Option<Instant>,
    ) -> Result<Result<(), String>, Failure> {
        loop {
            let parallel = usize::from(self.writer.batch().started().parallel.max(1));
            if *self.stop.borrow() || self.children.len() >= parallel {
                return Ok(Ok(()));
            }
            if let Some(key) = self.left.pop_front() {
                self.go_on(&key, send).await?;
                continue;
            }
            if let Some(task) = self.writer.batch().next().cloned() {
                match self.claim(&task).await? {
                    // A task that was claimed meanwhile is started when the batch is resumed.
                    Ok(true) if !*self.stop.borrow() => self.start_run(&task, send)?,
                    Ok(_) => {}
                    Err(why) => return Ok(Err(why)),
                }
                continue;
            }
            let due = next_read.is_some_and(|at| at <= Instant::now());
            if !due || !self.has_room() {
                return Ok(Ok(()));
            }
            let watch = self.writer.batch().started().watch_s;
            match self.read_queue(watch.is_some()).await? {
                Ok(()) => {}
                Err(why) if watch.is_none() => return Ok(Err(why)),
                Err(why) => (self.tell)(Told::Line(format!("the queue is read again later: {why}"))),
            }
            *next_read = watch.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        }
    }

    /// Reads the queue. If that fails, it is tried again, unless it is read again anyway or was never read: then the
    /// cause is probably a mistake of the command.
    async fn read_queue(&mut self, is_watched: bool) -> Result<Result<(), String>, Failure> {
        let is_first = self.writer.batch().reads == 0;
        let tries = if is_watched || is_first { &TRIES[..0] } else { &TRIES[..] };
        let read = self.blocking(tries, |queue, known| queue.read(known)).await;
        match read {
            Ok(read) => {
                self.writer.write(BatchEvent::QueueRead(read))?;
                (self.tell)(Told::Queue(self.writer.batch()));
                Ok(Ok(()))
            }
            Err(why) => Ok(Err(why)),
        }
    }

    /// Claims a task; returns whether it was won.
    async fn claim(&mut self, task: &Task) -> Result<Result<bool, String>, Failure> {
        let known = self.writer.batch().taken.iter().find(|taken| taken.task.key == task.key);
        let commit = match known.filter(|known| known.progress == Progress::Claiming) {
            // A claim that may have been pushed before a crash is recognised by its commit.
            Some(known) => known.claim.clone(),
            None => {
                let (task, id) = (task.clone(), self.id.clone());
                match self.blocking(&[], move |queue, _| queue.claim_commit(&task, &id)).await {
                    Ok(commit) => commit,
                    Err(why) => return Ok(Err(why)),
                }
            }
        };
        let Some(commit) = commit else { return Ok(Ok(true)) };
        let key = task.key.clone();
        self.writer.write(BatchEvent::ClaimRequested { task: key.clone(), commit: commit.clone() })?;
        let wanted = task.clone();
        let claimed = self.blocking(&TRIES, move |queue, known| queue.claim(&wanted, &commit, known)).await;
        let claim = match claimed {
            Ok(claim) => claim,
            Err(why) => return Ok(Err(why)),
        };
        let won = claim == Claimed::Won;
        let line = match (&claim, &self.queue.source, task.issue) {
            (Claimed::Lost { by }, ..) => Some(format!("{}: not taken: {by}", task.name)),
            (Claimed::Won, QueueSource::Issues { remote, .. }, Some(issue)) => {
                Some(format!("{}: claimed, `{}` on `{remote}`", task.name, branch_of_issue(issue)))
            }
            (Claimed::Won, ..) => None,
        };
        self.writer.write(BatchEvent::ClaimDecided { task: key, claim })?;
        if let Some(line) = line {
            (self.tell)(Told::Line(line));
        }
        Ok(Ok(won))
    }

    /// Starts the run of a claimed task.
    fn start_run(&mut self, task: &Task, send: &mpsc::UnboundedSender<News>) -> Result<(), Failure> {
        let run = project::new_run_id();
        let key = task.key.clone();
        self.writer.write(BatchEvent::RunStarted { task: key.clone(), run: run.to_string() })?;
        let taken = self.writer.batch().taken.iter().find(|taken| taken.task.key == key);
        let claim = taken.and_then(|taken| taken.claim.clone());
        let started = self.writer.batch().started();
        let mut args: Vec<OsString> = vec!["run".into(), started.agent.clone().into(), "--worktree".into()];
        args.extend(started.args.iter().map(OsString::from));
        let here = started.here.clone();
        args.push(format!("--run-id={run}").into());
        args.push(format!("--batch-process={}", std::process::id()).into());
        if let Some(issue) = task.issue {
            args.push(format!("--issue={issue}").into());
            if let Some(commit) = claim {
                args.push(format!("--claim={}={commit}", branch_of_issue(issue)).into());
            }
        }
        for (name, value) in &task.set {
            args.push(format!("--set={name}={value}").into());
        }
        if task.text.is_some() {
            args.push("--input=-".into());
        }
        (self.tell)(Told::Line(format!("{}: run {run} starts: {}", task.name, task.title)));
        let at = self.home.root().join(here);
        let child =
            Child::start(self.program.path(), (&key, &task.name), args, &at, task.text.clone(), send.clone());
        self.children.insert(key, child);
        Ok(())
    }

    /// Continues what a former process left of a task.
    async fn go_on(&mut self, key: &str, send: &mpsc::UnboundedSender<News>) -> Result<(), Failure> {
        let Some(taken) = self.writer.batch().taken.iter().find(|taken| taken.task.key == key).cloned()
        else {
            return Ok(());
        };
        let task = taken.task.clone();
        match (&taken.progress, taken.run) {
            (Progress::Claiming, _) => {
                match self.claim(&task).await? {
                    Ok(true) => self.start_run(&task, send)?,
                    Ok(false) => {}
                    Err(why) => (self.tell)(Told::Line(format!("{}: {why}", task.name))),
                }
                Ok(())
            }
            (Progress::Lost(_), _) => Ok(()),
            (_, None) => self.start_run(&task, send),
            (_, Some(run)) => {
                self.wait_for_former(&run).await;
                let is = run_of(&*self.runs, &run);
                match is.stop {
                    Stop::NotStarted => return self.start_run(&task, send),
                    Stop::Suspended => {}
                    Stop::Completed | Stop::Failed | Stop::Waiting => {
                        let stopped = BatchEvent::RunStopped { task: key.to_owned(), stopped: is };
                        self.writer.write(stopped)?;
                        return self.settle(key).await;
                    }
                }
                self.writer.write(BatchEvent::RunStarted { task: key.to_owned(), run: run.clone() })?;
                (self.tell)(Told::Line(format!("{}: run {run} continues: {}", task.name, task.title)));
                let process = format!("--batch-process={}", std::process::id());
                let args = ["resume", &run, &process].map(OsString::from).to_vec();
                let child = Child::start(
                    self.program.path(),
                    (key, &task.name),
                    args,
                    self.home.root(),
                    None,
                    send.clone(),
                );
                self.children.insert(key.to_owned(), child);
                Ok(())
            }
        }
    }

    /// Waits until no process drives a run: one that a killed batch left suspends itself.
    async fn wait_for_former(&self, run: &str) {
        let Ok(id) = run.parse::<RunId>() else { return };
        let lives = || {
            let holder = self.runs.holder(&id).ok().flatten();
            holder.is_some_and(|lease| lease.owner.liveness() != Liveness::Dead)
        };
        let since = Instant::now();
        while lives() && since.elapsed() < FORMER_MAX {
            sleep(LOOK_EVERY).await;
        }
    }

    /// Handles what a process of a run tells.
    async fn hear(&mut self, news: News) -> Result<(), Failure> {
        let (key, trouble) = match news {
            News::Line { name, line } => {
                (self.tell)(Told::Output { name: &name, line: &line });
                return Ok(());
            }
            News::Ended { key, trouble } => (key, trouble),
        };
        self.children.remove(&key);
        let Some(taken) = self.writer.batch().taken.iter().find(|taken| taken.task.key == key) else {
            return Ok(());
        };
        let (name, run) = (taken.task.name.clone(), taken.run.clone().unwrap_or_default());
        let stopped = run_of(&*self.runs, &run);
        let why = trouble.map(|why| format!(" ({why})")).unwrap_or_default();
        (self.tell)(Told::Line(format!("{name}: run {run}: {}{why}", stopped.state)));
        self.writer.write(BatchEvent::RunStopped { task: key.clone(), stopped })?;
        self.settle(&key).await
    }

    /// Gives back the claim of a task that calls for no more work, or for which nothing was asked.
    async fn settle(&mut self, key: &str) -> Result<(), Failure> {
        let Some(taken) = self.writer.batch().taken.iter().find(|taken| taken.task.key == key) else {
            return Ok(());
        };
        let Progress::Stopped(stopped) = &taken.progress else { return Ok(()) };
        let whatever = match stopped.stop {
            Stop::Completed => false,
            Stop::NotStarted => true,
            _ => return Ok(()),
        };
        let Some(commit) = taken.claim.clone().filter(|_| !taken.released) else { return Ok(()) };
        let task = taken.task.clone();
        let name = task.name.clone();
        match self.blocking(&TRIES, move |queue, _| queue.release(&task, &commit, whatever)).await {
            Ok(true) => self.writer.write(BatchEvent::ClaimReleased { task: key.to_owned() })?,
            Ok(false) => {}
            Err(why) => (self.tell)(Told::Line(format!("{name}: {why}"))),
        }
        Ok(())
    }

    /// Finds the tasks that a former process of this batch did not finish.
    fn find_what_is_left(&mut self) -> Result<(), Failure> {
        for taken in self.writer.batch().taken.clone() {
            let is_left = match &taken.progress {
                Progress::Claiming | Progress::Claimed | Progress::Running => true,
                Progress::Lost(_) => false,
                // An answer may have come, a retry may have ended, a claim may have to be given back.
                Progress::Stopped(stopped) => {
                    let is = taken.run.as_ref().map(|run| run_of(&*self.runs, run));
                    let changed = is.is_some_and(|is| is != *stopped);
                    changed
                        || stopped.stop == Stop::Suspended
                        || stopped.stop == Stop::Completed && !taken.released
                }
            };
            if is_left {
                self.left.push_back(taken.task.key);
            }
        }
        Ok(())
    }

    /// Does something with the queue that may take time, while the runs go on. It is not tried again after a stop, which
    /// at a terminal also kills git.
    async fn blocking<T: Send + 'static>(
        &self,
        tries: &[Duration],
        act: impl Fn(&Queue, &Known<'_>) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<T, String> {
        let act = Arc::new(act);
        let mut waits = tries.iter();
        loop {
            let (queue, batches, runs, id) =
                (self.queue.clone(), self.batches.clone(), self.runs.clone(), self.id.clone());
            let (agent, act) = (self.writer.batch().started().agent.clone(), act.clone());
            let done = tokio::task::spawn_blocking(move || {
                let known = Known { batches: &*batches, runs: &*runs, batch: &id, agent: &agent };
                act(&queue, &known)
            });
            let done = done.await.unwrap_or_else(|error| Err(error.to_string()));
            let mut stop = self.stop.clone();
            match (done, waits.next()) {
                (Err(_), Some(wait)) if !*stop.borrow() => {
                    tokio::select! {
                        () = sleep(*wait) => {}
                        _ = stop.changed() => {}
                    }
                }
                (done, _) => return done,
            }
        }
    }
}

/// Locks a file of tasks: two processes would take the same ones.
fn lock(home: &StateDir, source: &QueueSource) -> Result<Option<File>, Failure> {
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

/// Opens the journal of the batches of a project.
///
/// # Errors
/// When it cannot be opened.
pub fn open_journal(home: &StateDir) -> Result<Arc<dyn Journal>, Failure> {
    let folder = home.batches();
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::environment(format!("failed to create `{}`: {error}", folder.display())))?;
    let options = Options { durability: Durability::Synced };
    Ok(Arc::new(SqliteJournal::open(folder.join("journal.db"), options)?))
}

/// The state of a run, from its journal.
pub fn run_of(journal: &dyn Journal, run: &str) -> RunStopped {
    let not_started =
        || RunStopped { stop: Stop::NotStarted, state: "not started".to_owned(), spent: Spent::default() };
    let Ok(id) = run.parse::<RunId>() else { return not_started() };
    let Ok((view, _)) = project::view_of(journal, &id) else { return not_started() };
    if view.started_ms.is_none() {
        return not_started();
    }
    let stop = match &view.state {
        RunState::Ended(EndState::Completed) => Stop::Completed,
        RunState::Ended(_) => Stop::Failed,
        RunState::Suspended(waiting) if waiting.kind == WaitKind::Person && !view.is_answered => {
            Stop::Waiting
        }
        _ => Stop::Suspended,
    };
    let (ledger, usage) = (view.ledger.spent, &view.usage);
    let usd = usage.cost_usd.unwrap_or_default().max(0.0) * 1e6;
    let spent = Spent {
        usd_micro: ledger.usd_micro.max(usd.round() as u64),
        tokens: ledger.tokens.max(usage.input_tokens.saturating_add(usage.output_tokens)),
        asks: ledger.asks.max(view.asks.total()),
        driven_ms: ledger.driven_ms,
    };
    RunStopped { stop, state: view.standing(), spent }
}
