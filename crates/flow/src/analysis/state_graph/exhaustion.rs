//! Which runs use up all their iterations.
//!
//! A run is exhausted when one more iteration would begin than its limit allows. If the verdict or a failing validator
//! can end the run at that point instead, the length of a run alone does not tell.

use super::StateGraph;
use super::explore::END;

/// By number of iterations left, and by state: whether a run can still be exhausted. Empty if every run that is long
/// enough is exhausted.
#[derive(Debug)]
pub(super) struct ExhaustionTable(Vec<Vec<bool>>);

/// The most states times iterations; beyond, the length of runs decides.
const WORK_MAX: usize = 20_000_000;

impl StateGraph {
    /// Whether some run within the limit is exhausted.
    pub(super) fn is_exhaustible(&self) -> bool {
        let max = self.iterations_max();
        self.exceeds(max) && self.can_exhaust(0, max.saturating_sub(1))
    }

    /// Whether a run in a state can be exhausted after `left` more iterations.
    pub(super) fn can_exhaust(&self, at: u32, left: u32) -> bool {
        let ExhaustionTable(layers) = self.exhausting.get_or_init(|| self.exhausting());
        layers.get(left as usize).is_none_or(|layer| layer[at as usize])
    }

    fn exhausting(&self) -> ExhaustionTable {
        let (states, max) = (self.hops.len(), self.iterations_max() as usize);
        let mut hops = self.hops.iter().flatten();
        let ends = hops.any(|hop| hop.counts && hop.to != END && !hop.exhausts);
        if !ends || states.saturating_mul(max) > WORK_MAX {
            return ExhaustionTable(Vec::new());
        }
        let mut layers: Vec<Vec<bool>> = Vec::with_capacity(max);
        for left in 0..max {
            let leads = |at: usize| {
                self.hops[at].iter().filter(|hop| hop.counts && hop.to != END).any(|hop| match left {
                    0 => hop.exhausts,
                    _ => layers[left - 1][hop.to as usize],
                })
            };
            let mut layer: Vec<bool> = (0..states).map(leads).collect();
            let mut queue: Vec<usize> = (0..states).filter(|at| layer[*at]).collect();
            while let Some(at) = queue.pop() {
                for (from, place) in self.before().to(at) {
                    let from = *from as usize;
                    if !self.hops[from][*place as usize].counts && !std::mem::replace(&mut layer[from], true)
                    {
                        queue.push(from);
                    }
                }
            }
            layers.push(layer);
        }
        ExhaustionTable(layers)
    }
}
