//! What runs of a flow come by, and the ways there: all situations that a run can be in, explored.
//!
//! A situation is where control stands and all that decides about what follows: counters, who handed off, what was handed
//! on, what monitors and the verdict saw. What follows on one is whatever its gate can yield. It is said in iterations how
//! far each thing is. Where there are too many situations, nothing is counted or remembered (every way that may be open
//! is): then what no run comes by is still right, but some things seem possible that are not, and nearer than they are.

mod choices;
mod distances;
mod explore;
mod members;
mod state;
mod transitions;
mod unreached;
mod verdict_counts;

use crate::analysis::newest_values::Value;
use crate::{
    Str,
    model::{Ending, Flow, Outcome, StepId, Target},
};

pub use distances::{FAR, Goal};
pub use explore::Reach;
pub use members::Said;
pub use state::{Move, RunState};
pub use unreached::reasons;

/// Something that a run can come by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// A step is entered or asked.
    Step(StepId),
    /// The edge of this place is taken, to this step where it selects among several.
    Edge(StepId, usize, Option<StepId>),
    /// A step comes to an outcome that leads on, or a member to any.
    Gate(StepId, Outcome),
    /// A step falls back to something, after an answer that cannot be used.
    Fallback(StepId),
    /// The edge of this place would be taken and is used up.
    Spent(StepId, usize),
    /// The command of this place passes, or fails.
    Validator(StepId, u16, bool),
    /// A monitor acts.
    Monitor(usize),
    /// A part of the verdict holds, by its place.
    Verdict(Str),
    /// The verdict ends the run.
    Completed,
    /// Another iteration would begin, and none is left.
    Exhausted,
}

/// What is chosen at a step: what its outcome is, and whatever else decides about what follows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Choice {
    /// The outcome; of members of which nothing fits what they say, none.
    pub outcome: Outcome,
    /// The edge that it takes, by its place; `None` where the run fails for want of one.
    pub edge: Option<usize>,
    /// Where that leads; `None` for an end.
    pub to: Option<StepId>,
    /// The judge that decides, where the answers do not.
    pub by: Option<StepId>,
    /// Whether only an answer that cannot be used comes to it: what the definition falls back to.
    pub unusable: bool,
    /// What each member of a parallel step comes to.
    pub members: Vec<Said>,
    /// What the answer says that selects among steps.
    pub pick: Pick,
    /// What it hands on that selects, here or later.
    pub leaves: Vec<(Str, Left)>,
}

/// What an answer says that selects among steps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pick {
    /// Nothing.
    Any,
    /// A value of a field.
    Field(Left),
    /// The name of a step.
    Named(StepId),
    /// No name.
    Unnamed,
}

/// A value that selects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Left {
    /// There is none.
    Absent,
    /// This text.
    Is(Str),
    /// Something that no list and no case names.
    Other,
}

impl From<&Value> for Left {
    fn from(value: &Value) -> Left {
        match value {
            Value::Absent => Left::Absent,
            Value::Is(text) => Left::Is(text.clone()),
            Value::Whole(_) | Value::Other => Left::Other,
        }
    }
}

impl Choice {
    /// An outcome, however it is come to, and wherever it leads.
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

    /// What is said for it, wherever that leads.
    pub fn said(&self) -> Choice {
        Choice { edge: None, to: None, ..self.clone() }
    }

    /// Whether it leads to a good end of the flow.
    pub fn completes(&self, flow: &Flow, at: StepId) -> bool {
        let edge = self.edge.map(|edge| &flow.step(at).edges[edge].to);
        matches!(edge, Some(Target::End(Ending::Completed)))
    }
}

#[cfg(test)]
mod tests;
