//! When the verdict ends a run, by its counts; conditions on answers and resources may hold or not.

use super::state::RunState;
use super::transitions::TransitionRules;
use super::{Choice, Mark};
use crate::model::{Act, Flow, StepId, Verdict};

impl TransitionRules {
    /// The number of answers that the verdict has counted when a step is left.
    pub(super) fn checked(&self, flow: &Flow, at: StepId, said: &Choice) -> u32 {
        let counted = |id: StepId| {
            let name = &flow.step(id).name;
            let is = |part: &Verdict| matches!(part, Verdict::Checks { of, .. } if of.contains(name));
            u32::from(self.parts.iter().any(|(_, part)| is(part)))
        };
        match &flow.step(at).act {
            Act::Ask(_) if !said.unusable => counted(at),
            Act::All { members, .. } => {
                let all = members.iter().zip(&said.members);
                all.filter(|(_, said)| said.outcome().is_some()).map(|(id, _)| counted(*id)).sum()
            }
            _ => 0,
        }
    }

    /// The parts of the verdict that an answer may fulfill, and those whose count it completes.
    pub(super) fn answered(&self, flow: &Flow, at: &RunState, said: &Choice, marks: &mut Vec<Mark>) {
        let counted = self.checked(flow, at.at, said);
        let asks = matches!(flow.step(at.at).act, Act::Ask(_) | Act::All { .. });
        for (place, part) in &self.parts {
            let holds = match part {
                Verdict::Checks { max, .. } => counted > 0 && (!self.exact || at.checks + counted >= *max),
                Verdict::Keyword(_) | Verdict::Signal(_) => asks && !said.unusable,
                _ => false,
            };
            marks.extend(holds.then(|| Mark::Verdict(place.clone())));
        }
    }

    /// The parts of the verdict that poll between two visits.
    pub(super) fn looked_at(&self) -> impl Iterator<Item = Mark> {
        let looks = |part: &Verdict| matches!(part, Verdict::Poll(_) | Verdict::Handler(_));
        self.parts.iter().filter(move |(_, part)| looks(part)).map(|(place, _)| Mark::Verdict(place.clone()))
    }

    /// The parts that hold because a visit ends.
    pub(super) fn finished(&self, at: &RunState, marks: &mut Vec<Mark>) {
        for (place, part) in &self.parts {
            let reached = matches!(part, Verdict::Iterations(max) if !self.exact || at.finished + 1 >= *max);
            marks.extend(reached.then(|| Mark::Verdict(place.clone())));
        }
    }
}
