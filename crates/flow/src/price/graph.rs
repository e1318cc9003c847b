//! The ways of a flow as the bound sees them.

use std::cell::OnceCell;

use crate::check::graph::{is_takeable, targets};
use crate::components::Components;
use crate::{Flow, StepId};

/// A way to another step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    /// Where to.
    pub(super) to: u32,
    /// Whether it is asked with a remedy there.
    pub(super) remedy: bool,
}

/// The ways out of each step, and the order of the steps that do not count.
#[derive(Debug)]
pub(super) struct Ways {
    /// By step.
    pub(super) out: Vec<Vec<Way>>,
    /// Steps that do not count, each before those that it leads to.
    pub(super) uncounted: Vec<u32>,
    /// Steps that do not count and lead to each other: how often is not bounded by anything.
    pub(super) endless: Vec<StepId>,
    /// Which steps lead to each other, once somebody asked.
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
                for (_, edge) in step.edges.iter().enumerate().filter(|(at, _)| is_takeable(step, *at)) {
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
        Ways::between(flow, out)
    }

    /// Ways that are known.
    pub(super) fn between(flow: &Flow, mut out: Vec<Vec<Way>>) -> Ways {
        for ways in &mut out {
            ways.sort_by_key(|way| (way.to, way.remedy));
            ways.dedup();
        }
        let (uncounted, endless) = order(flow, &out);
        Ways { out, uncounted, endless, components: OnceCell::new() }
    }
}

/// Steps that do not count in an order in which each stands before those that it leads to; and those that have none.
fn order(flow: &Flow, out: &[Vec<Way>]) -> (Vec<u32>, Vec<StepId>) {
    let counts = |step: u32| flow.steps[step as usize].counts;
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
    let endless = among().filter(|step| before[*step as usize] > 0).map(StepId).collect();
    (order, endless)
}
