//! The items that runs of a flow can cover.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use cuegate_flow::{
    Str,
    analysis::{
        flow_queries,
        state_graph::{Mark, StateGraph},
    },
    diagnostics::Span,
    model::{
        Act, Ask, Edge, Ending, Flow, Gate, Outcome, OutcomeReader, Selector, Step, StepId, Target, Validator,
    },
};

use super::unreached;
use crate::show::{completion_rule, wording};

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoverKind {
    /// A step is entered or asked.
    Step,
    /// An edge is taken to one of its targets.
    Edge,
    /// A gate yields an outcome.
    Gate,
    /// A validator passes, or fails.
    Validator,
    /// A monitor acts.
    Monitor,
    /// A limit is reached.
    Limit,
    /// A part of the verdict holds.
    Verdict,
    /// A run ends with this result.
    End,
}

impl CoverKind {
    /// All kinds in print order.
    pub const ALL: [CoverKind; 8] = [
        CoverKind::Step,
        CoverKind::Edge,
        CoverKind::Gate,
        CoverKind::Validator,
        CoverKind::Monitor,
        CoverKind::Limit,
        CoverKind::Verdict,
        CoverKind::End,
    ];

    /// The printed word.
    pub fn as_str(self) -> &'static str {
        match self {
            CoverKind::Step => "step",
            CoverKind::Edge => "edge",
            CoverKind::Gate => "gate",
            CoverKind::Validator => "validator",
            CoverKind::Monitor => "monitor",
            CoverKind::Limit => "limit",
            CoverKind::Verdict => "verdict",
            CoverKind::End => "end",
        }
    }
}

/// Identifies an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ItemKey {
    /// An item of the state graph.
    Mark(Mark),
    /// An end of the flow, as text.
    End(String),
}

/// An item that runs can cover.
#[derive(Debug, Clone, PartialEq)]
pub struct CoverItem {
    pub(super) key: ItemKey,
    /// What kind of item it is.
    pub kind: CoverKind,
    /// How it is shown.
    pub name: String,
    /// The step it belongs to.
    pub step: Option<Str>,
    /// Where it is defined.
    pub span: Span,
    /// Why it is unreachable; such an item does not count.
    pub barred: Option<String>,
    /// What is needed to cover it, if the obedient agent does not.
    pub takes: Option<String>,
    /// How often the records cover it.
    pub hits: u64,
}

/// All items of a flow, in the order of the definition.
pub(super) fn collect_cover_items(reach: &StateGraph) -> Vec<CoverItem> {
    let flow: &Flow = reach.flow();
    let mut list = ItemCollector {
        flow,
        walked: flow_queries::mark_control_steps(flow),
        visited: flow_queries::mark_reachable_steps(flow),
        members: flag_member_steps(flow),
        outcomes: flow.steps.iter().map(|_| OnceCell::new()).collect(),
        iterations_max: reach.iterations_max(),
        found: Vec::new(),
    };
    for (index, step) in flow.steps.iter().enumerate() {
        list.step(StepId(index as u32), step);
    }
    list.monitors();
    list.iterations();
    list.verdict();
    list.ends();
    let mut found = list.found;
    unreached::explain_unreached_items(reach, &mut found);
    found
}

struct StepOutcomes {
    yielded: BTreeSet<Outcome>,
    /// The outcomes that its answers can state; `None` if the step has no answer.
    sayable: Option<HashSet<Outcome>>,
    takeable: HashSet<usize>,
    leading: HashSet<Outcome>,
}

fn flag_member_steps(flow: &Flow) -> Vec<bool> {
    let mut members = vec![false; flow.steps.len()];
    for step in &flow.steps {
        if let Act::All { members: own, .. } = &step.act {
            own.iter().for_each(|member| members[member.0 as usize] = true);
        }
    }
    members
}

struct ItemCollector<'f> {
    flow: &'f Flow,
    walked: Vec<bool>,
    visited: Vec<bool>,
    /// By step: whether it is a member of a parallel step.
    members: Vec<bool>,
    /// By step: the outcomes of its gate, those its answers can state, and the edges that can be taken.
    outcomes: Vec<OnceCell<StepOutcomes>>,
    iterations_max: u32,
    found: Vec<CoverItem>,
}

pub(super) const UNREACHABLE: &str = "nothing leads to the step";

impl ItemCollector<'_> {
    fn add(
        &mut self,
        key: ItemKey,
        kind: CoverKind,
        name: String,
        at: (Option<&Str>, Span),
        barred: Option<&str>,
    ) {
        let (step, span) = (at.0.cloned(), at.1);
        let barred = barred.map(str::to_owned);
        let falls = matches!(key, ItemKey::Mark(Mark::Fallback(_)));
        let takes = falls.then(|| "takes an answer that cannot be used".to_owned());
        self.found.push(CoverItem { key, kind, name, step, span, barred, takes, hits: 0 });
    }

    fn step(&mut self, id: StepId, step: &Step<StepId>) {
        let (walked, visited) = (self.walked[id.0 as usize], self.visited[id.0 as usize]);
        let name = &step.name;
        let at = (Some(name), step.span);
        let unvisited = (!visited).then_some(UNREACHABLE);
        self.add(ItemKey::Mark(Mark::Step(id)), CoverKind::Step, name.to_string(), at, unvisited);
        for (index, edge) in step.edges.iter().enumerate().filter(|_| walked || !visited) {
            self.edge(id, step, index, edge, unvisited);
        }
        let is_judge = visited && !walked && !self.members[id.0 as usize];
        // A judge's outcome belongs to the step that it decides about.
        if !is_judge {
            self.gate(id, step, walked, unvisited);
        }
        for (index, validator) in (0..).zip(commands_of_step(step)) {
            for (passed, verb) in [(true, "passes"), (false, "fails")] {
                let words = format!("{name} {} {verb}", validator.name);
                let key = ItemKey::Mark(Mark::Validator(id, index, passed));
                self.add(key, CoverKind::Validator, words, at, unvisited);
            }
        }
    }

    fn edge(
        &mut self,
        id: StepId,
        step: &Step<StepId>,
        index: usize,
        edge: &Edge<StepId>,
        unvisited: Option<&str>,
    ) {
        let barred = unvisited.or_else(|| self.bar(id, step, index));
        let on = wording::name_of_outcome(step, &edge.on);
        let at = (Some(&step.name), edge.span);
        let whole = |to: &str| format!("{} --{on}→ {to}", step.name);
        match &edge.to {
            Target::Select { .. } | Target::Jump { .. } => {
                for to in flow_queries::list_edge_targets(edge) {
                    let name = whole(&self.flow.step(to).name);
                    self.add(
                        ItemKey::Mark(Mark::Edge(id, index, Some(to))),
                        CoverKind::Edge,
                        name,
                        at,
                        barred,
                    );
                }
            }
            _ => {
                let name = whole(&wording::describe_target(self.flow, &edge.to));
                self.add(ItemKey::Mark(Mark::Edge(id, index, None)), CoverKind::Edge, name, at, barred);
            }
        }
        if let Some(bound) = edge.bound
            && bound.max > 0
        {
            let times = crate::format::plural(u64::from(bound.max), "time");
            let name = format!("{} {on} more than {times}", step.name);
            self.add(ItemKey::Mark(Mark::Spent(id, index)), CoverKind::Limit, name, at, barred);
        }
    }

    /// Why an edge is never taken.
    fn bar(&self, id: StepId, step: &Step<StepId>, index: usize) -> Option<&'static str> {
        let edge = &step.edges[index];
        if edge.bound.is_some_and(|bound| bound.max == 0) {
            return Some("its bound is 0");
        }
        if !self.outcomes(id).takeable.contains(&index) {
            return Some("a way before it takes every such outcome");
        }
        self.bar_outcome(id, &edge.on)
    }

    /// Why a step never has an outcome.
    fn bar_outcome(&self, id: StepId, outcome: &Outcome) -> Option<&'static str> {
        let outcomes = self.outcomes(id);
        if !outcomes.yielded.contains(outcome) {
            return Some("nothing yields the outcome");
        }
        let is_sayable = outcomes.sayable.as_ref().is_none_or(|sayable| sayable.contains(outcome));
        (!is_sayable).then_some("the schema has no word for the outcome")
    }

    fn outcomes(&self, id: StepId) -> &StepOutcomes {
        let step = self.flow.step(id);
        self.outcomes[id.0 as usize].get_or_init(|| StepOutcomes {
            yielded: flow_queries::list_step_outcomes(self.flow, step).into_iter().collect(),
            sayable: flow_queries::possible_outcomes_of_answer(self.flow, id),
            takeable: flow_queries::list_takeable_edges(step).into_iter().collect(),
            leading: step.edges.iter().map(|edge| edge.on.clone()).collect(),
        })
    }

    fn gate(&mut self, id: StepId, step: &Step<StepId>, walked: bool, unvisited: Option<&str>) {
        let at = (Some(&step.name), step.span);
        for outcome in self.outcomes(id).yielded.clone() {
            // Without an edge for "none", an answer that fits nothing is unusable and not an outcome.
            if outcome == Outcome::None && !self.outcomes(id).leading.contains(&outcome) {
                continue;
            }
            let leads = !walked || self.outcomes(id).leading.contains(&outcome);
            let barred = unvisited
                .or_else(|| self.bar_outcome(id, &outcome))
                .or((!leads).then_some("it leads nowhere"));
            let name = format!("{}: {}", step.name, wording::name_of_outcome(step, &outcome));
            self.add(ItemKey::Mark(Mark::Gate(id, outcome)), CoverKind::Gate, name, at, barred);
        }
        let Gate::Readers(readers) = &step.gate else { return };
        let falls = readers.iter().find_map(|reader| match reader {
            OutcomeReader::Fallback(outcome) => Some((outcome, true)),
            OutcomeReader::FirstFallback(outcome) => Some((outcome, id == self.flow.entry)),
            _ => None,
        });
        // An unusable answer of a member counts as no answer, even if the definition has a fallback.
        if let Some((outcome, can)) = falls.filter(|_| walked) {
            let edges = || step.edges.iter().filter(|edge| edge.on == *outcome);
            let barred = unvisited
                .or((!can)
                    .then_some("a definition of this generation falls back in the first iteration only"))
                .or((edges().next().is_none()).then_some("it leads nowhere"))
                .or((!edges().any(leads_unsaid)).then_some("an answer that cannot be used names no step"));
            let name = format!("{} falls back to {}", step.name, wording::name_of_outcome(step, outcome));
            self.add(ItemKey::Mark(Mark::Fallback(id)), CoverKind::Gate, name, at, barred);
        }
    }

    fn monitors(&mut self) {
        let acting = flow_queries::mark_acting_monitors(self.flow);
        for (index, monitor) in self.flow.monitors.iter().enumerate() {
            let reached =
                monitor.cycle.iter().all(|stage| stage.iter().any(|step| self.walked[step.0 as usize]));
            let barred = match () {
                () if !reached => Some("nothing leads to a step of its cycle"),
                () if !acting[index] => Some("no run goes round its cycle"),
                () => None,
            };
            let name = monitor.name.to_string();
            self.add(
                ItemKey::Mark(Mark::Monitor(index)),
                CoverKind::Monitor,
                name,
                (None, monitor.span),
                barred,
            );
        }
    }

    fn iterations(&mut self) {
        let name = format!("at most {} iterations", self.iterations_max);
        self.add(ItemKey::Mark(Mark::Exhausted), CoverKind::Limit, name, (None, self.entry()), None);
    }

    fn entry(&self) -> Span {
        self.flow.step(self.flow.entry).span
    }

    fn verdict(&mut self) {
        for (place, part) in self.flow.verdict.places() {
            if !part.parts().is_empty() || !part.can_fire() {
                continue;
            }
            let name = completion_rule::describe_completion_condition(part);
            self.add(
                ItemKey::Mark(Mark::Verdict(place)),
                CoverKind::Verdict,
                name,
                (None, self.entry()),
                None,
            );
        }
        if self.flow.verdict.can_fire() {
            let name = "completed by the verdict".to_owned();
            self.add(ItemKey::Mark(Mark::Completed), CoverKind::End, name, (None, self.entry()), None);
        }
    }

    fn ends(&mut self) {
        let (flow, mut known) = (self.flow, HashMap::<String, usize>::new());
        for (index, step) in flow.steps.iter().enumerate() {
            let id = StepId(index as u32);
            if !self.walked[index] {
                continue;
            }
            for (place, edge) in step.edges.iter().enumerate() {
                let Target::End(ending) = &edge.to else { continue };
                let barred = self.bar(id, step, place);
                match known.get(&describe_end(ending)).copied() {
                    // One edge that can be taken is enough.
                    Some(at) if barred.is_none() => self.found[at].barred = None,
                    Some(_) => {}
                    None => {
                        known.insert(describe_end(ending), self.found.len());
                        let key = ItemKey::End(describe_end(ending));
                        self.add(key, CoverKind::End, describe_end(ending), (None, edge.span), barred);
                    }
                }
            }
        }
    }
}

/// Whether an edge has a target if the answer names none.
fn leads_unsaid(edge: &Edge<StepId>) -> bool {
    match &edge.to {
        Target::Jump { default, .. } | Target::Select { by: Selector::Field(_), default, .. } => {
            default.is_some()
        }
        Target::Step(_) | Target::End(_) | Target::Origin { .. } | Target::Select { .. } => true,
    }
}

/// An end as text.
pub(super) fn describe_end(ending: &Ending) -> String {
    match ending {
        Ending::Completed => "completed".to_owned(),
        Ending::Aborted => "aborted".to_owned(),
        Ending::Failed(reason) => format!("failed: {reason}"),
    }
}

/// The commands of a step, or the gate commands of a member.
fn commands_of_step(step: &Step<StepId>) -> Vec<&Validator> {
    match &step.act {
        Act::Exec { commands } => commands.iter().collect(),
        Act::Ask(Ask { guard: Some(guard), .. }) => {
            guard.commands.iter().map(|guarded| &guarded.validator).collect()
        }
        _ => Vec::new(),
    }
}
