//! States of a run, and the moves between them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Choice, Mark};
use crate::{Str, model::StepId};

/// The state of a run: the current step, and everything that affects later transitions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunState {
    /// The current step.
    pub at: StepId,
    /// The step of the open visit.
    pub visit: StepId,
    /// Whether a monitor acted in that visit.
    pub judged: bool,
    /// The counters of the flow.
    pub counters: Vec<u32>,
    /// The step that last handed off to each step.
    pub origins: BTreeMap<StepId, StepId>,
    /// The newest selecting values, in the order of [`super::StateGraph::keys`], in the notation of the cases.
    pub newest: Vec<Option<Str>>,
    /// By monitor, the stages that the visits before this one end with; empty if none has any.
    pub watched: Vec<u32>,
    /// Finished visits.
    pub finished: u32,
    /// Answers that the verdict counts.
    pub checks: u32,
    /// The steps whose validators failed and have not passed since: the verdict does not end the run.
    pub failing: BTreeSet<StepId>,
    /// Whether this is the first iteration.
    pub is_first: bool,
}

/// A possible transition of a state.
#[derive(Debug, Clone)]
pub struct Move {
    /// The choice behind it.
    pub choice: Choice,
    /// The marks that it reaches.
    pub marks: Vec<Mark>,
    /// The next state; `None` if the run ends.
    pub next: Option<RunState>,
    /// Whether it begins an iteration.
    pub counts: bool,
    /// Whether it exhausts the run when no iteration is left, unless the verdict completes the run.
    pub exhausts: bool,
}
