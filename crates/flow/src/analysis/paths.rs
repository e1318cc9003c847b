//! Walks of control: successors, distances in iterations, and cycles.

use std::collections::{HashMap, VecDeque};

use super::{
    dominators::Dominators,
    handoff_origins,
    reachability::{Reachability, describe_hop},
};
use crate::{
    analysis::components::Components,
    diagnostics::Trace,
    model::{Flow, StepId},
};

/// The distance of unreachable steps.
pub(crate) const FAR: u32 = u32::MAX;

/// The search limit of one kind of finding, in hops per hop of the flow. Real definitions stay far below it; it only
/// bounds the time for adversarial ones.
const WORK_MAX: usize = 64;

/// A hop of control from one step to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) from: usize,
    /// The index of the edge in its step; `None` when a monitor acts.
    pub(crate) edge: Option<usize>,
    pub(crate) to: usize,
}

pub(crate) struct ControlGraph<'f> {
    pub(crate) flow: &'f Flow,
    /// By step: its outgoing hops.
    pub(crate) out: Vec<Vec<Hop>>,
    /// By step: its minimum distance in iterations, its own included.
    pub(crate) far: Vec<u32>,
}

pub(crate) struct SearchResult {
    /// The distance from the start, in iterations.
    distance: HashMap<usize, u32>,
    came: HashMap<usize, Hop>,
    /// The first goal found.
    pub(crate) found: Option<usize>,
    /// The number of hops searched.
    pub(crate) work: usize,
}

/// The remaining search budget in hops.
pub(crate) struct SearchBudget(pub(crate) usize);

impl<'f> ControlGraph<'f> {
    /// Control starts at the entry. Members and judges are asked while control stays at their step.
    pub(crate) fn of(flow: &'f Flow, live: &Reachability) -> ControlGraph<'f> {
        let hops = |(from, ways): (usize, &Vec<super::reachability::Transition>)| {
            let ways = ways.iter().filter(|way| !way.inner);
            ways.map(|way| Hop { from, edge: way.edge, to: way.to.0 as usize }).collect()
        };
        let mut out: Vec<Vec<Hop>> = live.ways.iter().enumerate().map(hops).collect();
        handoff_origins::keep_possible(flow, live, &mut out);
        let mut walks = ControlGraph { flow, out, far: Vec::new() };
        let search = walks.search(&[flow.entry.0 as usize], |_| true, |_| false);
        walks.far = (0..flow.steps.len()).map(|step| search.distance(step)).collect();
        walks
    }

    /// The iterations that entering a step adds.
    pub(crate) fn cost(&self, step: usize) -> u32 {
        u32::from(self.flow.steps[step].counts)
    }

    /// The search budget of a finding.
    pub(crate) fn work(&self) -> SearchBudget {
        let hops: usize = self.out.iter().map(Vec::len).sum();
        SearchBudget(WORK_MAX * (hops + self.out.len()) + 10_000)
    }

    /// The nearest goal from any of some steps, over permitted hops.
    pub(crate) fn search(
        &self,
        from: &[usize],
        may: impl Fn(&Hop) -> bool,
        goal: impl Fn(usize) -> bool,
    ) -> SearchResult {
        let mut search =
            SearchResult { distance: HashMap::new(), came: HashMap::new(), found: None, work: from.len() };
        let mut queue = VecDeque::new();
        for step in from {
            search.distance.insert(*step, self.cost(*step));
            queue.push_back((*step, self.cost(*step)));
        }
        while let Some((at, far)) = queue.pop_front() {
            if far > search.distance(at) {
                continue;
            }
            if goal(at) {
                search.found = Some(at);
                break;
            }
            search.work += self.out[at].len();
            for hop in self.out[at].iter().filter(|hop| may(hop)) {
                let cost = self.cost(hop.to);
                if far + cost < search.distance(hop.to) {
                    search.distance.insert(hop.to, far + cost);
                    search.came.insert(hop.to, *hop);
                    if cost == 0 {
                        queue.push_front((hop.to, far));
                    } else {
                        queue.push_back((hop.to, far + cost));
                    }
                }
            }
        }
        search
    }

    /// A shortest walk from the entry to a step, over permitted hops.
    pub(crate) fn to(&self, step: usize, may: impl Fn(&Hop) -> bool) -> Option<Vec<Hop>> {
        let search = self.search(&[self.flow.entry.0 as usize], may, |at| at == step);
        search.found.map(|found| search.walk(found))
    }

    /// A readable walk, one entry per hop, with its end.
    pub(crate) fn tell(&self, hops: &[Hop], end: usize) -> Trace {
        let mut told = self.hops(hops);
        let end = &self.flow.steps[end];
        told.push(&*end.name, end.span);
        told
    }

    /// A readable walk that ends the run by an edge of a step.
    pub(crate) fn tell_end(&self, hops: &[Hop], step: usize, edge: usize) -> Trace {
        let mut told = self.hops(hops);
        let (words, span) = describe_hop(&self.flow.steps[step], Some(edge));
        told.push(words, span);
        told.push("the end", span);
        told
    }

    fn hops(&self, hops: &[Hop]) -> Trace {
        let mut told = Trace::default();
        for taken in hops {
            let (words, span) = describe_hop(&self.flow.steps[taken.from], taken.edge);
            told.push(words, span);
        }
        told
    }

    /// By step: the number of its strongly connected component. Components are numbered from 0, those that others lead
    /// to first.
    pub(crate) fn components(&self, may: impl Fn(&Hop) -> bool) -> Vec<usize> {
        let to = |hop: &Hop| may(hop).then_some(hop.to as u32);
        let found = Components::of(&self.out, to, 0..self.out.len() as u32);
        found.of.into_iter().map(|component| component as usize).collect()
    }

    /// The dominators of walks from the entry.
    pub(crate) fn dominance(&self) -> Dominators {
        let ways: Vec<Vec<u32>> =
            self.out.iter().map(|hops| hops.iter().map(|hop| hop.to as u32).collect()).collect();
        Dominators::over(&ways, &[self.flow.entry.0])
    }
}

impl SearchResult {
    /// The distance of a step; [`FAR`] when it was not reached.
    pub(crate) fn distance(&self, step: usize) -> u32 {
        self.distance.get(&step).copied().unwrap_or(FAR)
    }

    /// The walk to a reached step.
    pub(crate) fn walk(&self, to: usize) -> Vec<Hop> {
        let (mut hops, mut at) = (Vec::new(), to);
        while let Some(hop) = self.came.get(&at) {
            hops.push(*hop);
            at = hop.from;
        }
        hops.reverse();
        hops
    }
}

impl SearchBudget {
    /// Spends from the budget; returns whether some is left.
    pub(crate) fn spend(&mut self, work: usize) -> bool {
        self.0 = self.0.saturating_sub(work);
        self.0 > 0
    }
}

pub(crate) fn id_of_step(step: usize) -> StepId {
    StepId(step as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::reachability::Reachability,
        checks::{resolve::resolve_draft, testing::draft},
    };

    fn with<T>(text: &str, look: impl FnOnce(&ControlGraph<'_>) -> T) -> T {
        let flow = resolve_draft(draft(text), &[], &mut Vec::new()).unwrap().flow;
        let live = Reachability::of(&flow, &[flow.entry], true);
        look(&ControlGraph::of(&flow, &live))
    }

    #[test]
    fn distances_are_iterations() {
        with("a: x → b, y → c\nb: x → c\nc: x → a, y → end\nd: x → a", |walks| {
            assert_eq!(walks.far, [1, 2, 2, FAR]);
            let hops = walks.to(2, |hop| hop.edge != Some(1)).unwrap();
            assert_eq!(walks.tell(&hops, 2).into_parts().0, ["a --x→", "b --x→", "c"]);
            assert!(walks.to(3, |_| true).is_none());
        });
    }

    #[test]
    fn steps_on_a_cycle_share_a_component() {
        with("a: x → b\nb: x → c, y → a\nc: x → d\nd: x → c, y → end", |walks| {
            let of = walks.components(|_| true);
            assert!(of[0] == of[1] && of[2] == of[3] && of[0] != of[2] && of[2] < of[0]);
            let cut = walks.components(|hop| hop.to != 0);
            assert!(cut[0] != cut[1]);
        });
    }

    #[test]
    fn dominators_are_on_every_walk() {
        with(
            "a: x → b, y → c\nb: x → d\nc: x → d, y → a\nd: x → e, y → b\ne: x → end",
            |walks| {
                let every = walks.dominance();
                let passes = |first, step| !every.is_avoidable(id_of_step(step), id_of_step(first));
                assert!(passes(3, 4) && passes(0, 4) && passes(0, 3));
                assert!(!passes(1, 4) && !passes(4, 4) && !passes(4, 3));
            },
        );
    }

    #[test]
    fn long_chains_do_not_overflow_the_stack() {
        let line = |at: usize| format!("s{at}: x → s{}\n", at + 1);
        let text: String = (0..50_000).map(line).collect();
        with(&format!("{text}s50000: x → s0, y → end"), |walks| {
            assert_eq!(walks.components(|_| true).iter().max(), Some(&0));
            assert_eq!(walks.far[50_000], 50_001);
            assert!(!walks.dominance().is_avoidable(id_of_step(50_000), id_of_step(49_999)));
        });
    }
}
