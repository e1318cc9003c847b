//! How a run stands, and what can follow.

use std::collections::BTreeMap;

use super::{Choice, Mark};
use crate::{Str, model::StepId};

/// How a run stands: where control is, and all that decides about what follows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunState {
    /// The step on which control stands.
    pub at: StepId,
    /// The step whose visit is open.
    pub visit: StepId,
    /// Whether a monitor acted in that visit.
    pub judged: bool,
    /// The counters of the flow.
    pub counters: Vec<u32>,
    /// Who handed off to a step last.
    pub origins: BTreeMap<StepId, StepId>,
    /// The newest of each value that selects, in the order of [`super::Reach::keys`], as a case reads.
    pub newest: Vec<Option<Str>>,
    /// The visits before this one, as far back as a monitor looks.
    pub history: Vec<StepId>,
    /// Visits that are over.
    pub finished: u32,
    /// Answers that the verdict counts.
    pub checks: u32,
    /// Whether this is the first iteration.
    pub is_first: bool,
}

/// One thing that can follow on a situation.
#[derive(Debug, Clone)]
pub struct Move {
    /// What is chosen for it.
    pub choice: Choice,
    /// What is come by with it.
    pub marks: Vec<Mark>,
    /// The situation then; `None` where the run ends.
    pub next: Option<RunState>,
    /// Whether an iteration begins with it.
    pub counts: bool,
    /// Whether the run is exhausted with it where no iteration is left, and not completed by its verdict.
    pub exhausts: bool,
}
