//! What a batch does with its tasks: reads the queue, claims, starts and continues runs, and notes how they stop.

use std::{ffi::OsString, path::Path, sync::Arc, time::Duration};

use cuegate_engine::{BatchEvent, ClaimOutcome, Progress, QueueSource, RunStopped, StopKind, Task};
use cuegate_journal::{Liveness, RunId};
use cuegate_runner::worktree::claim::branch_of_issue;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use super::{
    BatchMessage, FORMER_MAX, HaltReason, LOOK_EVERY, Queue, QueueContext, TRIES, Worker,
    child::{Child, ChildMessage},
    failed_before,
    queue::is_task_list,
    run_of, run_of_task,
};
use crate::{exit, project, task_queue::TaktQueue};

type Sender = mpsc::UnboundedSender<ChildMessage>;

impl Worker<'_> {
    /// Whether a further task may start.
    pub(super) fn has_room(&self) -> bool {
        let batch = self.writer.batch();
        !batch.is_failing()
            && (batch.next.is_empty() || batch.is_spent())
            && batch.running() < usize::from(batch.started().parallel.max(1))
    }

    /// Reads the queue if it is time to, and starts as many runs as may work now.
    pub(super) async fn begin_tasks(
        &mut self,
        send: &Sender,
        next_read: &mut Option<Instant>,
    ) -> Result<(), HaltReason> {
        loop {
            let parallel = usize::from(self.writer.batch().started().parallel.max(1));
            if *self.stop.borrow() || self.children.len() >= parallel {
                return Ok(());
            }
            if let Some(key) = self.left.pop_front() {
                self.go_on(&key, send).await?;
                continue;
            }
            if let Some(task) = self.writer.batch().next().cloned() {
                if self.claim(&task).await? {
                    self.start_run(&task, send)?;
                }
                continue;
            }
            let due = next_read.is_some_and(|at| at <= Instant::now());
            if !due || !self.has_room() {
                return Ok(());
            }
            let watch = self.writer.batch().started().watch_s;
            match self.read_queue(watch.is_some()).await {
                Err(HaltReason::Broken(why)) if watch.is_some() => {
                    (self.tell)(BatchMessage::Line(format!("the queue is read again later: {why}")));
                }
                read => read?,
            }
            *next_read = watch.map(|seconds| Instant::now() + Duration::from_secs(seconds));
            self.find_answered();
        }
    }

    /// Reads the queue. If that fails, it is tried again, unless it is read again anyway or was never read: then the
    /// cause is probably a mistake of the command.
    async fn read_queue(&mut self, is_watched: bool) -> Result<(), HaltReason> {
        let is_first = self.writer.batch().reads == 0;
        let tries = if is_watched || is_first { &TRIES[..0] } else { &TRIES[..] };
        let read = self.blocking(tries, |queue, known| queue.read(known)).await?;
        self.writer.write(BatchEvent::QueueRead(read))?;
        (self.tell)(BatchMessage::Queue(self.writer.batch()));
        Ok(())
    }

    /// Claims a task; returns whether it was won and its run may start.
    async fn claim(&mut self, task: &Task) -> Result<bool, HaltReason> {
        let known = self.writer.batch().taken.iter().find(|taken| taken.task.key == task.key);
        let commit = match known.filter(|known| known.is_claimed()) {
            // A claim that may have been pushed before a crash is recognised by its commit.
            Some(known) => known.claim.clone(),
            None => {
                let (task, id) = (task.clone(), self.id.clone());
                self.blocking(&[], move |queue, _| queue.claim_commit(&task, &id)).await?
            }
        };
        let Some(commit) = commit else { return Ok(true) };
        let key = task.key.clone();
        self.writer.write(BatchEvent::ClaimRequested { task: key.clone(), commit: commit.clone() })?;
        let wanted = task.clone();
        let claim = self.blocking(&TRIES, move |queue, known| queue.claim(&wanted, &commit, known)).await?;
        let won = claim == ClaimOutcome::Won;
        let line = match (&claim, &self.queue.source, task.issue) {
            (ClaimOutcome::Lost { by }, ..) => Some(format!("{}: not taken: {by}", task.name)),
            (ClaimOutcome::Won, QueueSource::Issues { remote, .. }, Some(issue)) => {
                Some(format!("{}: claimed, `{}` on `{remote}`", task.name, branch_of_issue(issue)))
            }
            (ClaimOutcome::Won, ..) => None,
        };
        self.writer.write(BatchEvent::ClaimDecided { task: key, claim })?;
        if let Some(line) = line {
            (self.tell)(BatchMessage::Line(line));
        }
        match won && *self.stop.borrow() {
            // It is started when the batch is resumed.
            true => Err(HaltReason::Interrupted),
            false => Ok(won),
        }
    }

    /// Starts the run of a claimed task.
    fn start_run(&mut self, task: &Task, send: &Sender) -> Result<(), HaltReason> {
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
            if let QueueSource::Issues { label, .. } = &started.source {
                args.push(format!("--released-by={label}").into());
            }
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
        self.note_status(&key, "running", run.as_str(), false);
        (self.tell)(BatchMessage::Line(format!("{}: run {run} starts: {}", task.name, task.title)));
        let at = self.home.root().join(here);
        let child =
            Child::start(self.program.path(), (&key, &task.name), args, &at, task.text.clone(), send.clone());
        self.children.insert(key, child);
        Ok(())
    }

    /// Continues what a former process left of a task.
    async fn go_on(&mut self, key: &str, send: &Sender) -> Result<(), HaltReason> {
        let taken = self.writer.batch().taken.iter().find(|taken| taken.task.key == key).cloned();
        let Some(taken) = taken else { return Ok(()) };
        let task = taken.task.clone();
        if matches!(taken.progress, Progress::Lost(_)) {
            return Ok(());
        }
        let is = match &taken.run {
            Some(run) => {
                self.wait_for_former(run).await?;
                run_of(&*self.runs, run).map_err(HaltReason::Broken)?.stop
            }
            None => StopKind::NotStarted,
        };
        if matches!(is, StopKind::Completed | StopKind::Failed | StopKind::Waiting) {
            let run = taken.run.unwrap_or_default();
            let stopped = run_of(&*self.runs, &run).map_err(HaltReason::Broken)?;
            self.note_stopped(key, &run, &stopped, false);
            self.writer.write(BatchEvent::RunStopped { task: key.to_owned(), stopped })?;
            return self.settle(key).await;
        }
        // Somebody may have taken it meanwhile.
        if !self.is_still_ours(&task, taken.claim.clone(), taken.run.clone()).await? {
            return Ok(());
        }
        let (Some(run), StopKind::Suspended) = (taken.run, is) else {
            return self.start_run(&task, send);
        };
        self.writer.write(BatchEvent::RunStarted { task: key.to_owned(), run: run.clone() })?;
        (self.tell)(BatchMessage::Line(format!("{}: run {run} continues: {}", task.name, task.title)));
        let process = format!("--batch-process={}", std::process::id());
        let mut args = ["resume", &run, &process].map(OsString::from).to_vec();
        args.extend(self.takes_over.then(|| "--take-over".into()));
        let (program, root) = (self.program.path(), self.home.root());
        let child = Child::start(program, (key, &task.name), args, root, None, send.clone());
        self.children.insert(key.to_owned(), child);
        Ok(())
    }

    /// Whether a task that this batch took before still belongs to it. A claim that is gone is pushed again.
    async fn is_still_ours(
        &mut self,
        task: &Task,
        claim: Option<String>,
        run: Option<String>,
    ) -> Result<bool, HaltReason> {
        let wanted = task.clone();
        let held = self.blocking(&TRIES, move |queue, known| {
            queue.is_held(&wanted, claim.as_deref(), run.as_deref(), known)
        });
        match held.await? {
            Some(ClaimOutcome::Won) => Ok(true),
            Some(ClaimOutcome::Lost { by }) => {
                (self.tell)(BatchMessage::Line(format!("{}: not continued: {by}", task.name)));
                let lost = ClaimOutcome::Lost { by };
                self.writer.write(BatchEvent::ClaimDecided { task: task.key.clone(), claim: lost })?;
                Ok(false)
            }
            None => self.claim(task).await,
        }
    }

    /// Waits until no process drives a run: one that a killed batch left suspends itself.
    async fn wait_for_former(&mut self, run: &str) -> Result<(), HaltReason> {
        let Ok(id) = run.parse::<RunId>() else { return Ok(()) };
        let since = Instant::now();
        let mut stop = self.stop.clone();
        loop {
            let holder = self.runs.holder(&id).ok().flatten();
            let lives = holder.is_some_and(|lease| match lease.owner.liveness() {
                Liveness::Alive => true,
                Liveness::Unknown => !self.takes_over,
                Liveness::Dead => false,
            });
            if !lives || since.elapsed() >= FORMER_MAX {
                return Ok(());
            }
            if *stop.borrow() {
                return Err(HaltReason::Interrupted);
            }
            tokio::select! {
                () = sleep(LOOK_EVERY) => {}
                _ = stop.changed() => {}
            }
        }
    }

    /// Handles what a process of a run tells.
    pub(super) async fn hear(&mut self, news: ChildMessage) -> Result<(), HaltReason> {
        let (key, trouble, code) = match news {
            ChildMessage::Line { name, line } => {
                (self.tell)(BatchMessage::Output { name: &name, line: &line });
                return Ok(());
            }
            ChildMessage::Ended { key, trouble, code } => (key, trouble, code),
        };
        self.children.remove(&key);
        let Some(taken) = self.writer.batch().taken.iter().find(|taken| taken.task.key == key) else {
            return Ok(());
        };
        let (name, run) = (taken.task.name.clone(), taken.run.clone().unwrap_or_default());
        let stopped = run_of(&*self.runs, &run).map_err(HaltReason::Broken)?;
        let why = trouble.map(|why| format!(" ({why})")).unwrap_or_default();
        (self.tell)(BatchMessage::Line(format!("{name}: run {run}: {}{why}", stopped.state)));
        let is_refused = stopped.stop == StopKind::NotStarted && code == Some(i32::from(exit::ENVIRONMENT));
        self.note_stopped(&key, &run, &stopped, false);
        self.writer.write(BatchEvent::RunStopped { task: key.clone(), stopped })?;
        self.settle(&key).await?;
        // The other tasks would end in the same way.
        if let Some(validator) = failed_before(&*self.runs, &run) {
            return Err(HaltReason::Broken(format!(
                "run {run} ended by `{validator}`, which failed before its first call: fix that first"
            )));
        }
        match is_refused {
            true => Err(HaltReason::Broken(format!("run {run} cannot start here; the reason is above"))),
            false => Ok(()),
        }
    }

    /// Notes in TAKT's list of tasks what became of one.
    fn note_status(&mut self, task: &str, status: &str, run: &str, is_late: bool) {
        let QueueSource::File { path } = &self.queue.source else { return };
        if !is_task_list(Path::new(path)) {
            return;
        }
        if let Err(why) = TaktQueue::in_project(&self.home).note_status(task, status, run, is_late) {
            (self.tell)(BatchMessage::Line(format!("{task}: its state is not noted: {why}")));
        }
    }

    /// Notes there how a run stopped. One that waits is still running.
    fn note_stopped(&mut self, task: &str, run: &str, stopped: &RunStopped, is_late: bool) {
        let status = match stopped.stop {
            StopKind::Completed => "completed",
            StopKind::Failed if stopped.state == "stopped at a limit" => "exceeded",
            StopKind::Failed => "failed",
            StopKind::NotStarted => "pending",
            StopKind::Waiting | StopKind::Suspended => return,
        };
        self.note_status(task, status, run, is_late);
    }

    /// Gives back the claim of a task that calls for no more work, or for which no agent was called.
    async fn settle(&mut self, key: &str) -> Result<(), HaltReason> {
        let Some(taken) = self.writer.batch().taken.iter().find(|taken| taken.task.key == key) else {
            return Ok(());
        };
        let Progress::Stopped(stopped) = &taken.progress else { return Ok(()) };
        let whatever = match stopped.stop {
            StopKind::Completed => false,
            StopKind::NotStarted => true,
            _ => return Ok(()),
        };
        let Some(commit) = taken.claim.clone().filter(|_| !taken.released) else { return Ok(()) };
        let task = taken.task.clone();
        let name = task.name.clone();
        match self.blocking(&TRIES, move |queue, _| queue.release(&task, &commit, whatever)).await {
            Ok(true) => self.writer.write(BatchEvent::ClaimReleased { task: key.to_owned() })?,
            Ok(false) => {}
            // The claim stays, and with it the task: nothing is done twice.
            Err(HaltReason::Broken(why)) => (self.tell)(BatchMessage::Line(format!("{name}: {why}"))),
            Err(halt) => return Err(halt),
        }
        Ok(())
    }

    /// Finds the tasks that a former process of this batch did not finish.
    pub(super) fn find_what_is_left(&mut self) {
        for taken in self.writer.batch().taken.clone() {
            if let (Progress::Stopped(stopped), Some(run)) = (&taken.progress, &taken.run) {
                // The list may have been unwritable then.
                self.note_stopped(&taken.task.key, run, stopped, true);
            }
            let is_left = match &taken.progress {
                Progress::Claiming | Progress::Claimed | Progress::Running => true,
                Progress::Lost(_) => false,
                // An answer may have come, a retry may have ended, a claim may have to be given back.
                Progress::Stopped(stopped) => {
                    let is = run_of_task(&*self.runs, &taken);
                    let changed = is.is_some_and(|is| is.as_ref() != Ok(stopped));
                    let is_open = matches!(stopped.stop, StopKind::Suspended | StopKind::NotStarted);
                    changed || is_open || stopped.stop == StopKind::Completed && taken.is_claimed()
                }
            };
            if is_left {
                self.left.push_back(taken.task.key);
            }
        }
    }

    /// Finds the runs whose questions were answered while the queue is watched.
    fn find_answered(&mut self) {
        for taken in &self.writer.batch().taken {
            let Progress::Stopped(stopped) = &taken.progress else { continue };
            let is_answered =
                |run: &String| run_of(&*self.runs, run).is_ok_and(|is| is.stop != StopKind::Waiting);
            if stopped.stop == StopKind::Waiting
                && taken.run.as_ref().is_some_and(is_answered)
                && !self.left.contains(&taken.task.key)
            {
                self.left.push_back(taken.task.key.clone());
            }
        }
    }

    /// Does something with the queue that may take time, while the runs go on. A stop interrupts the runs and does not
    /// wait for it: whatever it does can be done again.
    async fn blocking<T: Send + 'static>(
        &mut self,
        tries: &[Duration],
        act: impl Fn(&Queue, &QueueContext<'_>) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<T, HaltReason> {
        let act = Arc::new(act);
        let mut stop = self.stop.clone();
        let mut waits = tries.iter();
        loop {
            let (queue, batches, runs, id) =
                (self.queue.clone(), self.batches.clone(), self.runs.clone(), self.id.clone());
            let (agent, act) = (self.writer.batch().started().agent.clone(), act.clone());
            let work = tokio::task::spawn_blocking(move || {
                let known = QueueContext { batches: &*batches, runs: &*runs, batch: &id, agent: &agent };
                act(&queue, &known)
            });
            if *stop.borrow() {
                return Err(HaltReason::Interrupted);
            }
            let done = tokio::select! {
                done = work => done.unwrap_or_else(|error| Err(error.to_string())),
                _ = stop.changed() => {
                    self.children.values_mut().for_each(Child::interrupt);
                    return Err(HaltReason::Interrupted);
                }
            };
            let why = match done {
                Ok(done) => return Ok(done),
                Err(why) => why,
            };
            let Some(wait) = waits.next() else { return Err(HaltReason::Broken(why)) };
            tokio::select! {
                () = sleep(*wait) => {}
                _ = stop.changed() => return Err(HaltReason::Interrupted),
            }
        }
    }
}
