//! Computes which items the records of runs cover.

use std::{collections::BTreeMap, sync::Arc};

use cuegate_engine::{AskContext, AskRequest, EndState, Event, PendingEntry, Run};
use cuegate_flow::{
    Str,
    analysis::state_graph::{Mark, StateGraph},
    model::{Edge, Flow, Outcome, StepId, Target, Verdict},
};

use super::items::{CoverItem, CoverKind, ItemKey, collect_cover_items, describe_end};

/// The coverage of a flow by runs.
#[derive(Debug, Clone)]
pub struct Coverage {
    reach: Arc<StateGraph>,
    /// All items, in the order of the definition.
    pub items: Vec<CoverItem>,
    places: BTreeMap<ItemKey, usize>,
    steps: BTreeMap<Str, StepId>,
}

/// A number of covered items out of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoveredCount {
    /// The covered items.
    pub covered: usize,
    /// All items that count.
    pub of: usize,
}

impl CoveredCount {
    /// In percent; 100 if there are no items.
    pub fn percent(self) -> f64 {
        if self.of == 0 { 100.0 } else { self.covered as f64 * 100.0 / self.of as f64 }
    }
}

impl Coverage {
    /// Creates empty coverage of a flow.
    pub fn new(reach: Arc<StateGraph>) -> Coverage {
        let (items, flow) = (collect_cover_items(&reach), reach.flow());
        let places = items.iter().enumerate().map(|(place, item)| (item.key.clone(), place)).collect();
        let steps = (0..).zip(&flow.steps).map(|(id, step)| (step.name.clone(), StepId(id))).collect();
        Coverage { items, places, steps, reach }
    }

    /// Adds the records of a run. Returns whether it covered anything new.
    pub fn follow<'e>(&mut self, records: impl IntoIterator<Item = &'e [Event]>) -> bool {
        let before = self.all().covered;
        let mut run = Run::default();
        for events in records {
            let mut left = None;
            for event in events {
                self.event(&run, event, &mut left);
                run.apply(event);
            }
            run.seq += 1;
        }
        self.all().covered > before
    }

    /// Adds the coverage of other runs of the same flow.
    pub fn add(&mut self, other: &Coverage) {
        for (item, other) in self.items.iter_mut().zip(&other.items) {
            item.hits += other.hits;
        }
    }

    /// The coverage of all items that count.
    pub fn all(&self) -> CoveredCount {
        self.count(|_| true)
    }

    /// The coverage of one kind.
    pub fn kind(&self, kind: CoverKind) -> CoveredCount {
        self.count(|item| item.kind == kind)
    }

    fn count(&self, which: impl Fn(&CoverItem) -> bool) -> CoveredCount {
        // A covered item counts, even if it was considered unreachable.
        let counted =
            self.items.iter().filter(|item| which(item) && (item.barred.is_none() || item.hits > 0));
        let mut covered = CoveredCount::default();
        for item in counted {
            covered.of += 1;
            covered.covered += usize::from(item.hits > 0);
        }
        covered
    }

    fn flow(&self) -> Arc<Flow> {
        self.reach.flow().clone()
    }

    fn come(&mut self, mark: Mark) {
        self.hit(&ItemKey::Mark(mark));
    }

    fn hit(&mut self, key: &ItemKey) {
        if let Some(place) = self.places.get(key) {
            self.items[*place].hits += 1;
        }
    }

    fn id(&self, name: &str) -> Option<StepId> {
        self.steps.get(name).copied()
    }

    /// `run` is the state before the event; `left` is an edge whose target a later event of the record determines.
    fn event(&mut self, run: &Run, event: &Event, left: &mut Option<(StepId, usize)>) {
        match event {
            Event::StepEntered { step, .. } => {
                self.arrive(left, step);
                self.visit(step);
            }
            // The current step has its own event; members and judges are only asked.
            Event::AskRequested(AskRequest { step, member, follow: None, context, .. }) => match context {
                AskContext::Own if member.is_some() => self.visit(step),
                AskContext::Judge(judging) => self.visit(&judging.judge),
                AskContext::Select(selector) => self.visit(selector),
                AskContext::Own | AskContext::Report(_) => {}
            },
            Event::MemberEnded { step, outcome: Some(outcome), .. } => {
                if let Some(id) = self.id(step) {
                    self.come(Mark::Gate(id, Outcome::Named(outcome.clone())));
                }
            }
            Event::Decided { step, outcome, fallback, .. } => {
                if let Some(id) = self.id(step) {
                    *left = self.decided(run, id, outcome);
                    if *fallback {
                        self.come(Mark::Fallback(id));
                    }
                }
            }
            Event::CommandFinished { step, index, passed, .. } => {
                if let Some(id) = self.id(step) {
                    self.come(Mark::Validator(id, *index, *passed));
                }
            }
            Event::MonitorFired { monitor, .. } => {
                let flow = self.flow();
                let fired = flow.monitors.iter().position(|known| known.name == *monitor);
                if let Some(index) = fired {
                    // A monitor acts where its next round would begin.
                    let first = flow.monitors[index].cycle.first().and_then(|stage| stage.first());
                    let first = first.map(|first| flow.step(*first).name.clone());
                    if let Some(first) = first {
                        self.arrive(left, &first);
                    }
                    self.come(Mark::Monitor(index));
                }
            }
            Event::ConditionMet { condition, .. } | Event::Probed { condition, holds: true, .. } => {
                self.come(Mark::Verdict(condition.clone()));
            }
            Event::ProbesRequested { next: PendingEntry { step, .. }, .. } => self.arrive(left, step),
            Event::Ended { state, hold, .. } => self.ended(run, *state, hold.as_ref(), left),
            Event::Ending(ending) => self.ended(run, ending.state, ending.hold.as_ref(), left),
            _ => {}
        }
        self.counted(run, event);
    }

    fn visit(&mut self, step: &str) {
        if let Some(id) = self.id(step) {
            self.come(Mark::Step(id));
        }
    }

    /// Handles a decided outcome: the run takes the first edge for it that is not used up.
    fn decided(&mut self, run: &Run, id: StepId, outcome: &Str) -> Option<(StepId, usize)> {
        let flow = self.flow();
        let step = flow.step(id);
        let on = |edge: &Edge<StepId>| edge.on.to_string() == **outcome;
        let is_open = |edge: &Edge<StepId>| {
            edge.bound.is_none_or(|bound| {
                run.progress.counters.get(&flow.counter(bound.counter).name).copied().unwrap_or(0) < bound.max
            })
        };
        for (index, edge) in step.edges.iter().enumerate().filter(|(_, edge)| on(edge)) {
            if !is_open(edge) {
                self.come(Mark::Spent(id, index));
                continue;
            }
            self.come(Mark::Gate(id, edge.on.clone()));
            if let Target::End(ending) = &edge.to {
                self.hit(&ItemKey::End(describe_end(ending)));
            }
            self.come(Mark::Edge(id, index, None));
            return Some((id, index));
        }
        None
    }

    /// Records that the run enters a step, or would have entered it.
    fn arrive(&mut self, left: &mut Option<(StepId, usize)>, step: &str) {
        if let (Some((from, edge)), Some(to)) = (left.take(), self.id(step)) {
            self.come(Mark::Edge(from, edge, Some(to)));
        }
    }

    fn ended(
        &mut self,
        run: &Run,
        state: EndState,
        hold: Option<&PendingEntry>,
        left: &mut Option<(StepId, usize)>,
    ) {
        // The end was recorded before the run waited for its effects.
        if run.effects.ending.is_some() {
            return;
        }
        let by_edge =
            left.is_some_and(|(from, edge)| matches!(self.flow().step(from).edges[edge].to, Target::End(_)));
        match (state, hold) {
            (EndState::Exhausted, Some(hold)) => {
                self.arrive(left, &hold.step);
                self.come(Mark::Exhausted);
            }
            (EndState::Completed, _) if !by_edge => self.come(Mark::Completed),
            _ => {}
        }
    }

    /// Records the counting parts of the verdict.
    fn counted(&mut self, run: &Run, event: &Event) {
        let flow = self.flow();
        let (finished, checks) = match event {
            Event::VisitEnded { .. } => (Some(run.progress.finished + 1), None),
            Event::CounterSet { counter, value } if **counter == *"verdict checks" => (None, Some(*value)),
            _ => return,
        };
        for (place, part) in flow.verdict.places() {
            let reached = match part {
                Verdict::Iterations(max) => finished.is_some_and(|finished| finished >= *max),
                Verdict::Checks { max, .. } => checks.is_some_and(|checks| checks >= *max),
                _ => false,
            };
            if reached {
                self.come(Mark::Verdict(place));
            }
        }
    }
}
