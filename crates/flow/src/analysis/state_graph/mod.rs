//! The graph of run states: everything that runs of a flow can reach, with the paths there.
//!
//! A state is the current step and everything that affects later transitions: counters, origins, handoff values, and
//! what monitors and the verdict have observed. Its transitions are whatever its gate can yield. Distances are in
//! iterations. With too many states, counters and memory are dropped (every edge that may be open counts as open):
//! unreachable marks are then still correct, but some marks seem reachable or nearer than they are.

mod choices;
mod distances;
mod exhaustion;
mod explore;
mod members;
mod state;
mod transitions;
mod verdict_counts;

use crate::analysis::newest_values::PossibleValue;
use crate::{
    Str,
    model::{Ending, Flow, Outcome, StepId, Target},
};

pub use distances::{FAR, GoalDistances};
pub use explore::StateGraph;
pub use members::MemberOutcome;
pub(crate) use members::{enumerate_combinations, first_match};
pub use state::{Move, RunState};

/// Something that a run can reach.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// A step is entered or asked.
    Step(StepId),
    /// The edge of this index is taken, to this step if it selects among several.
    Edge(StepId, usize, Option<StepId>),
    /// A step has an outcome with a transition, or a member has any outcome.
    Gate(StepId, Outcome),
    /// A step uses its fallback after an unusable answer.
    Fallback(StepId),
    /// The edge of this index would be taken but is used up.
    Spent(StepId, usize),
    /// The command of this index passes or fails.
    Validator(StepId, u16, bool),
    /// A monitor acts.
    Monitor(usize),
    /// A part of the verdict holds, by its path.
    Verdict(Str),
    /// The verdict ends the run.
    Completed,
    /// Another iteration would begin, but none is left.
    Exhausted,
}

/// A choice at a step: its outcome, and everything else that affects later transitions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Choice {
    /// The outcome; none if no rule matches the members' outcomes.
    pub outcome: Outcome,
    /// The index of the taken edge; `None` if the run fails for lack of one.
    pub edge: Option<usize>,
    /// The target step; `None` for an end.
    pub to: Option<StepId>,
    /// The judge that decides, if the answers do not.
    pub by: Option<StepId>,
    /// Whether only an unusable answer leads to it, through the definition's fallback.
    pub unusable: bool,
    /// The outcome of each member of a parallel step.
    pub members: Vec<MemberOutcome>,
    /// The part of the answer that selects among steps.
    pub pick: Pick,
    /// The handoff values that select, here or later.
    pub leaves: Vec<(Str, SelectingValue)>,
}

/// The part of an answer that selects among steps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pick {
    /// Nothing selects.
    Any,
    /// A value of a field.
    Field(SelectingValue),
    /// The name of a step.
    Named(StepId),
    /// No name.
    Unnamed,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SelectingValue {
    /// Missing.
    Absent,
    /// This text.
    Is(Str),
    /// A value that matches no list and no case.
    Other,
}

impl From<&PossibleValue> for SelectingValue {
    fn from(value: &PossibleValue) -> SelectingValue {
        match value {
            PossibleValue::Absent => SelectingValue::Absent,
            PossibleValue::Is(text) => SelectingValue::Is(text.clone()),
            PossibleValue::Whole(_) | PossibleValue::Other => SelectingValue::Other,
        }
    }
}

impl Choice {
    /// An outcome, for any answer and target.
    pub fn plain(outcome: Outcome) -> Choice {
        Choice {
            outcome,
            edge: None,
            to: None,
            by: None,
            unusable: false,
            members: Vec::new(),
            pick: Pick::Any,
            leaves: Vec::new(),
        }
    }

    /// The answer behind it, for any target.
    pub fn answer(&self) -> Choice {
        Choice { edge: None, to: None, ..self.clone() }
    }

    /// Whether it leads to an end that completes the run.
    pub fn completes(&self, flow: &Flow, at: StepId) -> bool {
        let edge = self.edge.map(|edge| &flow.step(at).edges[edge].to);
        matches!(edge, Some(Target::End(Ending::Completed)))
    }
}

#[cfg(test)]
mod tests;
