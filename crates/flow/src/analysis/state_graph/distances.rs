//! Distances between states and goals.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use super::explore::{END, StateGraph, StateTransition};
use super::state::Move;
use super::transitions::marks_of_entry;
use super::{Choice, Mark};
use crate::model::StepId;

/// The distance of unreachable states.
pub const FAR: u32 = u32::MAX;

/// The cost of an iteration on a path; a move within one costs 1. It exceeds the moves within all iterations of a path,
/// so fewer iterations are always nearer.
const ITERATION: u32 = 1 << 13;

/// The reversed graph: by state, its predecessors.
#[derive(Debug)]
pub(super) struct PredecessorIndex {
    starts: Vec<u32>,
    from: Vec<(u32, u32)>,
}

/// By state, the distance to the nearest remaining goal.
#[derive(Debug)]
pub struct GoalDistances {
    /// The distance to goals after which the run goes on, and to those that end it.
    going: Vec<u32>,
    ending: Vec<u32>,
    left: BTreeSet<Mark>,
}

impl GoalDistances {
    /// Marks a goal as reached. The distances to the others do not change.
    pub fn came(&mut self, mark: &Mark) {
        self.left.remove(mark);
    }
}

/// The rank of a move: the smaller, the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u8, u32);

impl StateGraph {
    /// By state, the fewest iterations to get there, without closed choices.
    pub(super) fn fewest_iterations_by_state(&self, closed: &[bool]) -> Vec<u32> {
        let mut fewest = vec![FAR; self.hops.len()];
        fewest[0] = 1;
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            let hops = self.hops[at].iter().filter(|hop| hop.to != END && !closed[hop.choice as usize]);
            for hop in hops {
                let to = hop.to as usize;
                let iterations = fewest[at].saturating_add(u32::from(hop.counts));
                if iterations < fewest[to] {
                    fewest[to] = iterations;
                    match hop.counts {
                        true => queue.push_back(to),
                        false => queue.push_front(to),
                    }
                }
            }
        }
        fewest
    }

    /// By mark, the first iteration in which a run can reach it, without closed choices.
    pub(super) fn firsts(&self, closed: &[bool]) -> BTreeMap<Mark, u32> {
        let fewest = self.fewest_iterations_by_state(closed);
        let mut first = BTreeMap::new();
        let mut come = |mark: &Mark, at: u32| {
            if at < FAR {
                let known = first.entry(mark.clone()).or_insert(at);
                *known = at.min(*known);
            }
        };
        let (mut sets, mut steps) = (vec![FAR; self.sets.len()], BTreeMap::new());
        for (situation, hops) in self.hops.iter().enumerate() {
            let at = fewest[situation];
            let known = steps.entry(self.ats[situation]).or_insert(FAR);
            *known = at.min(*known);
            for hop in hops.iter().filter(|hop| !closed[hop.choice as usize]) {
                let known = &mut sets[hop.set as usize];
                *known = at.min(*known);
            }
        }
        for (step, at) in steps {
            marks_of_entry(self.flow(), step).iter().for_each(|mark| come(mark, at));
        }
        for (set, at) in self.sets.iter().zip(sets) {
            set.iter().for_each(|mark| come(&self.marks[*mark as usize], at));
        }
        first
    }

    fn closed(&self, unsaid: &BTreeSet<(StepId, Choice)>) -> Vec<bool> {
        let is_closed =
            |(at, choice): &(StepId, Choice)| !unsaid.is_empty() && unsaid.contains(&(*at, choice.answer()));
        self.choices.iter().map(is_closed).collect()
    }

    /// By state, the most iterations that can still begin, including the last one where none is left; `None` for
    /// cycles.
    pub(super) fn most(&self) -> Vec<Option<u32>> {
        let before = self.before();
        let mut open: Vec<usize> =
            self.hops.iter().map(|hops| hops.iter().filter(|hop| hop.to != END).count()).collect();
        let mut most = vec![None; self.hops.len()];
        let mut ready: Vec<usize> =
            (0..open.len()).filter(|at| open[*at] == 0 && !self.unseen[*at]).collect();
        while let Some(at) = ready.pop() {
            let further = |hop: &StateTransition| {
                let to = if hop.to == END { Some(0) } else { most[hop.to as usize] };
                to.map(|to| extend_walk_length(to, hop.counts, hop.exhausts))
            };
            most[at] = Some(self.hops[at].iter().filter_map(further).max().unwrap_or(0));
            for (from, _) in before.to(at) {
                open[*from as usize] -= 1;
                if open[*from as usize] == 0 {
                    ready.push(*from as usize);
                }
            }
        }
        most
    }

    pub(super) fn before(&self) -> &PredecessorIndex {
        self.before.get_or_init(|| {
            let mut starts = vec![0_u32; self.hops.len() + 1];
            let all = || {
                self.hops.iter().enumerate().flat_map(|(from, hops)| {
                    let hops = hops.iter().enumerate().filter(|(_, hop)| hop.to != END);
                    hops.map(move |(place, hop)| (hop.to as usize, (from as u32, place as u32)))
                })
            };
            all().for_each(|(to, _)| starts[to + 1] += 1);
            (0..self.hops.len()).for_each(|at| starts[at + 1] += starts[at]);
            let mut filled = starts.clone();
            let mut from = vec![(0, 0); starts[self.hops.len()] as usize];
            for (to, hop) in all() {
                from[filled[to] as usize] = hop;
                filled[to] += 1;
            }
            PredecessorIndex { starts, from }
        })
    }

    /// The distance to the remaining goals, without hopeless choices ([`Choice::answer`]).
    pub fn goal(&self, left: &BTreeSet<Mark>, hopeless: &BTreeSet<(StepId, Choice)>) -> GoalDistances {
        let is_left: Vec<bool> = self.marks.iter().map(|mark| left.contains(mark)).collect();
        let sets: Vec<bool> =
            self.sets.iter().map(|set| set.iter().any(|mark| is_left[*mark as usize])).collect();
        let enters: Vec<bool> = (0..self.flow().steps.len() as u32)
            .map(|id| marks_of_entry(self.flow(), StepId(id)).iter().any(|mark| left.contains(mark)))
            .collect();
        let closed = self.closed(hopeless);
        let is_goal = |at: usize, ends: bool| {
            let hops = self.hops[at].iter().filter(|hop| !closed[hop.choice as usize]);
            let mut hops = hops.filter(|hop| (hop.to == END) == ends);
            hops.any(|hop| sets[hop.set as usize]) || (!ends && enters[self.ats[at].0 as usize])
        };
        let going = self.distances(&closed, |at| is_goal(at, false));
        let ending = self.distances(&closed, |at| is_goal(at, true));
        GoalDistances { going, ending, left: left.clone() }
    }

    /// The distance to an end that completes the run.
    pub fn to_completed(&self) -> GoalDistances {
        let closed = vec![false; self.choices.len()];
        let completes = |at: usize| {
            let completes = |choice: u32| {
                let (step, choice) = &self.choices[choice as usize];
                choice.completes(self.flow(), *step)
            };
            self.hops[at].iter().any(|hop| completes(hop.choice))
        };
        let going = vec![FAR; self.hops.len()];
        let ending = self.distances(&closed, completes);
        let completes = |step: &StepId| {
            let edges = self.flow().step(*step).edges.iter().enumerate();
            let edges = edges.filter(|(index, _)| {
                let choice = Choice { edge: Some(*index), ..Choice::plain(crate::model::Outcome::None) };
                choice.completes(self.flow(), *step)
            });
            edges.map(|(index, _)| Mark::Edge(*step, index, None)).collect::<Vec<_>>()
        };
        let left =
            (0..self.flow().steps.len() as u32).map(StepId).flat_map(|step| completes(&step)).collect();
        GoalDistances { going, ending, left }
    }

    /// The distance to any end.
    fn home(&self) -> &[u32] {
        self.home.get_or_init(|| {
            let closed = vec![false; self.choices.len()];
            self.distances(&closed, |at| self.hops[at].iter().any(|hop| hop.to == END))
        })
    }

    fn distances(&self, closed: &[bool], is_goal: impl Fn(usize) -> bool) -> Vec<u32> {
        let before = self.before();
        let mut far = vec![FAR; self.hops.len()];
        let mut queue = BinaryHeap::new();
        for at in (0..far.len()).filter(|at| is_goal(*at)) {
            far[at] = 0;
            queue.push(Reverse((0, at as u32)));
        }
        while let Some(Reverse((cost, at))) = queue.pop() {
            if cost > far[at as usize] {
                continue;
            }
            for (from, place) in before.to(at as usize) {
                let hop = self.hops[*from as usize][*place as usize];
                let cost = cost.saturating_add(if hop.counts { ITERATION } else { 1 });
                if !closed[hop.choice as usize] && cost < far[*from as usize] {
                    far[*from as usize] = cost;
                    queue.push(Reverse((cost, *from)));
                }
            }
        }
        far
    }

    /// The rank of a move towards the goal, with `left` remaining iterations; moves that end the run rank last, or
    /// first with `ends_first`.
    pub fn rank(&self, goal: &GoalDistances, going: &Move, left: u32, ends_first: bool) -> Rank {
        let comes = going.marks.iter().any(|mark| goal.left.contains(mark));
        let (to_end, to_others) = if ends_first { (0, 1) } else { (1, 0) };
        let Some(next) = &going.next else {
            return if comes { Rank(to_end, 0) } else { Rank(2, 0) };
        };
        let cost = if going.counts { ITERATION } else { 1 };
        let most = left.saturating_mul(ITERATION).saturating_add(ITERATION - 1);
        if comes {
            return Rank(0, 0);
        }
        let Some(at) = self.place(next) else { return Rank(3, FAR) };
        let of = |far: &[u32]| far[at as usize].saturating_add(cost);
        match () {
            () if ends_first && of(&goal.ending) <= most => Rank(to_end, of(&goal.ending)),
            () if of(&goal.going) <= most => Rank(to_others, of(&goal.going)),
            () if of(&goal.ending) <= most => Rank(to_end, of(&goal.ending)),
            () => Rank(2, of(self.home())),
        }
    }

    /// The rank of a move for a run that should continue for `left` more iterations.
    pub fn rank_on(&self, at: StepId, going: &Move, left: u32) -> Rank {
        let next = going.next.as_ref().and_then(|next| self.place(next));
        let Some(next) = next else { return Rank(2, 0) };
        let after = left.checked_sub(u32::from(going.counts));
        let can = match after {
            Some(after) => self.can_exhaust(next, after),
            None => going.exhausts,
        };
        if !can {
            return Rank(2, 0);
        }
        let further = self.further[next as usize]
            .map_or(FAR, |to| extend_walk_length(to, going.counts, going.exhausts));
        let bound = going.choice.edge.and_then(|edge| self.flow().step(at).edges[edge].bound);
        // If counters are not tracked, edges without a bound allow longer runs.
        Rank(u8::from(!self.is_exact() && bound.is_some()), FAR - further.min(left.saturating_add(1)))
    }
}

/// The number of iterations that can begin on a walk that starts with a move. The last one exhausts the run.
fn extend_walk_length(further: u32, counts: bool, exhausts: bool) -> u32 {
    match counts {
        true if further > 0 => further.saturating_add(1),
        true => u32::from(exhausts),
        false => further,
    }
}

impl PredecessorIndex {
    pub(super) fn to(&self, at: usize) -> &[(u32, u32)] {
        &self.from[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}
