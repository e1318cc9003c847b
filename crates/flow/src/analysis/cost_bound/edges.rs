//! The ways of a flow as the bound sees them.

use std::cell::OnceCell;

use crate::analysis::components::Components;
use crate::analysis::graph::{takeable, targets};
use crate::model::{Flow, Step, StepId};

/// A way to another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    /// Where to.
    pub(super) to: u32,
    /// Whether it is asked with a remedy there.
    pub(super) remedy: bool,
}

/// What is walked: places, each of them a step in one of its states, and the ways between them.
#[derive(Debug)]
pub(super) struct Ways {
    /// By place: the step that is done there.
    pub(super) steps: Vec<StepId>,
    /// By place: whether it is an iteration.
    pub(super) counts: Vec<bool>,
    /// Where walks begin.
    pub(super) entry: u32,
    /// By place: the ways out of it.
    pub(super) out: Vec<Vec<Way>>,
    /// Places that do not count, each before those that it leads to.
    pub(super) uncounted: Vec<u32>,
    /// Places that do not count and lead to each other: how often is not bounded by anything.
    pub(super) endless: Vec<u32>,
    /// Which places lead to each other, once somebody asked.
    pub(super) components: OnceCell<Components>,
}

impl Ways {
    /// The ways of a flow whose counters nobody follows: each can be taken at any time.
    pub(super) fn of(flow: &Flow) -> Ways {
        let mut out: Vec<Vec<Way>> = flow
            .steps
            .iter()
            .map(|step| {
                let mut ways = Vec::new();
                for edge in takeable(step).into_iter().map(|at| &step.edges[at]) {
                    let remedy = edge.remedy.is_some();
                    ways.extend(targets(&edge.to).into_iter().map(|to| Way { to: to.0, remedy }));
                }
                ways
            })
            .collect();
        for monitor in &flow.monitors {
            if let Some(last) = monitor.cycle.last() {
                out[last.0 as usize].push(Way { to: monitor.judge.0, remedy: false });
            }
        }
        let steps = (0..flow.steps.len() as u32).map(StepId).collect();
        Ways { entry: flow.entry.0, ..Ways::between(flow, steps, out) }
    }

    /// Ways that are known, between places that stand for steps. Walks begin at the first.
    pub(super) fn between(flow: &Flow, steps: Vec<StepId>, mut out: Vec<Vec<Way>>) -> Ways {
        for ways in &mut out {
            ways.sort_by_key(|way| (way.to, way.remedy));
            ways.dedup();
        }
        let counts: Vec<bool> = steps.iter().map(|step| flow.step(*step).counts).collect();
        let (uncounted, endless) = order(&counts, &out);
        Ways { steps, counts, entry: 0, out, uncounted, endless, components: OnceCell::new() }
    }

    /// The step that is done at a place.
    pub(super) fn step<'f>(&self, flow: &'f Flow, place: u32) -> &'f Step<StepId> {
        flow.step(self.steps[place as usize])
    }

    /// Whether being at a place is an iteration.
    pub(super) fn counts(&self, place: u32) -> bool {
        self.counts[place as usize]
    }
}

/// Places that do not count in an order in which each stands before those that it leads to; and those that have none.
fn order(counts: &[bool], out: &[Vec<Way>]) -> (Vec<u32>, Vec<u32>) {
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
