//! Which tasks of a queue are taken, and why the others are not.

use std::fmt;

use super::{Batch, QueueRead, Task};

/// What happens to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// It is taken.
    Take,
    /// It is not taken.
    Skip(SkipReason),
}

/// Why a task is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// This batch has taken it already.
    Taken,
    /// It has a label that keeps it from being taken.
    Label(String),
    /// Somebody has it, as described.
    Claimed(String),
    /// A run of an earlier batch worked on it.
    RanBefore {
        run: String,
        /// Its state, in words.
        state: String,
        /// Whether it is not over, and nobody goes on with it.
        is_stuck: bool,
    },
    /// `--max` tasks are taken.
    Max(u32),
    /// The budget has room for only so many further runs.
    Budget(u64),
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Taken => f.write_str("taken before by this batch"),
            SkipReason::Label(label) => write!(f, "has the label `{label}`"),
            SkipReason::Claimed(by) => f.write_str(by),
            SkipReason::RanBefore { run, state, is_stuck: false } => {
                write!(f, "run {run} worked on it: {state}")
            }
            SkipReason::RanBefore { run, .. } => {
                write!(f, "run {run} stopped in it; `cuegate resume {run}` goes on")
            }
            SkipReason::Max(max) => write!(f, "`--max {max}` is reached"),
            SkipReason::Budget(0) => f.write_str("the budget has no room for a further run"),
            SkipReason::Budget(1) => f.write_str("the budget has room for only one run"),
            SkipReason::Budget(room) => write!(f, "the budget has room for only {room} runs"),
        }
    }
}

impl Batch {
    /// Decides about each task of the queue, in order.
    pub fn choose(&self, read: &QueueRead) -> Vec<(Task, Choice)> {
        let started = self.started();
        let max = started.max.map(u64::from);
        let room = max.map(|max| max.saturating_sub(self.works_on() as u64));
        let fits = started.budget.less(self.used()).holds(started.each);
        let mut taken = 0u64;
        let mut choices = Vec::with_capacity(read.tasks.len());
        for task in &read.tasks {
            let choice = match self.unfit(read, task) {
                Some(reason) => Choice::Skip(reason),
                None if room.is_some_and(|room| taken >= room) => {
                    Choice::Skip(SkipReason::Max(started.max.unwrap_or_default()))
                }
                None if fits.is_some_and(|fits| taken >= fits) => {
                    Choice::Skip(SkipReason::Budget(fits.unwrap_or_default()))
                }
                None => {
                    taken += 1;
                    Choice::Take
                }
            };
            choices.push((task.clone(), choice));
        }
        choices
    }

    /// Why a task cannot be taken, whatever room there is.
    fn unfit(&self, read: &QueueRead, task: &Task) -> Option<SkipReason> {
        if self.taken.iter().any(|taken| taken.task.key == task.key) {
            return Some(SkipReason::Taken);
        }
        if let Some((_, by)) = read.claims.iter().find(|(key, _)| *key == task.key) {
            return Some(SkipReason::Claimed(by.clone()));
        }
        if let Some(before) = read.before.iter().find(|before| before.task == task.key) {
            let (run, state) = (before.run.clone(), before.state.clone());
            return Some(SkipReason::RanBefore { run, state, is_stuck: before.is_stuck });
        }
        // The labels of GitHub do not differ by case only.
        let same = |one: &String, other: &String| one.to_lowercase() == other.to_lowercase();
        let blocking =
            task.labels.iter().find(|label| self.started().blocked_by.iter().any(|b| same(b, label)));
        blocking.map(|label| SkipReason::Label(label.clone()))
    }
}
