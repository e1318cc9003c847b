//! Explores all states of runs and the marks they reach.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use super::distances::PredecessorIndex;
use super::exhaustion::ExhaustionTable;
use super::state::{Move, RunState};
use super::transitions::TransitionRules;
use super::{Choice, Mark};
use crate::{
    Str,
    model::{Ending, Flow, StepId, Target},
};

/// The most states.
const SITUATIONS_MAX: usize = 100_000;
/// The most transitions of all states.
const HOPS_MAX: usize = 600_000;
/// The most numbers that all states remember together for monitors.
const REMEMBERED_MAX: usize = 4_000_000;
/// The number of states from which on states beyond the iteration limit are not explored.
const BEYOND_MAX: usize = 5_000;
/// No state: the run ends.
pub(super) const END: u32 = u32::MAX;

/// The graph of all states of a flow's runs, for any number of iterations.
#[derive(Debug)]
pub struct StateGraph {
    flow: Arc<Flow>,
    iterations_max: u32,
    /// The number of iterations within which all states were explored.
    looked: u32,
    /// The transition rules, and the exact or reduced form of states.
    exactly: TransitionRules,
    rules: Option<TransitionRules>,
    known: HashMap<RunState, u32>,
    /// By state: its step, and its transitions.
    pub(super) ats: Vec<StepId>,
    pub(super) hops: Vec<Vec<StateTransition>>,
    /// By state: whether it lies beyond the iteration limit and was not explored.
    pub(super) unseen: Vec<bool>,
    /// The sets of marks that are reached together, and all marks.
    pub(super) sets: Vec<Vec<u32>>,
    pub(super) marks: Vec<Mark>,
    pub(super) choices: Vec<(StepId, Choice)>,
    /// By state: how many iterations can still begin; `None` = any number.
    pub(super) further: Vec<Option<u32>>,
    /// By mark: the first iteration in which a run can reach it.
    first: BTreeMap<Mark, u32>,
    pub(super) before: OnceLock<PredecessorIndex>,
    /// By state: the distance to any end.
    pub(super) home: OnceLock<Vec<u32>>,
    pub(super) exhausting: OnceLock<ExhaustionTable>,
}

/// A transition between states.
#[derive(Debug, Clone, Copy)]
pub(super) struct StateTransition {
    pub(super) choice: u32,
    pub(super) set: u32,
    pub(super) to: u32,
    pub(super) counts: bool,
    pub(super) exhausts: bool,
}

impl StateGraph {
    /// Explores a flow; `iterations_max` is the iteration limit of its runs.
    pub fn explore(flow: Arc<Flow>, iterations_max: u32) -> StateGraph {
        StateGraph::within(flow, iterations_max, SITUATIONS_MAX)
    }

    /// As [`StateGraph::explore`], with a limit of states.
    pub(super) fn within(flow: Arc<Flow>, iterations_max: u32, situations_max: usize) -> StateGraph {
        let rules = |exact| TransitionRules::new(&flow, exact);
        let mut found = ExplorationState::default();
        let (exactly, mut loosely) = (rules(true), None);
        let own_max = iterations_max.max(flow.limits.iterations_max);
        if !found.explore(&flow, &exactly, situations_max, (iterations_max, own_max)) {
            found = ExplorationState::default();
            let rules = rules(false);
            found.explore(&flow, &rules, usize::MAX, (iterations_max, own_max));
            loosely = Some(rules);
        }
        let ExplorationState { known, ats, hops, sets, marks, choices, looked, .. } = found;
        let unseen: Vec<bool> = hops.iter().map(Option::is_none).collect();
        let hops = hops.into_iter().map(Option::unwrap_or_default).collect();
        let mut reach = StateGraph {
            iterations_max,
            looked,
            unseen,
            exactly,
            rules: loosely,
            known,
            ats,
            hops,
            sets,
            marks,
            choices,
            further: Vec::new(),
            first: BTreeMap::new(),
            before: OnceLock::new(),
            home: OnceLock::new(),
            exhausting: OnceLock::new(),
            flow,
        };
        reach.further = reach.most();
        reach.first = reach.firsts(&vec![false; reach.choices.len()]);
        reach
    }

    /// Whether states are exact: they include everything that affects later transitions.
    pub fn is_exact(&self) -> bool {
        self.rules.is_none()
    }

    /// The number of iterations within which everything is known, at least the iteration limit; `u32::MAX` if for any
    /// number.
    pub fn looked(&self) -> u32 {
        self.looked
    }

    /// The graph of the same flow without counters and memory: a mark that is unreachable there is always unreachable.
    pub fn loosely(&self) -> StateGraph {
        StateGraph::within(self.flow.clone(), self.iterations_max, 0)
    }

    /// The number of states.
    pub fn situations(&self) -> usize {
        self.ats.len()
    }

    /// The iteration limit of the runs.
    pub fn iterations_max(&self) -> u32 {
        self.iterations_max
    }

    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// The names of the selecting values, in the order in which states store them.
    pub fn keys(&self) -> &[Str] {
        &self.exactly.keys
    }

    /// All reachable marks, with the first iteration in which a run can reach each, without an iteration limit. With
    /// too many states, only the marks within the limit.
    pub fn marks(&self) -> &BTreeMap<Mark, u32> {
        &self.first
    }

    /// The first iteration in which a run can reach a mark; `None` if no run within the limit does.
    pub fn first(&self, mark: &Mark) -> Option<u32> {
        match mark {
            Mark::Exhausted => self.is_exhaustible().then_some(self.iterations_max),
            _ => self.first.get(mark).copied(),
        }
    }

    /// The first iteration in which a run can end this way.
    pub fn ends(&self, ending: &Ending) -> Option<u32> {
        let is = |mark: &Mark| match mark {
            Mark::Edge(step, edge, None) => {
                matches!(&self.flow.step(*step).edges[*edge].to, Target::End(end) if end == ending)
            }
            _ => false,
        };
        self.first.iter().filter(|(mark, _)| is(mark)).map(|(_, first)| *first).min()
    }

    /// Whether some run would exceed this number of iterations if it were allowed to.
    pub fn exceeds(&self, iterations: u32) -> bool {
        self.further[0].is_none_or(|further| further.saturating_add(1) > iterations)
    }

    /// All transitions of a state.
    pub fn moves(&self, situation: &RunState) -> Vec<Move> {
        let situation = self.exactly.normal(situation.clone());
        self.exactly.moves(&self.flow, &situation)
    }

    /// The initial state.
    #[cfg(test)]
    pub(super) fn exactly_first(&self) -> RunState {
        self.exactly.first(&self.flow)
    }

    /// The index of a state; `None` when no run reaches it by itself.
    pub(super) fn place(&self, situation: &RunState) -> Option<u32> {
        let situation = self.rules.as_ref().unwrap_or(&self.exactly).normal(situation.clone());
        self.known.get(&situation).copied()
    }
}

#[derive(Default)]
struct ExplorationState {
    known: HashMap<RunState, u32>,
    ats: Vec<StepId>,
    hops: Vec<Option<Vec<StateTransition>>>,
    sets: Vec<Vec<u32>>,
    set_ids: HashMap<Vec<u32>, u32>,
    marks: Vec<Mark>,
    mark_ids: HashMap<Mark, u32>,
    choices: Vec<(StepId, Choice)>,
    choice_ids: HashMap<(StepId, Choice), u32>,
    looked: u32,
}

impl ExplorationState {
    /// Explores all states, those with the fewest iterations first. Returns whether it got far enough: within the limit
    /// of the runs in question (`runs_max`), and little beyond the overall limit (`own_max`).
    fn explore(
        &mut self,
        flow: &Flow,
        rules: &TransitionRules,
        situations_max: usize,
        (runs_max, own_max): (u32, u32),
    ) -> bool {
        let first = rules.first(flow);
        let (mut all, mut fewest, mut count) = (vec![first.clone()], vec![1], 0);
        self.known.insert(first, 0);
        let (mut now, mut later, mut iteration) = (VecDeque::from([0]), VecDeque::new(), 1);
        self.looked = u32::MAX;
        let (mut remembered, is_bounded) = (0, situations_max < usize::MAX);
        while let Some(at) = now.pop_front() {
            if self.hops.get(at).is_none_or(Option::is_none) {
                let mut hops = Vec::new();
                for Move { choice, marks, next, counts, exhausts } in rules.moves(flow, &all[at]) {
                    let to = next.map_or(END, |next| {
                        *self.known.entry(next).or_insert_with_key(|next| {
                            remembered += next.watched.len();
                            all.push(next.clone());
                            fewest.push(u32::MAX);
                            all.len() as u32 - 1
                        })
                    });
                    let iterations = iteration + u32::from(counts);
                    if to != END && iterations < fewest[to as usize] {
                        fewest[to as usize] = iterations;
                        let queue = if counts { &mut later } else { &mut now };
                        queue.push_back(to as usize);
                    }
                    let (choice, set) = (self.choice(all[at].at, choice), self.set(marks));
                    hops.push(StateTransition { choice, set, to, counts, exhausts });
                }
                count += hops.len();
                self.hops.resize_with(all.len(), || None);
                self.hops[at] = Some(hops);
            }
            let is_much = all.len() > situations_max || count > HOPS_MAX || remembered > REMEMBERED_MAX;
            if is_bounded && is_much {
                if iteration <= runs_max {
                    return false;
                }
                self.looked = iteration - 1;
                break;
            }
            if now.is_empty() {
                std::mem::swap(&mut now, &mut later);
                iteration += 1;
                if iteration > own_max && is_bounded && all.len() > BEYOND_MAX {
                    self.looked = iteration - 1;
                    break;
                }
            }
        }
        self.ats = all.iter().map(|situation| situation.at).collect();
        self.hops.resize_with(all.len(), || None);
        true
    }

    fn choice(&mut self, at: StepId, choice: Choice) -> u32 {
        *self.choice_ids.entry((at, choice)).or_insert_with_key(|choice| {
            self.choices.push(choice.clone());
            self.choices.len() as u32 - 1
        })
    }

    fn set(&mut self, marks: Vec<Mark>) -> u32 {
        let mut set: Vec<u32> = marks
            .into_iter()
            .map(|mark| {
                *self.mark_ids.entry(mark).or_insert_with_key(|mark| {
                    self.marks.push(mark.clone());
                    self.marks.len() as u32 - 1
                })
            })
            .collect();
        set.sort_unstable();
        set.dedup();
        *self.set_ids.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            self.sets.len() as u32 - 1
        })
    }
}
