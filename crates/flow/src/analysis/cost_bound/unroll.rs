//! A flow with its memory unrolled: one place for each state of a step, so that walks take only edges that a run can
//! take.
//!
//! A state holds everything besides the step that affects later transitions: counters of bounded edges, origins, the
//! visits that a monitor observed, the visits and checks that a verdict counted, and the asked judge. With too many
//! states, the largest counters are left out, which makes the bound larger.

use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use foldhash::fast::FixedState;

use super::edges::{PlaceEdge, PlaceGraph};
use super::memory::{CounterValues, Memory};
use super::successors::{StepSuccessors, find_closed_edges};
use super::verdict_counters::{AnswerCounting, CountLimits};
use crate::analysis::graph::{falls_first, judges_of_gate, steps_of_target};
use crate::model::monitor_watch;
use crate::{
    Str,
    model::{Act, CounterId, Edge, Flow, StepId, Target},
};

/// The most states of an unrolled flow.
const STATES_MAX: usize = 4_096;
/// The most states times iterations.
const WORK_MAX: usize = 1_000_000;
/// The most steps of an unrolled flow.
pub(super) const STEPS_MAX: usize = 1_024;

pub(super) struct UnrolledFlow {
    /// The graph of states.
    pub(super) ways: PlaceGraph,
    /// The tracked memory.
    pub(super) followed: TrackedMemory,
}

/// The tracked memory of a flow.
pub(super) struct TrackedMemory {
    /// The names of untracked counters.
    pub(super) loose: Vec<Str>,
    /// Whether visits that a verdict counts are tracked.
    pub(super) visits: bool,
    /// Whether everything is tracked.
    pub(super) is_all: bool,
    /// The tracked counters.
    counters: Vec<CounterId>,
    /// By state: the values of these counters.
    spent: Vec<Rc<CounterValues>>,
    /// The successors of steps, independent of memory.
    known: Rc<StepSuccessors>,
}

impl TrackedMemory {
    /// The maximum of a counter on a walk; `None` if it is not tracked.
    pub(super) fn spent(&self, counter: CounterId, walk: &[u32]) -> Option<u32> {
        let place = self.counters.iter().position(|known| *known == counter)? as u32;
        walk.iter().map(|state| self.spent[*state as usize].of(place)).max()
    }
}

/// A state of the run at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    step: StepId,
    /// The index of the judge that is asked about the step's answer.
    judge: Option<u32>,
    /// The step of the open visit.
    visit: StepId,
    /// Whether a monitor acted in that visit.
    judged: bool,
    /// The number of the tracked counter values.
    spent: u32,
    /// The number of the last origins.
    origins: u32,
    /// The number of the visits before this one, as far back as a monitor looks.
    history: u32,
    /// Finished visits, up to the verdict's count.
    finished: u32,
    /// Answers that the verdict counted, up to its count.
    checks: u32,
    /// The number of the set of steps whose validators failed and have not passed since, where the verdict counts.
    failing: u32,
    /// Whether this is the first iteration, for fallbacks that apply only there.
    first: bool,
}

/// Hashing a few large words is faster than hashing many small ones.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let two = |one: u32, other: u32| u64::from(one) << 32 | u64::from(other);
        hasher.write_u64(two(self.step.0, self.visit.0));
        hasher.write_u64(two(self.judge.unwrap_or(u32::MAX), u32::from(self.judged)));
        hasher.write_u64(two(self.spent, self.origins));
        hasher.write_u64(two(self.history, self.finished));
        hasher.write_u64(two(self.checks, u32::from(self.first)));
        hasher.write_u32(self.failing);
    }
}

/// The unrolling.
struct FlowUnroller<'f> {
    flow: &'f Flow,
    known: Rc<StepSuccessors>,
    /// By counter: whether it can be used up.
    bounds: Vec<bool>,
    /// By counter: its index among the tracked ones.
    places: Vec<Option<u32>>,
    /// By step: the monitors whose rounds begin with it.
    watching: Vec<Vec<usize>>,
    /// How far the verdict's counts are tracked.
    counted: CountLimits,
    returns: bool,
    states_max: usize,
}

impl UnrolledFlow {
    /// Unrolls a flow; `None` when there are too many states even without counters, or when it is unclear which judge
    /// asks the questions that the definition answers.
    ///
    /// `like`: results for a flow that differs only in numbers, for reuse.
    pub(super) fn of(flow: &Flow, iterations_max: u32, like: Option<&TrackedMemory>) -> Option<UnrolledFlow> {
        if !is_unrolled(flow) {
            return None;
        }
        let edges = || flow.steps.iter().flat_map(|step| &step.edges);
        let mut counts = collect_counter_ranges(flow, iterations_max);
        let counted = CountLimits::of(&flow.verdict);
        counts.extend(counted.visits.map(|max| (max, Count::Visits)));
        counts.extend(counted.checks.map(|max| (max, Count::Checks)));
        counts.sort();
        let bounded: Vec<CounterId> = counts.iter().filter_map(|(_, count)| count.counter()).collect();
        let known = like.map(|like| &like.known).filter(|known| known.closed == find_closed_edges(flow));
        let mut unroll = FlowUnroller {
            flow,
            known: known.cloned().unwrap_or_else(|| StepSuccessors::of(flow)),
            bounds: vec![false; flow.counters.len()],
            places: vec![None; flow.counters.len()],
            watching: index_monitors_by_start(flow),
            counted,
            returns: edges().any(|edge| matches!(edge.to, Target::Origin { .. })),
            states_max: STATES_MAX.min(WORK_MAX / (iterations_max as usize).max(1)),
        };
        bounded.iter().for_each(|counter| unroll.bounds[counter.0 as usize] = true);
        // Binary search for the most of the smallest counters that fit.
        let (mut least, mut most) = (0, counts.len() + 1);
        let mut found = None;
        let mut followed = counts.len();
        while least < most {
            let counters = unroll.follow(&counts[..followed], counted);
            match unroll.states() {
                Some(states) => {
                    found = Some((states, counters, followed));
                    least = followed + 1;
                }
                None => most = followed,
            }
            // If even no counter is too many, some counters would rarely help.
            followed = if found.is_none() { 0 } else { (least + most) / 2 };
        }
        let (States { steps, out, spent }, counters, followed) = found?;
        let loose = counts[followed..].iter().filter_map(|(_, count)| count.counter());
        let loose = loose.map(|counter| flow.counter(counter).name.clone()).collect();
        let visits = counts[..followed].iter().any(|(_, count)| *count == Count::Visits);
        let is_all = followed == counts.len();
        let followed = TrackedMemory { loose, visits, is_all, counters, spent, known: unroll.known };
        Some(UnrolledFlow { ways: PlaceGraph::between(flow, steps, out), followed })
    }
}

/// Whether a flow is small enough to try unrolling it.
pub(super) fn is_unrolled(flow: &Flow) -> bool {
    let asks_judges = || flow.steps.iter().any(|step| judges_of_gate(&step.gate).next().is_some());
    flow.steps.len() <= STEPS_MAX && !(flow.conduct.auto_response.is_some() && asks_judges())
}

/// By step: the monitors whose rounds begin with it.
fn index_monitors_by_start(flow: &Flow) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); flow.steps.len()];
    for (at, monitor) in flow.monitors.iter().enumerate() {
        for first in monitor.cycle.first().into_iter().flatten() {
            found[first.0 as usize].push(at);
        }
    }
    found
}

/// Something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Count {
    /// How often the edges of a counter were taken.
    Edges(CounterId),
    /// Visits that the verdict counts.
    Visits,
    /// Check answers that the verdict counts.
    Checks,
}

impl Count {
    fn counter(self) -> Option<CounterId> {
        match self {
            Count::Edges(counter) => Some(counter),
            Count::Visits | Count::Checks => None,
        }
    }
}

/// The range of each counter, without those that cannot be used up: each edge that counts on them begins an iteration,
/// and there are not enough iterations.
fn collect_counter_ranges(flow: &Flow, iterations_max: u32) -> Vec<(u32, Count)> {
    let mut largest: BTreeMap<CounterId, (u32, bool)> = BTreeMap::new();
    for edge in flow.steps.iter().flat_map(|step| &step.edges) {
        let Some(bound) = edge.bound else { continue };
        let begins =
            flow.monitors.is_empty() && steps_of_target(&edge.to).iter().all(|to| flow.step(*to).counts);
        let (max, free) = largest.entry(bound.counter).or_insert((0, true));
        *max = (*max).max(bound.max);
        *free &= begins && bound.max >= iterations_max;
    }
    let used = largest.into_iter().filter(|(_, (_, free))| !free);
    used.map(|(counter, (max, _))| (max, Count::Edges(counter))).collect()
}

/// All reachable states, the initial one first, and the edges between them.
struct States {
    steps: Vec<StepId>,
    out: Vec<Vec<PlaceEdge>>,
    spent: Vec<Rc<CounterValues>>,
}

impl FlowUnroller<'_> {
    /// Sets the tracked counters.
    fn follow(&mut self, counts: &[(u32, Count)], counted: CountLimits) -> Vec<CounterId> {
        let counters: Vec<CounterId> = counts.iter().filter_map(|(_, count)| count.counter()).collect();
        self.places.fill(None);
        for (place, counter) in (0..).zip(&counters) {
            self.places[counter.0 as usize] = Some(place);
        }
        let is_followed = |what| counts.iter().any(|(_, count)| *count == what);
        self.counted = CountLimits {
            visits: counted.visits.filter(|_| is_followed(Count::Visits)),
            checks: counted.checks.filter(|_| is_followed(Count::Checks)),
        };
        counters
    }

    /// Explores all reachable states; `None` when there are too many.
    fn states(&self) -> Option<States> {
        let first = State {
            step: self.flow.entry,
            judge: None,
            visit: self.flow.entry,
            judged: false,
            spent: 0,
            origins: 0,
            history: 0,
            finished: 0,
            checks: 0,
            failing: 0,
            first: self.counted.checks.is_some() && falls_first(self.flow),
        };
        let mut memory = Memory::default();
        let mut known: HashMap<State, u32, FixedState> = HashMap::default();
        known.insert(first, 0);
        let mut states = vec![first];
        let mut out: Vec<Vec<PlaceEdge>> = Vec::new();
        let mut next = Vec::new();
        while let Some(state) = states.get(out.len()).copied() {
            next.clear();
            self.after(state, &mut memory, &mut next);
            let ways = next.iter().map(|(next, edge)| {
                let to = *known.entry(*next).or_insert_with(|| {
                    states.push(*next);
                    states.len() as u32 - 1
                });
                let (remedy, again) = edge.map_or((false, false), |edge| (edge.remedy.is_some(), edge.again));
                PlaceEdge { to, remedy, again }
            });
            out.push(ways.collect());
            if states.len() > self.states_max {
                return None;
            }
        }
        let steps = states.iter().map(|state| self.stands_for(state)).collect();
        let spent = states.iter().map(|state| memory.spent.get(state.spent)).collect();
        Some(States { steps, out, spent })
    }

    /// The step that is executed in a state.
    fn stands_for(&self, state: &State) -> StepId {
        match state.judge {
            Some(place) => self.known.judges[state.step.0 as usize][place as usize],
            None => state.step,
        }
    }

    /// Adds the successors of a state, and the edge that enters each as another iteration.
    fn after<'e>(
        &'e self,
        state: State,
        memory: &mut Memory,
        found: &mut Vec<(State, Option<&'e Edge<StepId>>)>,
    ) {
        let step = self.flow.step(state.step);
        let judges = &self.known.judges[state.step.0 as usize];
        let further = state.judge.map_or(0, |place| place + 1);
        if (further as usize) < judges.len() {
            found.push((State { judge: Some(further), ..state }, None));
        }
        for leaving in self.known.leaving(self.flow, state.step, state.judge) {
            for (index, targets) in &leaving.edges {
                let edge = &step.edges[*index];
                let (is_open, is_last) = self.is_open(edge, state, memory);
                if is_open {
                    let origin = self.origin(state, edge, memory).map(|to| (to, leaving.said));
                    for (to, said) in targets.iter().chain(&origin) {
                        let checks = self.checked(state, *said);
                        let failing = self.failing(state, leaving.failed, memory);
                        found.extend(self.go(State { checks, failing, ..state }, edge, *to, memory));
                    }
                }
                if is_last {
                    break;
                }
            }
        }
    }

    /// Whether an edge can be taken in a state, and whether no later edge can.
    fn is_open(&self, edge: &Edge<StepId>, state: State, memory: &Memory) -> (bool, bool) {
        let Some(bound) = edge.bound.filter(|bound| self.bounds[bound.counter.0 as usize]) else {
            return (true, true);
        };
        match self.places[bound.counter.0 as usize] {
            Some(place) => {
                let is_left = bound.allows(memory.spent.of(state.spent).of(place));
                (is_left, is_left)
            }
            None => (bound.allows(0), false),
        }
    }

    /// The origin that an edge returns to.
    fn origin(&self, state: State, edge: &Edge<StepId>, memory: &Memory) -> Option<StepId> {
        let Target::Origin { among } = &edge.to else { return None };
        let origin = memory.origins.of(state.origins).of(state.visit).filter(|origin| among.contains(origin));
        Some(origin.unwrap_or(state.visit))
    }

    /// The number of counted answers after this one.
    fn checked(&self, state: State, said: AnswerCounting) -> u32 {
        let counts = match said {
            AnswerCounting::Always => true,
            AnswerCounting::AfterFirst => !state.first,
            AnswerCounting::Never => false,
        };
        self.counted.checks.map_or(0, |max| (state.checks + u32::from(counts)).min(max))
    }

    /// The steps whose validators fail after a step is left.
    fn failing(&self, state: State, failed: bool, memory: &mut Memory) -> u32 {
        let counts = self.counted.visits.is_some() || self.counted.checks.is_some();
        match &self.flow.step(state.step).act {
            Act::Exec { .. } if counts => memory.validate(state.failing, state.step, failed),
            _ => state.failing,
        }
    }

    /// The state after an edge, and that edge if it begins an iteration; `None` when the verdict ends the run.
    fn go<'e>(
        &self,
        state: State,
        edge: &'e Edge<StepId>,
        to: StepId,
        memory: &mut Memory,
    ) -> Option<(State, Option<&'e Edge<StepId>>)> {
        let mut next = State { step: to, judge: None, ..state };
        let place = |counter: CounterId| self.places[counter.0 as usize];
        if let Some(place) = edge.bound.and_then(|bound| place(bound.counter)) {
            next.spent = memory.spend(next.spent, place);
        }
        for place in edge.resets.iter().filter_map(|counter| place(*counter)) {
            next.spent = memory.reset(next.spent, place);
        }
        if edge.hands_off && self.returns {
            next.origins = memory.hand_off(next.origins, to, state.visit);
        }
        // A step that does not count belongs to the visit that led to it.
        if !self.flow.step(to).counts {
            return Some((next, None));
        }
        if edge.remedy.is_none()
            && let Some(judge) = self.fired(state, to, memory)
        {
            next.history = 0;
            next.judged = true;
            next.step = judge;
            if !self.flow.step(judge).counts {
                return Some((next, None));
            }
        }
        next.finished = self.counted.visits.map_or(0, |max| (state.finished + 1).min(max));
        if next.failing == 0 && self.flow.verdict.holds(next.finished, next.checks, false) {
            return None;
        }
        // In what monitors observe, a remedy replaces the visit that it repairs, as does another attempt.
        let mended = (edge.remedy.is_some() || edge.again) && to == state.visit;
        if !(next.judged || mended) {
            next.history = memory.visit(&self.flow.monitors, next.history, state.visit);
        }
        next.judged = false;
        next.first = false;
        next.visit = next.step;
        Some((next, Some(edge)))
    }

    /// The judge of the monitor that acts when control moves to a counting step.
    fn fired(&self, state: State, to: StepId, memory: &Memory) -> Option<StepId> {
        if state.judged && !self.flow.step(state.step).counts {
            return None;
        }
        let monitors = &self.flow.monitors;
        let observed = memory.histories.of(state.history);
        let acts = |at: &&usize| monitor_watch::is_monitor_acting(monitors, **at, observed, state.visit, to);
        self.watching[to.0 as usize].iter().find(acts).map(|at| monitors[*at].judge)
    }
}
