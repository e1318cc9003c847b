//! A flow with its memory unrolled: a step for each way in which control can stand on one, so that walks over it take
//! no edge that a run could not take.
//!
//! What decides later ways besides the step is part of such a state: counters of bounded edges, who handed off, what a
//! monitor saw, how many visits a verdict counted, and which judge is asked. A definition with too many states is
//! unrolled without its largest counters, which makes the bound a larger one.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::graph::{Way, Ways};
use crate::check::graph::{judges, targets};
use crate::check::live::{Live, outcomes};
use crate::watch::{forget, seen};
use crate::{CounterId, Edge, Flow, Gate, Outcome, Reader, Step, StepId, Str, Target, Verdict};

/// The most states of an unrolled flow.
const STATES_MAX: usize = 4_096;
/// The most states times iterations: what is walked for each number.
const WORK_MAX: usize = 1_000_000;
/// The most steps of a flow that is unrolled.
pub(super) const STEPS_MAX: usize = 1_024;

/// An unrolled flow.
#[derive(Debug)]
pub(super) struct Unrolled {
    /// The flow's own steps, then one for each state.
    pub(super) flow: Flow,
    /// The ways between states.
    pub(super) ways: Ways,
    /// What of the flow's memory is followed.
    pub(super) followed: Followed,
}

/// What of a flow's memory is followed.
#[derive(Debug, Clone)]
pub(super) struct Followed {
    /// Names of the counters that are not.
    pub(super) loose: Vec<Str>,
    /// Whether visits that a verdict counts are.
    pub(super) visits: bool,
}

/// How control stands on a step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    step: StepId,
    /// The place of the judge that is asked about the step's answer.
    judge: Option<usize>,
    /// The step whose visit is open.
    visit: StepId,
    /// Whether a monitor acted in that visit.
    judged: bool,
    /// The counters that are followed, in the order of [`Unroll::counters`].
    counters: Vec<u32>,
    /// Who handed off to a step last.
    origins: BTreeMap<StepId, StepId>,
    /// The visits before this one, as far back as a monitor looks.
    history: Vec<StepId>,
    /// Visits that are over, up to what the verdict waits for.
    finished: u32,
}

/// Outcomes by step, and by the judge that was asked.
type Outcomes = HashMap<(StepId, Option<StepId>), Rc<BTreeSet<Outcome>>>;

/// What is followed.
struct Unroll<'f> {
    flow: &'f Flow,
    live: Live,
    /// Counters that cannot be used up.
    open: Vec<CounterId>,
    /// What steps come to by themselves, or when a judge was asked: once somebody asked.
    outcomes: RefCell<Outcomes>,
    /// Counters that are followed.
    counters: Vec<CounterId>,
    /// After how many visits the verdict ends a run, where that is followed.
    visits_max: Option<u32>,
    returns: bool,
    states_max: usize,
}

impl Unrolled {
    /// Unrolls a flow; `None` when there are too many states whatever is left out, or when nobody can tell which judge
    /// asks the questions that the definition answers.
    ///
    /// Where it is known already what is left out (`like`), that is left out and nothing else is tried.
    pub(super) fn of(
        flow: &Flow,
        iterations_max: u32,
        visits_max: Option<u32>,
        like: Option<&Followed>,
    ) -> Option<Unrolled> {
        let asks_judges = flow.steps.iter().any(|step| !judges(&step.gate).is_empty());
        if flow.steps.len() > STEPS_MAX || (flow.conduct.auto_response.is_some() && asks_judges) {
            return None;
        }
        let edges = || flow.steps.iter().flat_map(|step| &step.edges);
        let mut counts = counts(flow, iterations_max);
        counts.extend(visits_max.map(|max| (max, Count::Visits)));
        counts.sort();
        if let Some(like) = like {
            counts.retain(|(_, count)| match count {
                Count::Edges(counter) => !like.loose.contains(&flow.counter(*counter).name),
                Count::Visits => like.visits,
            });
        }
        let mut unroll = Unroll {
            flow,
            outcomes: RefCell::default(),
            live: Live::of(flow, &[flow.entry], true),
            open: (0..flow.counters.len() as u32).map(CounterId).collect(),
            counters: Vec::new(),
            visits_max: None,
            returns: edges().any(|edge| matches!(edge.to, Target::Origin { .. })),
            states_max: STATES_MAX.min(WORK_MAX / (iterations_max as usize).max(1)),
        };
        unroll.open.retain(|counter| !counts.iter().any(|(_, count)| *count == Count::Edges(*counter)));
        // The most of the smallest that are not too many together.
        let (mut least, mut most) = (0, counts.len() + 1);
        let mut found = None;
        let mut followed = counts.len();
        while least < most {
            unroll.follow(&counts[..followed], visits_max);
            match unroll.states() {
                Some(states) => {
                    found = Some((states, followed));
                    least = followed + 1;
                }
                None if like.is_some() => return None,
                None => most = followed,
            }
            followed = (least + most) / 2;
        }
        let ((states, ways), followed) = found?;
        let left_out = like.map(|like| like.loose.clone()).unwrap_or_default();
        let loose = counts[followed..].iter().filter_map(|(_, count)| match count {
            Count::Edges(counter) => Some(flow.counter(*counter).name.clone()),
            Count::Visits => None,
        });
        let loose = left_out.into_iter().chain(loose).collect();
        let visits = counts[..followed].iter().any(|(_, count)| *count == Count::Visits);
        let flow = unroll.with(states);
        let ways = Ways::between(&flow, ways);
        Some(Unrolled { flow, ways, followed: Followed { loose, visits } })
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Count {
    /// How often edges were taken.
    Edges(CounterId),
    /// Visits, by the verdict.
    Visits,
}

/// How far each counter counts, those left out that cannot be used up: each edge that counts on them begins an iteration,
/// and there are not as many.
fn counts(flow: &Flow, iterations_max: u32) -> Vec<(u32, Count)> {
    let mut largest: BTreeMap<CounterId, (u32, bool)> = BTreeMap::new();
    for edge in flow.steps.iter().flat_map(|step| &step.edges) {
        let Some(bound) = edge.bound else { continue };
        let begins = flow.monitors.is_empty() && targets(&edge.to).iter().all(|to| flow.step(*to).counts);
        let (max, free) = largest.entry(bound.counter).or_insert((0, true));
        *max = (*max).max(bound.max);
        *free &= begins && bound.max >= iterations_max;
    }
    let used = largest.into_iter().filter(|(_, (_, free))| !free);
    used.map(|(counter, (max, _))| (max, Count::Edges(counter))).collect()
}

impl Unroll<'_> {
    /// Says what is followed.
    fn follow(&mut self, counts: &[(u32, Count)], visits_max: Option<u32>) {
        self.counters = counts
            .iter()
            .filter_map(|(_, count)| match count {
                Count::Edges(counter) => Some(*counter),
                Count::Visits => None,
            })
            .collect();
        self.visits_max = visits_max.filter(|_| counts.iter().any(|(_, count)| *count == Count::Visits));
    }

    /// All states that runs come to, and the ways between them; `None` when there are too many.
    fn states(&self) -> Option<(Vec<State>, Vec<Vec<Way>>)> {
        let first = State {
            step: self.flow.entry,
            judge: None,
            visit: self.flow.entry,
            judged: false,
            counters: vec![0; self.counters.len()],
            origins: BTreeMap::new(),
            history: Vec::new(),
            finished: 0,
        };
        let own = self.flow.steps.len();
        let mut known: HashMap<State, u32> = HashMap::from([(first.clone(), own as u32)]);
        let mut states = vec![first];
        let mut out: Vec<Vec<Way>> = vec![Vec::new(); own];
        let mut at = 0;
        while at < states.len() {
            let mut ways = Vec::new();
            for (next, remedy) in self.after(&states[at]) {
                let to = *known.entry(next.clone()).or_insert_with(|| {
                    states.push(next);
                    (own + states.len() - 1) as u32
                });
                ways.push(Way { to, remedy });
            }
            if states.len() > self.states_max {
                return None;
            }
            out.push(ways);
            at += 1;
        }
        Some((states, out))
    }

    /// The step that is done in a state.
    fn stands_for(&self, state: &State) -> Step<StepId> {
        let step = self.flow.step(state.step);
        match state.judge {
            Some(place) => self.flow.step(judges(&step.gate)[place]).clone(),
            None => step.clone(),
        }
    }

    /// The flow with a step more for each state, of which the first is entered first.
    fn with(&self, states: Vec<State>) -> Flow {
        let flow = self.flow;
        let steps =
            flow.steps.iter().cloned().chain(states.iter().map(|state| self.stands_for(state))).collect();
        Flow {
            name: flow.name.clone(),
            dialect: flow.dialect,
            entry: StepId(flow.steps.len() as u32),
            lost_entry: None,
            steps,
            schemas: Vec::new(),
            counters: Vec::new(),
            monitors: Vec::new(),
            proofs: Vec::new(),
            verdict: Verdict::Flow,
            limits: flow.limits,
            default_model: flow.default_model.clone(),
            params: Vec::new(),
            conduct: flow.conduct.clone(),
            keys: Vec::new(),
        }
    }

    /// The states that can follow, and whether the step is asked with a remedy there.
    fn after(&self, state: &State) -> Vec<(State, bool)> {
        let step = self.flow.step(state.step);
        let judges = judges(&step.gate);
        let mut found = Vec::new();
        let further = state.judge.map_or(0, |place| place + 1);
        if further < judges.len() {
            found.push((State { judge: Some(further), ..state.clone() }, false));
        }
        let judge = state.judge.map(|place| judges[place]);
        let known = self.outcomes.borrow().get(&(state.step, judge)).cloned();
        let outcomes = known.unwrap_or_else(|| {
            let outcomes = Rc::new(self.outcomes(step, judge));
            self.outcomes.borrow_mut().insert((state.step, judge), outcomes.clone());
            outcomes
        });
        for outcome in outcomes.iter() {
            for (index, edge) in self.open(step, outcome, state) {
                for to in self.targets(state, index, edge) {
                    // There are few ways out of one state.
                    found.extend(self.go(state, outcome, edge, to).filter(|way| !found.contains(way)));
                }
            }
        }
        found
    }

    /// What a step comes to by itself, or when this judge was asked.
    fn outcomes(&self, step: &Step<StepId>, judge: Option<StepId>) -> BTreeSet<Outcome> {
        let Some(judge) = judge else {
            let mut alone = step.clone();
            match &mut alone.gate {
                Gate::Readers(readers) => readers.retain(|reader| !matches!(reader, Reader::Judge { .. })),
                Gate::Join { judges, .. } => judges.clear(),
                Gate::Exit | Gate::Always(_) => {}
            }
            return outcomes(self.flow, &alone);
        };
        let mut found = outcomes(self.flow, self.flow.step(judge));
        found.remove(&Outcome::None);
        if let Gate::Readers(readers) = &step.gate {
            found.extend(readers.iter().filter_map(|reader| match reader {
                Reader::Otherwise(outcome) | Reader::Fallback(outcome) | Reader::FirstFallback(outcome) => {
                    Some(outcome.clone())
                }
                _ => None,
            }));
        }
        found
    }

    /// The edges that an outcome can take in a state.
    fn open<'s>(
        &self,
        step: &'s Step<StepId>,
        outcome: &Outcome,
        state: &State,
    ) -> Vec<(usize, &'s Edge<StepId>)> {
        let mut open = Vec::new();
        for (index, edge) in step.edges.iter().enumerate().filter(|(_, edge)| edge.on == *outcome) {
            let Some(bound) = edge.bound.filter(|bound| !self.open.contains(&bound.counter)) else {
                open.push((index, edge));
                break;
            };
            match self.counters.iter().position(|known| *known == bound.counter) {
                Some(at) if state.counters[at] < bound.max => {
                    open.push((index, edge));
                    break;
                }
                None if bound.max > 0 => open.push((index, edge)),
                _ => {}
            }
        }
        open
    }

    /// Where an edge leads in a state.
    fn targets(&self, state: &State, index: usize, edge: &Edge<StepId>) -> Vec<StepId> {
        match &edge.to {
            Target::Step(to) => vec![*to],
            Target::End(_) => Vec::new(),
            Target::Origin { among } => {
                let origin = state.origins.get(&state.visit).filter(|origin| among.contains(origin));
                vec![*origin.unwrap_or(&state.visit)]
            }
            Target::Select { .. } | Target::Jump { .. } => {
                let ways = self.live.ways[state.step.0 as usize].iter();
                ways.filter(|way| way.edge == Some(index) && !way.inner).map(|way| way.to).collect()
            }
        }
    }

    /// The state after an edge, and whether it is asked with a remedy there; `None` when the verdict ends the run.
    fn go(&self, state: &State, outcome: &Outcome, edge: &Edge<StepId>, to: StepId) -> Option<(State, bool)> {
        let mut next = State { step: to, judge: None, ..state.clone() };
        let place = |counter: CounterId| self.counters.iter().position(|known| *known == counter);
        if let Some(at) = edge.bound.and_then(|bound| place(bound.counter)) {
            next.counters[at] += 1;
        }
        for at in edge.resets.iter().filter_map(|counter| place(*counter)) {
            next.counters[at] = 0;
        }
        if edge.hands_off && self.returns {
            next.origins.insert(to, state.visit);
        }
        // A step that does not count belongs to the visit that led to it.
        if !self.flow.step(to).counts {
            return Some((next, false));
        }
        if edge.remedy.is_none()
            && let Some(judge) = self.fired(state, to)
        {
            next.history.clear();
            next.judged = true;
            next.step = judge;
            if !self.flow.step(judge).counts {
                return Some((next, false));
            }
        }
        let failed = matches!(outcome, Outcome::Fail(_));
        let redone = failed && (edge.remedy.is_some() || edge.again);
        if self.visits_max.is_some_and(|max| state.finished + 1 >= max) && !redone {
            return None;
        }
        // Who mends takes the place of what was mended in what monitors see.
        let mended = edge.remedy.is_some() && to == state.visit;
        if !(next.judged || mended) {
            next.history.push(state.visit);
            forget(&self.flow.monitors, &mut next.history);
        }
        next.finished = self.visits_max.map_or(0, |max| (state.finished + 1).min(max));
        next.judged = false;
        next.visit = next.step;
        Some((next, edge.remedy.is_some()))
    }

    /// The judge of the monitor that acts when control goes to a step that counts.
    fn fired(&self, state: &State, to: StepId) -> Option<StepId> {
        if state.judged && !self.flow.step(state.step).counts {
            return None;
        }
        let mut monitors = self.flow.monitors.iter();
        monitors
            .find(|monitor| monitor.cycle.first() == Some(&to) && seen(monitor, &state.history, state.visit))
            .map(|monitor| monitor.judge)
    }
}
