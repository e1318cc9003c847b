//! Walks of control: what can follow what, in how many iterations, and what goes round.

use std::collections::{HashMap, VecDeque};

use super::{
    dominators::Dominance,
    handoff_origins,
    reachability::{Live, hop},
};
use crate::{
    analysis::components::Components,
    diagnostics::Trace,
    model::{Flow, StepId},
};

/// The distance of what no walk comes to.
pub(crate) const FAR: u32 = u32::MAX;

/// How many hops one kind of finding looks at for each hop of the flow, before it says no more: what is near is found
/// long before, and a flow that is made to be slow does not make checking slow.
const WORK_MAX: usize = 64;

/// One step of control to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) from: usize,
    /// The edge, by its place in its step; `None` when a monitor acts.
    pub(crate) edge: Option<usize>,
    pub(crate) to: usize,
}

/// Where control goes.
pub(crate) struct Walks<'f> {
    pub(crate) flow: &'f Flow,
    /// By step: what can follow it.
    pub(crate) out: Vec<Vec<Hop>>,
    /// By step: the fewest iterations with which control comes to it, its own included.
    pub(crate) far: Vec<u32>,
}

/// What a search came to.
pub(crate) struct Search {
    /// How far from where it began, in iterations.
    distance: HashMap<usize, u32>,
    came: HashMap<usize, Hop>,
    /// The first place that was looked for.
    pub(crate) found: Option<usize>,
    /// How many hops were looked at.
    pub(crate) work: usize,
}

/// Hops that may still be looked at.
pub(crate) struct Work(pub(crate) usize);

impl<'f> Walks<'f> {
    /// Control begins at the entry; members and judges of answers are asked, and control stays where it is.
    pub(crate) fn of(flow: &'f Flow, live: &Live) -> Walks<'f> {
        let hops = |(from, ways): (usize, &Vec<super::reachability::Way>)| {
            let ways = ways.iter().filter(|way| !way.inner);
            ways.map(|way| Hop { from, edge: way.edge, to: way.to.0 as usize }).collect()
        };
        let mut out: Vec<Vec<Hop>> = live.ways.iter().enumerate().map(hops).collect();
        handoff_origins::keep_possible(flow, live, &mut out);
        let mut walks = Walks { flow, out, far: Vec::new() };
        let search = walks.search(&[flow.entry.0 as usize], |_| true, |_| false);
        walks.far = (0..flow.steps.len()).map(|step| search.distance(step)).collect();
        walks
    }

    /// What entering a step adds to the iterations.
    pub(crate) fn cost(&self, step: usize) -> u32 {
        u32::from(self.flow.steps[step].counts)
    }

    /// How much a finding may look at.
    pub(crate) fn work(&self) -> Work {
        let hops: usize = self.out.iter().map(Vec::len).sum();
        Work(WORK_MAX * (hops + self.out.len()) + 10_000)
    }

    /// The nearest place of some kind, from any of some steps, over hops that may be taken.
    pub(crate) fn search(
        &self,
        from: &[usize],
        may: impl Fn(&Hop) -> bool,
        goal: impl Fn(usize) -> bool,
    ) -> Search {
        let mut search =
            Search { distance: HashMap::new(), came: HashMap::new(), found: None, work: from.len() };
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

    /// A shortest walk from the entry to a step, over hops that may be taken.
    pub(crate) fn to(&self, step: usize, may: impl Fn(&Hop) -> bool) -> Option<Vec<Hop>> {
        let search = self.search(&[self.flow.entry.0 as usize], may, |at| at == step);
        search.found.map(|found| search.walk(found))
    }

    /// A walk for people, one hop an entry, and where it ends.
    pub(crate) fn tell(&self, hops: &[Hop], end: usize) -> Trace {
        let mut told = self.hops(hops);
        let end = &self.flow.steps[end];
        told.push(&*end.name, end.span);
        told
    }

    /// A walk for people that ends the run by an edge of a step.
    pub(crate) fn tell_end(&self, hops: &[Hop], step: usize, edge: usize) -> Trace {
        let mut told = self.hops(hops);
        let (words, span) = hop(&self.flow.steps[step], Some(edge));
        told.push(words, span);
        told.push("the end", span);
        told
    }

    fn hops(&self, hops: &[Hop]) -> Trace {
        let mut told = Trace::default();
        for taken in hops {
            let (words, span) = hop(&self.flow.steps[taken.from], taken.edge);
            told.push(words, span);
        }
        told
    }

    /// By step: which of the sets of steps that come to each other it belongs to. Sets are numbered from 0, those that
    /// others lead to first.
    pub(crate) fn components(&self, may: impl Fn(&Hop) -> bool) -> Vec<usize> {
        let to = |hop: &Hop| may(hop).then_some(hop.to as u32);
        let found = Components::of(&self.out, to, 0..self.out.len() as u32);
        found.of.into_iter().map(|component| component as usize).collect()
    }

    /// What every walk from the entry to a step passes before it.
    pub(crate) fn dominance(&self) -> Dominance {
        let ways: Vec<Vec<u32>> =
            self.out.iter().map(|hops| hops.iter().map(|hop| hop.to as u32).collect()).collect();
        Dominance::over(&ways, &[self.flow.entry.0])
    }
}

impl Search {
    /// How far a step is; [`FAR`] when it was not come to.
    pub(crate) fn distance(&self, step: usize) -> u32 {
        self.distance.get(&step).copied().unwrap_or(FAR)
    }

    /// The way to a step that was come to.
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

impl Work {
    /// Whether there is some left after this much more.
    pub(crate) fn spend(&mut self, work: usize) -> bool {
        self.0 = self.0.saturating_sub(work);
        self.0 > 0
    }
}

/// The id of a step.
pub(crate) fn id(step: usize) -> StepId {
    StepId(step as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::reachability::Live,
        checks::{resolve::resolve, testing::draft},
    };

    fn with<T>(text: &str, look: impl FnOnce(&Walks<'_>) -> T) -> T {
        let flow = resolve(draft(text), &[], &mut Vec::new()).unwrap().flow;
        let live = Live::of(&flow, &[flow.entry], true);
        look(&Walks::of(&flow, &live))
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
    fn what_comes_to_each_other() {
        with("a: x → b\nb: x → c, y → a\nc: x → d\nd: x → c, y → end", |walks| {
            let of = walks.components(|_| true);
            assert!(of[0] == of[1] && of[2] == of[3] && of[0] != of[2] && of[2] < of[0]);
            let cut = walks.components(|hop| hop.to != 0);
            assert!(cut[0] != cut[1]);
        });
    }

    #[test]
    fn what_every_walk_passes() {
        with(
            "a: x → b, y → c\nb: x → d\nc: x → d, y → a\nd: x → e, y → b\ne: x → end",
            |walks| {
                let every = walks.dominance();
                let passes = |first, step| !every.is_avoidable(id(step), id(first));
                assert!(passes(3, 4) && passes(0, 4) && passes(0, 3));
                assert!(!passes(1, 4) && !passes(4, 4) && !passes(4, 3));
            },
        );
    }

    #[test]
    fn a_chain_of_any_length() {
        let line = |at: usize| format!("s{at}: x → s{}\n", at + 1);
        let text: String = (0..50_000).map(line).collect();
        with(&format!("{text}s50000: x → s0, y → end"), |walks| {
            assert_eq!(walks.components(|_| true).iter().max(), Some(&0));
            assert_eq!(walks.far[50_000], 50_001);
            assert!(!walks.dominance().is_avoidable(id(50_000), id(49_999)));
        });
    }
}
