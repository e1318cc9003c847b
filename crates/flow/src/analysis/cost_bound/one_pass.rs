//! The calls of a run in which all goes well.

use crate::{
    analysis::graph::steps_of_target,
    model::{Act, Ending, Flow, Step, StepId, Target, Verdict},
};

/// How many steps of ways are looked at. Definitions with more ways keep the longest one found so far.
const LOOKS_MAX: usize = 50_000;
/// Of a longer way the beginning counts, so that the search needs little memory.
const STEPS_MAX: usize = 500;

/// The calls of the longest way from the first step to the end that enters no step twice: a run that does everything the
/// definition has, once. `None` if something else than a step completes it, or nothing does. Judges, repairs and reports
/// that are asked for apart come on top.
pub fn calls_of_one_pass(flow: &Flow) -> Option<u64> {
    if !matches!(flow.verdict, Verdict::Flow) {
        return None;
    }
    let mut search =
        OnePassSearch { flow, is_on_way: vec![false; flow.steps.len()], steps: 0, most: None, looks: 0 };
    search.enter(flow.entry, 0);
    search.most
}

fn calls_of_step(step: &Step<StepId>) -> u64 {
    match &step.act {
        Act::Ask(_) => 1,
        Act::All { members, .. } => members.len() as u64,
        Act::Exec { .. } | Act::Person { .. } | Act::System(_) => 0,
    }
}

struct OnePassSearch<'f> {
    flow: &'f Flow,
    is_on_way: Vec<bool>,
    steps: usize,
    most: Option<u64>,
    looks: usize,
}

impl OnePassSearch<'_> {
    /// Looks at the ways that go on with a step after so many calls. No way is longer than the definition has steps.
    fn enter(&mut self, at: StepId, before: u64) {
        self.looks += 1;
        if self.looks > LOOKS_MAX || self.steps > STEPS_MAX || self.is_on_way[at.0 as usize] {
            return;
        }
        let step = self.flow.step(at);
        let calls = before + calls_of_step(step);
        if step.edges.iter().any(|edge| matches!(edge.to, Target::End(Ending::Completed))) {
            self.most = self.most.max(Some(calls));
        }
        self.is_on_way[at.0 as usize] = true;
        self.steps += 1;
        for next in step.edges.iter().flat_map(|edge| steps_of_target(&edge.to)) {
            self.enter(next, calls);
        }
        self.is_on_way[at.0 as usize] = false;
        self.steps -= 1;
    }
}
