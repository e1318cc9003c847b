//! Batches: one run for each task of a queue, which is a list of issues or a file. Which tasks are taken, in which order,
//! and why another is not, is a pure function of the events of the batch: the queue as it was read, the claims that were
//! won, and the runs that were started and stopped.

mod choose;
mod event;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use choose::{Choice, SkipReason};
pub use event::{
    BatchEnd, BatchEvent, BatchRecord, BatchStarted, ClaimOutcome, EarlierRun, QueueRead, QueueSource,
    RunStopped, StopKind,
};

use crate::budget::SpentBudget;

/// After this many runs in a row that failed or could not start, no further task is taken: the cause is probably not in
/// the tasks.
pub const FAILURES_MAX: u32 = 3;

/// A task of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Task {
    /// Its identity: `#7` for issue 7, the digest of its text for a line of a file.
    pub key: String,
    /// Its name on screen: `#7`, `line 3`.
    pub name: String,
    /// Its title, or the first line of its text.
    pub title: String,
    /// The number of the issue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<u64>,
    /// The labels of the issue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The text, for a task of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Parameters that it sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
}

/// The most that one run uses, or what a batch may use in all; `None` = not known, or unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amounts {
    /// Millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micro: Option<u64>,
    /// Input and output tokens together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Calls of agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<u64>,
}

impl Amounts {
    /// How many times `one` fits into this limit; `None` = any number of times.
    fn holds(self, one: Amounts) -> Option<u64> {
        let pairs = [(self.usd_micro, one.usd_micro), (self.tokens, one.tokens), (self.asks, one.asks)];
        let fits = pairs.into_iter().filter_map(|(limit, one)| match (limit?, one) {
            // What is not bounded does not fit.
            (_, None) => Some(0),
            (_, Some(0)) => None,
            (limit, Some(one)) => Some(limit / one),
        });
        fits.min()
    }

    /// This limit minus what is used already.
    fn less(self, used: SpentBudget) -> Amounts {
        let left = |limit: Option<u64>, used: u64| Some(limit?.saturating_sub(used));
        Amounts {
            usd_micro: left(self.usd_micro, used.usd_micro),
            tokens: left(self.tokens, used.tokens),
            asks: left(self.asks, used.asks),
        }
    }

    /// These amounts `n` times.
    pub fn times(self, n: u64) -> Amounts {
        let times = |amount: Option<u64>| Some(amount?.saturating_mul(n));
        Amounts { usd_micro: times(self.usd_micro), tokens: times(self.tokens), asks: times(self.asks) }
    }
}

/// What became of a task that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Its claim was requested with this commit, and nobody knows whether it was won.
    Claiming,
    /// It is claimed, and no run was started.
    Claimed,
    /// Another machine has it, as described.
    Lost(String),
    /// A run was started.
    Running,
    /// Its run stopped.
    Stopped(RunStopped),
}

/// A task that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenTask {
    pub task: Task,
    /// What became of it.
    pub progress: Progress,
    /// The last run of it.
    pub run: Option<String>,
    /// The commit that claims it.
    pub claim: Option<String>,
    /// Whether its claim was given back.
    pub released: bool,
}

impl TakenTask {
    /// Whether this batch claims it.
    pub fn is_claimed(&self) -> bool {
        self.claim.is_some() && !self.released && !matches!(self.progress, Progress::Lost(_))
    }
}

/// The state of a batch: the fold of its events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// How it was started; `None` before its first event.
    pub started: Option<Box<BatchStarted>>,
    /// The tasks of the queue that are next, in order.
    pub next: Vec<Task>,
    /// The tasks of the queue that were not taken when it was last read, with the reasons.
    pub skipped: Vec<(Task, SkipReason)>,
    /// The tasks that were taken, in order.
    pub taken: Vec<TakenTask>,
    /// How often the queue was read.
    pub reads: u32,
    /// How many tasks were next when the queue was last read.
    pub found: usize,
    /// How many runs in a row did not complete, up to the last one.
    pub failures: u32,
    /// Why it stopped, until it is resumed.
    pub end: Option<BatchEnd>,
}

impl Batch {
    /// The state after these events.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e BatchEvent>) -> Batch {
        let mut batch = Batch::default();
        events.into_iter().for_each(|event| batch.apply(event));
        batch
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &BatchEvent) {
        match event {
            BatchEvent::BatchStarted(started) => self.started = Some(started.clone()),
            BatchEvent::BatchResumed { .. } => {
                self.end = None;
                self.failures = 0;
                // The queue is read again.
                self.next.clear();
                // What was not begun may be taken again, unless this batch still claims it.
                let is_begun = |taken: &TakenTask| match &taken.progress {
                    Progress::Lost(_) => false,
                    Progress::Stopped(stopped) => stopped.stop != StopKind::NotStarted || taken.is_claimed(),
                    _ => true,
                };
                self.taken.retain(is_begun);
            }
            BatchEvent::QueueRead(read) => {
                let choices = self.choose(read);
                self.reads += 1;
                self.next.clear();
                self.skipped.clear();
                for (task, choice) in choices {
                    match choice {
                        Choice::Take => self.next.push(task),
                        Choice::Skip(reason) => self.skipped.push((task, reason)),
                    }
                }
                self.found = self.next.len();
            }
            BatchEvent::ClaimRequested { task, commit } => {
                let progress = Progress::Claiming;
                self.take(task, progress).claim = Some(commit.clone());
            }
            BatchEvent::ClaimDecided { task, claim } => match claim {
                ClaimOutcome::Won => self.take(task, Progress::Claimed).released = false,
                ClaimOutcome::Lost { by } => _ = self.take(task, Progress::Lost(by.clone())),
            },
            BatchEvent::RunStarted { task, run } => {
                self.take(task, Progress::Running).run = Some(run.clone());
            }
            BatchEvent::RunStopped { task, stopped } => {
                // What became of a run between two processes of the batch says nothing about the next one.
                let worked = self
                    .taken
                    .iter()
                    .any(|known| known.task.key == *task && known.progress == Progress::Running);
                match stopped.stop {
                    _ if !worked => {}
                    StopKind::Completed => self.failures = 0,
                    StopKind::Failed | StopKind::NotStarted | StopKind::Suspended => self.failures += 1,
                    StopKind::Waiting => {}
                }
                self.take(task, Progress::Stopped(stopped.clone()));
            }
            BatchEvent::ClaimReleased { task } => {
                if let Some(taken) = self.taken.iter_mut().find(|taken| taken.task.key == *task) {
                    taken.released = true;
                }
            }
            BatchEvent::BatchStopped { end } => self.end = Some(end.clone()),
        }
    }

    /// Moves a task from the queue to the taken ones, if it is not there, and sets its progress.
    fn take(&mut self, key: &str, progress: Progress) -> &mut TakenTask {
        let at = self.taken.iter().position(|taken| taken.task.key == key).unwrap_or_else(|| {
            let found = self.next.iter().position(|task| task.key == key);
            let task = found.map(|at| self.next.remove(at));
            let task = task.unwrap_or_else(|| Task { key: key.to_owned(), ..Task::default() });
            let (run, claim) = (None, None);
            let taken = TakenTask { task, progress: Progress::Claimed, run, claim, released: false };
            self.taken.push(taken);
            self.taken.len() - 1
        });
        let taken = &mut self.taken[at];
        taken.progress = progress;
        taken
    }

    /// How the batch was started.
    ///
    /// # Panics
    /// Before the first event.
    pub fn started(&self) -> &BatchStarted {
        self.started.as_deref().expect("the first event of a batch says how it was started")
    }

    /// The number of runs in progress.
    pub fn running(&self) -> usize {
        self.taken.iter().filter(|taken| taken.progress == Progress::Running).count()
    }

    /// Whether several runs in a row failed, so that no further task is taken.
    pub fn is_failing(&self) -> bool {
        self.failures >= FAILURES_MAX
    }

    /// The task that is taken next, if one may start now.
    pub fn next(&self) -> Option<&Task> {
        let has_slot = self.running() < usize::from(self.started().parallel.max(1));
        self.next.first().filter(|_| has_slot && !self.is_failing() && !self.is_spent())
    }

    /// Whether the budget has no room for a further run, because a run used more than it may: a single call can exceed
    /// its limit.
    pub fn is_spent(&self) -> bool {
        self.started().budget.less(self.used()).holds(self.started().each) == Some(0)
    }

    /// What the runs used: what is known of those that are over, and the most that the others may use.
    pub fn used(&self) -> SpentBudget {
        let each = self.started().each;
        let mut used = SpentBudget::default();
        for taken in &self.taken {
            let share = SpentBudget {
                usd_micro: each.usd_micro.unwrap_or_default(),
                tokens: each.tokens.unwrap_or_default(),
                asks: each.asks.unwrap_or_default(),
                driven_ms: 0,
            };
            let spent = match &taken.progress {
                Progress::Lost(_) => continue,
                Progress::Stopped(RunStopped { stop: StopKind::NotStarted, .. }) => continue,
                Progress::Stopped(stopped) if stopped.stop.is_over() => stopped.spent,
                // It may go on, up to its share.
                Progress::Stopped(RunStopped { spent, .. }) => SpentBudget {
                    usd_micro: share.usd_micro.max(spent.usd_micro),
                    tokens: share.tokens.max(spent.tokens),
                    asks: share.asks.max(spent.asks),
                    driven_ms: 0,
                },
                _ => share,
            };
            used.usd_micro = used.usd_micro.saturating_add(spent.usd_micro);
            used.tokens = used.tokens.saturating_add(spent.tokens);
            used.asks = used.asks.saturating_add(spent.asks);
        }
        used
    }

    /// The number of tasks that were taken and not lost to another machine.
    pub fn works_on(&self) -> usize {
        self.taken.iter().filter(|taken| !matches!(taken.progress, Progress::Lost(_))).count()
    }
}

#[cfg(test)]
mod tests;
