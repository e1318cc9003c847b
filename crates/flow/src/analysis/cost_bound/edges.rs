//! The flow as a graph for the cost bound.

use std::cell::OnceCell;

use crate::analysis::components::Components;
use crate::analysis::graph::{steps_of_target, takeable_edges_of_step};
use crate::model::{Flow, Step, StepId};

/// An edge of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlaceEdge {
    /// The target place.
    pub(super) to: u32,
    /// Whether the target is asked with a remedy.
    pub(super) remedy: bool,
    /// Whether the target continues the same visit.
    pub(super) again: bool,
}

/// The graph: places (each a step in one of its states) and the edges between them.
#[derive(Debug)]
pub(super) struct PlaceGraph {
    /// By place: its step.
    pub(super) steps: Vec<StepId>,
    /// By place: whether it counts as an iteration.
    pub(super) counts: Vec<bool>,
    /// The start of all walks.
    pub(super) entry: u32,
    /// By place: its outgoing edges.
    pub(super) out: Vec<Vec<PlaceEdge>>,
    /// Uncounted places in topological order.
    pub(super) uncounted: Vec<u32>,
    /// Uncounted places on cycles: nothing limits how often a run repeats them.
    pub(super) endless: Vec<u32>,
    /// The strongly connected components, computed on demand.
    pub(super) components: OnceCell<Components>,
}

impl PlaceGraph {
    /// The graph of a flow without counters: each edge can be taken at any time.
    pub(super) fn of(flow: &Flow) -> PlaceGraph {
        let mut out: Vec<Vec<PlaceEdge>> = flow
            .steps
            .iter()
            .map(|step| {
                let mut ways = Vec::new();
                for edge in takeable_edges_of_step(step).into_iter().map(|at| &step.edges[at]) {
                    let (remedy, again) = (edge.remedy.is_some(), edge.again);
                    ways.extend(steps_of_target(&edge.to).into_iter().map(|to| PlaceEdge {
                        to: to.0,
                        remedy,
                        again,
                    }));
                }
                ways
            })
            .collect();
        for monitor in &flow.monitors {
            for last in monitor.ends_with() {
                out[last.0 as usize].push(PlaceEdge { to: monitor.judge.0, remedy: false, again: false });
            }
        }
        let steps = (0..flow.steps.len() as u32).map(StepId).collect();
        PlaceGraph { entry: flow.entry.0, ..PlaceGraph::between(flow, steps, out) }
    }

    /// A graph from given edges between places. Walks start at the first place.
    pub(super) fn between(flow: &Flow, steps: Vec<StepId>, mut out: Vec<Vec<PlaceEdge>>) -> PlaceGraph {
        for ways in &mut out {
            ways.sort_by_key(|way| (way.to, way.remedy, way.again));
            ways.dedup();
        }
        let counts: Vec<bool> = steps.iter().map(|step| flow.step(*step).counts).collect();
        let (uncounted, endless) = order_uncounted_places(&counts, &out);
        PlaceGraph { steps, counts, entry: 0, out, uncounted, endless, components: OnceCell::new() }
    }

    /// The step of a place.
    pub(super) fn step<'f>(&self, flow: &'f Flow, place: u32) -> &'f Step<StepId> {
        flow.step(self.steps[place as usize])
    }

    /// Whether a place counts as an iteration.
    pub(super) fn counts(&self, place: u32) -> bool {
        self.counts[place as usize]
    }
}

/// The uncounted places in topological order, and those on cycles.
fn order_uncounted_places(counts: &[bool], out: &[Vec<PlaceEdge>]) -> (Vec<u32>, Vec<u32>) {
    let counts = |place: u32| counts[place as usize];
    let mut before = vec![0u32; out.len()];
    let among = || (0..out.len() as u32).filter(|step| !counts(*step));
    for step in among() {
        for way in out[step as usize].iter().filter(|way| !counts(way.to)) {
            before[way.to as usize] += 1;
        }
    }
    let mut ready: Vec<u32> = among().filter(|step| before[*step as usize] == 0).collect();
    let mut order = Vec::new();
    while let Some(step) = ready.pop() {
        order.push(step);
        for way in out[step as usize].iter().filter(|way| !counts(way.to)) {
            before[way.to as usize] -= 1;
            if before[way.to as usize] == 0 {
                ready.push(way.to);
            }
        }
    }
    let endless = among().filter(|step| before[*step as usize] > 0).collect();
    (order, endless)
}
