//! Fallback transitions after unusable answers, which leave no values.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Fallback, fallback_of_step};
use super::reachability::{Reachability, Transition};
use crate::{
    diagnostics::Trace,
    model::{Edge, Flow, Selector, StepId, Target},
};

/// The search limit, per step of the flow.
const WORK_MAX: usize = 64;

/// The most searches per flow.
const WALKS_MAX: usize = 64;

/// The walks on which a step used its fallback and left no values.
pub(crate) struct FallbackEdges<'f> {
    flow: &'f Flow,
    live: &'f Reachability,
    /// By step, the steps that walks may reach after it used its fallback, without passing it again.
    known: BTreeMap<StepId, BTreeSet<StepId>>,
    work: usize,
    walks: usize,
}

impl<'f> FallbackEdges<'f> {
    pub(crate) fn new(flow: &'f Flow, live: &'f Reachability) -> FallbackEdges<'f> {
        let work = WORK_MAX * flow.steps.len() + 10_000;
        FallbackEdges { flow, live, known: BTreeMap::new(), work, walks: WALKS_MAX }
    }

    /// A shortest walk to `to` that passes `passed`, which uses its fallback each time.
    pub(crate) fn walk(&mut self, passed: StepId, to: StepId) -> Option<Trace> {
        let begins = self.live.entries().contains(&passed);
        let fallback = fallback_of_step(self.flow.step(passed), begins)?;
        if !self.may_come(passed, &fallback, to) || self.walks == 0 {
            return None;
        }
        self.walks -= 1;
        // The same flow, in which that step always uses its fallback.
        let mut flow = self.flow.clone();
        let step = &mut flow.steps[passed.0 as usize];
        step.edges
            .retain_mut(|edge| edge.on == *fallback.outcome && redirect_unanswered_edge(edge, &fallback));
        step.handoff.clear();
        let live = Reachability::of(&flow, self.live.entries(), true);
        live.steps[to.0 as usize].then(|| live.shortest(&flow, to, None)).flatten()
    }

    /// Whether walks may reach a step that way, ignoring selecting values. Rarely true, so it saves most searches.
    fn may_come(&mut self, passed: StepId, fallback: &Fallback<'_>, to: StepId) -> bool {
        let (live, flow) = (self.live, self.flow);
        if !self.known.contains_key(&passed) {
            let edges = &flow.step(passed).edges;
            let falls = |way: &&Transition| way.edge.is_some_and(|at| fallback.leads(&edges[at], way.to));
            let mut seen = BTreeSet::new();
            let mut open: Vec<StepId> = live.walks(flow, passed).filter(falls).map(|way| way.to).collect();
            while let Some(at) = open.pop().filter(|_| self.work > 0) {
                if at != passed && seen.insert(at) {
                    self.work -= 1;
                    open.extend(live.walks(flow, at).map(|way| way.to));
                }
            }
            self.known.insert(passed, seen);
        }
        self.known[&passed].contains(&to)
    }
}

/// Redirects an edge to its target without an answer; returns whether it has one.
fn redirect_unanswered_edge(edge: &mut Edge<StepId>, fallback: &Fallback<'_>) -> bool {
    let default = match &edge.to {
        Target::Select { by: Selector::Handoff(_), .. } if !fallback.first => return true,
        Target::Select { default, .. } | Target::Jump { default, .. } => *default,
        _ => return true,
    };
    edge.to = default.map_or_else(|| edge.to.clone(), Target::Step);
    default.is_some()
}
