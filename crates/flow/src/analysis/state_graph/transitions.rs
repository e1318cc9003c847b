//! The transitions between states.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::choices::{
    SelectingCases, choices_of_step, collect_selecting_cases, falls_back, picks_of_edge, select_step,
};
use super::state::{Move, RunState};
use super::{Choice, Mark, Pick, SelectingValue};
use crate::analysis::graph;
use crate::analysis::newest_values::CaseIndex;
use crate::analysis::reachability::Reachability;
use crate::model::monitor_watch;
use crate::{
    Str,
    model::{Act, Ask, CounterId, Edge, Flow, Monitor, Outcome, Selector, Step, StepId, Target, Verdict},
};

/// The transition rules of a flow.
#[derive(Debug)]
pub(super) struct TransitionRules {
    /// The selecting names.
    pub(super) keys: Vec<Str>,
    sayings: Vec<Vec<Choice>>,
    /// By step and edge: the selecting answers and their targets.
    picks: Vec<Vec<Vec<(Pick, StepId)>>>,
    /// The selecting names with their cases.
    values: Vec<SelectingCases>,
    /// By step and edge that selects by handoff values: its cases.
    cases: HashMap<(StepId, usize), CaseIndex>,
    /// By step: the edges of each outcome, in order.
    edges: Vec<HashMap<Outcome, Vec<usize>>>,
    /// Whether states include more than the current step.
    pub(super) exact: bool,
    counters_max: Vec<u32>,
    returns: bool,
    /// Whether the first step has a fallback for the first iteration only.
    falls_first: bool,
    finished_max: u32,
    checks_max: u32,
    /// Whether the verdict can end a run, so that failing validators matter.
    can_fire: bool,
    /// The parts of the verdict, by their paths.
    pub(super) parts: Vec<(Str, Verdict)>,
    live: Reachability,
}

impl TransitionRules {
    pub(super) fn new(flow: &Flow, exact: bool) -> TransitionRules {
        let values = collect_selecting_cases(flow);
        let keys: Vec<Str> = values.iter().map(|value| value.name.clone()).collect();
        let ids = || (0..flow.steps.len() as u32).map(StepId);
        let edges = || flow.steps.iter().flat_map(|step| &step.edges);
        let mut counters_max = vec![0; flow.counters.len()];
        for bound in edges().filter_map(|edge| edge.bound) {
            let max = &mut counters_max[bound.counter.0 as usize];
            *max = bound.max.max(*max);
        }
        let parts: Vec<(Str, Verdict)> =
            flow.verdict.places().into_iter().map(|(place, part)| (place, part.clone())).collect();
        let (mut finished_max, mut checks_max) = (0, 0);
        for (_, part) in &parts {
            match part {
                Verdict::Iterations(max) => finished_max = finished_max.max(*max),
                Verdict::Checks { max, .. } => checks_max = checks_max.max(*max),
                _ => {}
            }
        }
        TransitionRules {
            sayings: ids().map(|id| choices_of_step(flow, &values, id)).collect(),
            picks: flow
                .steps
                .iter()
                .map(|step| step.edges.iter().map(|edge| picks_of_edge(flow, step, edge)).collect())
                .collect(),
            cases: by_text(flow),
            values,
            edges: flow.steps.iter().map(by_outcome).collect(),
            keys,
            exact,
            counters_max,
            falls_first: graph::falls_first(flow),
            returns: edges().any(|edge| matches!(edge.to, Target::Origin { .. })),
            finished_max,
            checks_max,
            can_fire: flow.verdict.can_fire(),
            parts,
            live: Reachability::of(flow, &[flow.entry], true),
        }
    }

    /// The initial state.
    pub(super) fn first(&self, flow: &Flow) -> RunState {
        self.normal(RunState {
            at: flow.entry,
            visit: flow.entry,
            judged: false,
            counters: vec![0; flow.counters.len()],
            origins: BTreeMap::new(),
            newest: vec![None; self.keys.len()],
            watched: Vec::new(),
            finished: 0,
            checks: 0,
            failing: BTreeSet::new(),
            is_first: true,
        })
    }

    /// A state without the parts that affect nothing.
    pub(super) fn normal(&self, mut situation: RunState) -> RunState {
        if !self.exact {
            situation.counters.clear();
            situation.newest.clear();
            situation.watched.clear();
            situation.origins.clear();
            situation.failing.clear();
            (situation.finished, situation.checks, situation.is_first) = (0, 0, true);
            return situation;
        }
        for (counter, max) in situation.counters.iter_mut().zip(&self.counters_max) {
            *counter = (*counter).min(*max);
        }
        for (value, key) in situation.newest.iter_mut().zip(&self.values) {
            let case = value.take().and_then(|text| key.by_text.first(&text));
            *value = case.map(|at| key.cases[at].clone());
        }
        situation.is_first &= self.falls_first;
        if !self.can_fire {
            situation.failing.clear();
        }
        if !self.returns {
            situation.origins.clear();
        }
        situation.finished = situation.finished.min(self.finished_max);
        situation.checks = situation.checks.min(self.checks_max);
        situation
    }

    /// All transitions of a state.
    pub(super) fn moves(&self, flow: &Flow, at: &RunState) -> Vec<Move> {
        let step = flow.step(at.at);
        let mut found = Vec::new();
        for said in &self.sayings[at.at.0 as usize] {
            if said.unusable && !falls_back(flow.step(at.at), &said.outcome, at.is_first) {
                continue;
            }
            let mut marks = self.said(flow, at, said);
            let checks = at.checks + self.checked(flow, at.at, said);
            let mut led = false;
            for (index, spent) in self.open(flow, at, &said.outcome) {
                let edge = &step.edges[index];
                let mut marks = marks.clone();
                marks.extend(spent.into_iter().map(|edge| Mark::Spent(at.at, edge)));
                marks.push(Mark::Gate(at.at, said.outcome.clone()));
                for (pick, to) in self.targets(flow, at, index, edge, said) {
                    led = true;
                    let selects = matches!(edge.to, Target::Select { .. } | Target::Jump { .. });
                    let mut marks = marks.clone();
                    marks.push(Mark::Edge(at.at, index, to.filter(|_| selects)));
                    let choice = Choice { edge: Some(index), to, pick, ..said.clone() };
                    let leaving = StateExit { at, edge, choice, marks, checks };
                    self.go(flow, leaving, &mut found);
                }
            }
            if !led && !said.members.is_empty() {
                self.finished(at, &mut marks);
                found.push(Move { choice: said.clone(), marks, next: None, counts: false, exhausts: false });
            }
        }
        found
    }

    /// The marks that an answer reaches by itself, before an edge is taken.
    fn said(&self, flow: &Flow, at: &RunState, said: &Choice) -> Vec<Mark> {
        let step = flow.step(at.at);
        let mut marks = Vec::new();
        if let Some(by) = said.by {
            let judges: Vec<StepId> = graph::judges_of_gate(&step.gate).collect();
            let place = judges.iter().position(|judge| *judge == by).unwrap_or(0);
            marks.extend(judges[..=place].iter().map(|judge| Mark::Step(*judge)));
        }
        match &step.act {
            Act::All { members, .. } => {
                for (id, said) in members.iter().zip(&said.members) {
                    let Some(outcome) = said.outcome() else { continue };
                    marks.push(Mark::Gate(*id, outcome.clone()));
                    marks.extend(marks_of_validators(flow, *id));
                }
            }
            Act::Exec { commands } => {
                let failed = match said.outcome {
                    Outcome::Fail(place) => place,
                    _ => commands.len() as u16,
                };
                marks.extend((0..failed).map(|place| Mark::Validator(at.at, place, true)));
                let fails = matches!(said.outcome, Outcome::Fail(_));
                marks.extend(fails.then_some(Mark::Validator(at.at, failed, false)));
            }
            Act::Ask(_) | Act::Person { .. } | Act::System(_) => {}
        }
        marks.extend(said.unusable.then_some(Mark::Fallback(at.at)));
        self.answered(flow, at, said, &mut marks);
        marks
    }

    /// The edges that an outcome can take, each with the used-up edges before it.
    fn open(&self, flow: &Flow, at: &RunState, outcome: &Outcome) -> Vec<(usize, Vec<usize>)> {
        let (mut open, mut spent) = (Vec::new(), Vec::new());
        let all = &flow.step(at.at).edges;
        let own = self.edges[at.at.0 as usize].get(outcome).map_or(&[][..], Vec::as_slice);
        for (index, edge) in own.iter().map(|index| (*index, &all[*index])) {
            match edge.bound {
                None => {
                    open.push((index, spent));
                    break;
                }
                Some(bound) if !bound.allows(0) => {}
                Some(bound) => {
                    let count = at.counters.get(bound.counter.0 as usize);
                    if count.is_none_or(|count| bound.allows(*count)) {
                        open.push((index, spent.clone()));
                    }
                    if count.is_some_and(|count| bound.allows(*count)) {
                        break;
                    }
                    spent.push(index);
                }
            }
        }
        open
    }

    /// The targets of an edge, each with the answer that it needs.
    fn targets(
        &self,
        flow: &Flow,
        at: &RunState,
        index: usize,
        edge: &Edge<StepId>,
        said: &Choice,
    ) -> Vec<(Pick, Option<StepId>)> {
        // A judge's decision and an unusable answer select nothing.
        let speaks = said.by.is_none() && !said.unusable;
        match &edge.to {
            Target::Step(to) => vec![(Pick::Any, Some(*to))],
            Target::End(_) => vec![(Pick::Any, None)],
            Target::Origin { among } if self.exact => {
                let origin = at.origins.get(&at.visit).filter(|origin| among.contains(origin));
                vec![(Pick::Any, Some(*origin.unwrap_or(&at.visit)))]
            }
            Target::Select { by: Selector::Handoff(key), cases, default } if self.exact => {
                let own = said.leaves.iter().find(|(left, _)| left == key).map(|(_, value)| value.clone());
                let newest = || {
                    let place = self.keys.binary_search(key).ok()?;
                    at.newest[place].clone().map(SelectingValue::Is)
                };
                let own = own.filter(|value| *value != SelectingValue::Absent);
                let value = own.or_else(newest).unwrap_or(SelectingValue::Absent);
                select_step((cases, &self.cases[&(at.at, index)]), *default, &value)
                    .map(|to| (Pick::Any, Some(to)))
                    .into_iter()
                    .collect()
            }
            Target::Origin { .. } | Target::Select { by: Selector::Handoff(_), .. } => {
                let ways = self.live.ways[at.at.0 as usize].iter();
                let ways = ways.filter(|way| way.edge == Some(index) && !way.inner);
                ways.map(|way| (Pick::Any, Some(way.to))).collect()
            }
            Target::Select { default, .. } | Target::Jump { default, .. } if !speaks => {
                default.map(|to| (Pick::Unnamed, Some(to))).into_iter().collect()
            }
            Target::Select { .. } | Target::Jump { .. } => {
                let picks = &self.picks[at.at.0 as usize][index];
                picks.iter().map(|(pick, to)| (pick.clone(), Some(*to))).collect()
            }
        }
        .into_iter()
        .filter(|(_, to)| to.is_none_or(|to| (to.0 as usize) < flow.steps.len()))
        .collect()
    }

    /// Takes an edge and adds the resulting moves.
    fn go(&self, flow: &Flow, leaving: StateExit<'_>, found: &mut Vec<Move>) {
        let StateExit { at, edge, choice, mut marks, checks } = leaving;
        let Some(to) = choice.to else {
            self.finished(at, &mut marks);
            found.push(Move { choice, marks, next: None, counts: false, exhausts: false });
            return;
        };
        let mut next = RunState { at: to, checks, ..at.clone() };
        self.leave(&mut next, at, edge, &choice);
        // A step that does not count belongs to the visit that led to it.
        if !flow.step(to).counts {
            self.on(Move { choice, marks, next: Some(next), counts: false, exhausts: false }, found);
            return;
        }
        for fired in self.fired(flow, at, edge, to) {
            let (mut next, mut marks) = (next.clone(), marks.clone());
            if let Some(monitor) = fired {
                marks.push(Mark::Monitor(monitor));
                next.watched.clear();
                next.judged = true;
                next.at = flow.monitors[monitor].judge;
            }
            let next = Some(next);
            let going = Move { choice: choice.clone(), marks, next, counts: true, exhausts: true };
            self.visit_done(flow, at, edge, going, found);
        }
    }

    /// Applies the counters and handoff values of an edge.
    fn leave(&self, next: &mut RunState, at: &RunState, edge: &Edge<StepId>, choice: &Choice) {
        if !self.exact {
            return;
        }
        if let Some(bound) = edge.bound {
            next.counters[bound.counter.0 as usize] += 1;
        }
        for CounterId(counter) in &edge.resets {
            next.counters[*counter as usize] = 0;
        }
        if edge.hands_off {
            next.origins.insert(next.at, at.visit);
        }
        match choice.outcome {
            Outcome::Fail(_) => drop(next.failing.insert(at.at)),
            Outcome::Pass => drop(next.failing.remove(&at.at)),
            Outcome::Named(_) | Outcome::None => {}
        }
        for (key, value) in &choice.leaves {
            let Some(place) = self.keys.binary_search(key).ok() else { continue };
            match value {
                SelectingValue::Absent => {}
                SelectingValue::Is(text) => next.newest[place] = Some(text.clone()),
                SelectingValue::Other => next.newest[place] = None,
            }
        }
    }

    /// Continues to a step that may count, unless the verdict ends the run first.
    fn visit_done(
        &self,
        flow: &Flow,
        at: &RunState,
        edge: &Edge<StepId>,
        going: Move,
        found: &mut Vec<Move>,
    ) {
        let Move { choice, mut marks, next, .. } = going;
        let Some(mut next) = next else { return };
        if !flow.step(next.at).counts {
            self.on(Move { choice, marks, next: Some(next), counts: false, exhausts: false }, found);
            return;
        }
        self.finished(at, &mut marks);
        // While a validator fails, the verdict does not end the run, and the run fails at its limit.
        let blocked = match self.exact {
            true => !next.failing.is_empty(),
            false => matches!(choice.outcome, Outcome::Fail(_)),
        };
        let finished = at.finished.saturating_add(1);
        let holds = |free| flow.verdict.holds(finished, next.checks, free);
        let exhausts = !self.exact || !self.can_fire || (!blocked && !holds(false));
        if !blocked && self.can_fire {
            let must = self.exact && holds(false);
            if must || !self.exact || holds(true) {
                let mut marks = marks.clone();
                let looks = !must && self.looked_at().next().is_some();
                if looks {
                    marks.extend(self.looked_at());
                }
                // Without a poll, the verdict ends the run before the next step is chosen.
                if !looks && !marks.iter().any(|mark| matches!(mark, Mark::Monitor(_))) {
                    marks.retain(|mark| !matches!(mark, Mark::Edge(_, _, Some(_))));
                }
                marks.push(Mark::Completed);
                found.push(Move {
                    choice: choice.clone(),
                    marks,
                    next: None,
                    counts: false,
                    exhausts: false,
                });
            }
            if must {
                return;
            }
            marks.extend(self.looked_at());
        }
        // In what monitors observe, a remedy replaces the visit that it repairs, as does another attempt.
        let mended = (edge.remedy.is_some() || edge.again) && next.at == at.visit;
        if !(next.judged || mended) {
            monitor_watch::advance_monitors(&flow.monitors, &mut next.watched, at.visit);
        }
        next.finished = finished;
        next.is_first = false;
        next.judged = false;
        next.visit = next.at;
        self.on(Move { choice, marks, next: Some(next), counts: true, exhausts }, found);
    }

    fn on(&self, mut going: Move, found: &mut Vec<Move>) {
        going.next = going.next.map(|next| self.normal(next));
        found.push(going);
    }

    /// The monitors that may act when control moves to a counting step; `None` for none of them.
    fn fired(&self, flow: &Flow, at: &RunState, edge: &Edge<StepId>, to: StepId) -> Vec<Option<usize>> {
        // A remedy continues the same visit, and a monitor's own judge triggers no monitor.
        if edge.remedy.is_some() || (at.judged && !flow.step(at.at).counts) {
            return vec![None];
        }
        if self.exact {
            let acts = |index: usize| {
                monitor_watch::is_monitor_acting(&flow.monitors, index, &at.watched, at.visit, to)
            };
            return vec![(0..flow.monitors.len()).find(|index| acts(*index))];
        }
        let may = |(index, monitor): &(usize, &Monitor<StepId>)| {
            let ends = monitor.ends_with().any(|last| *last == at.visit);
            self.live.monitors[*index] && ends && monitor.begins_with(&to)
        };
        let monitors = flow.monitors.iter().enumerate();
        [None].into_iter().chain(monitors.filter(may).map(|(index, _)| Some(index))).collect()
    }
}

/// A state that is being left, and the choice.
struct StateExit<'s> {
    at: &'s RunState,
    edge: &'s Edge<StepId>,
    choice: Choice,
    marks: Vec<Mark>,
    /// The answers that the verdict has counted so far.
    checks: u32,
}

/// The steps that are entered or asked when control reaches a step.
pub(super) fn marks_of_entry(flow: &Flow, id: StepId) -> Vec<Mark> {
    let step = flow.step(id);
    let mut found = vec![Mark::Step(id)];
    found.extend(step.selectors.iter().copied().map(Mark::Step));
    if let Act::All { members, .. } = &step.act {
        for member in members {
            let step = flow.step(*member);
            found.push(Mark::Step(*member));
            found.extend(
                graph::judges_of_gate(&step.gate).chain(step.selectors.iter().copied()).map(Mark::Step),
            );
        }
    }
    found
}

/// The marks of a member's commands: each passes eventually, and may have failed before.
fn marks_of_validators(flow: &Flow, member: StepId) -> Vec<Mark> {
    let Act::Ask(Ask { guard: Some(guard), .. }) = &flow.step(member).act else { return Vec::new() };
    let places = 0..guard.commands.len() as u16;
    places.flat_map(|place| [true, false].map(|passed| Mark::Validator(member, place, passed))).collect()
}

/// The edges of a step by outcome.
fn by_outcome(step: &Step<StepId>) -> HashMap<Outcome, Vec<usize>> {
    let mut edges: HashMap<Outcome, Vec<usize>> = HashMap::new();
    for (at, edge) in step.edges.iter().enumerate() {
        edges.entry(edge.on.clone()).or_default().push(at);
    }
    edges
}

/// The cases of the edges that select by handoff values.
fn by_text(flow: &Flow) -> HashMap<(StepId, usize), CaseIndex> {
    let mut found = HashMap::new();
    for (id, step) in (0..).map(StepId).zip(&flow.steps) {
        for (at, edge) in step.edges.iter().enumerate() {
            if let Target::Select { by: Selector::Handoff(_), cases, .. } = &edge.to {
                found.insert((id, at), CaseIndex::of(cases.iter().map(|(case, _)| case)));
            }
        }
    }
    found
}
