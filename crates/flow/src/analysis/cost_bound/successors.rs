//! The successors of steps, independent of the run's memory.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::{
    verdict_counters,
    verdict_counters::{AnswerCounting, find_counted_steps, leads_unsaid},
};
use crate::analysis::graph::judges_of_gate;
use crate::analysis::reachability::{Reachability, outcomes_of_step};
use crate::model::{Edge, Flow, Gate, Outcome, OutcomeReader, Step, StepId, Target};

/// The successors of steps, independent of the run's memory.
pub(super) struct StepSuccessors {
    live: Reachability,
    /// By step: the judges of its answer.
    pub(super) judges: Vec<Vec<StepId>>,
    /// By step: its outcomes without a judge and after each judge, computed on demand.
    leaving: Vec<Vec<OnceCell<Vec<OutcomeEdges>>>>,
    /// The steps whose answers the verdict counts.
    checking: HashSet<StepId>,
    /// The edges with bound 0: they are never taken, and may block others.
    pub(super) closed: Vec<(usize, usize)>,
}

#[derive(Clone)]
pub(super) struct OutcomeEdges {
    pub(super) failed: bool,
    /// Whether only answers that the verdict counts yield it.
    pub(super) said: AnswerCounting,
    /// The edges by index, with their targets (except returns to the origin) and whether only counted answers lead
    /// there.
    pub(super) edges: Vec<(usize, Vec<(StepId, AnswerCounting)>)>,
}

/// The edges with bound 0.
pub(super) fn find_closed_edges(flow: &Flow) -> Vec<(usize, usize)> {
    let edges =
        flow.steps.iter().enumerate().flat_map(|(at, step)| {
            step.edges.iter().enumerate().map(move |(place, edge)| ((at, place), edge))
        });
    edges.filter(|(_, edge)| !edge.is_ever_open()).map(|(at, _)| at).collect()
}

impl StepSuccessors {
    pub(super) fn of(flow: &Flow) -> Rc<StepSuccessors> {
        let live = Reachability::of(flow, &[flow.entry], true);
        let judges: Vec<Vec<StepId>> =
            flow.steps.iter().map(|step| judges_of_gate(&step.gate).collect()).collect();
        let leaving = judges.iter().map(|judges| vec![OnceCell::new(); judges.len() + 1]).collect();
        Rc::new(StepSuccessors {
            live,
            judges,
            leaving,
            checking: find_counted_steps(flow),
            closed: find_closed_edges(flow),
        })
    }

    /// The outcomes of a step without a judge, or after the judge of this index.
    pub(super) fn leaving(&self, flow: &Flow, at: StepId, judge: Option<u32>) -> &[OutcomeEdges] {
        let place = judge.map_or(0, |place| place as usize + 1);
        self.leaving[at.0 as usize][place].get_or_init(|| {
            let step = flow.step(at);
            let judge = judge.map(|place| self.judges[at.0 as usize][place as usize]);
            let checks = self.checking.contains(&at);
            let by_itself = verdict_counters::classify_outcomes(flow, at, checks);
            // A step that asks a judge has an answer.
            let said_of = |outcome: &Outcome| match judge {
                Some(_) if checks => AnswerCounting::Always,
                _ => by_itself(outcome),
            };
            let mut by_outcome: HashMap<&Outcome, Vec<usize>> = HashMap::new();
            for (index, edge) in step.edges.iter().enumerate() {
                by_outcome.entry(&edge.on).or_default().push(index);
            }
            let leaving = |outcome: Outcome| {
                let edges = by_outcome.get(&outcome).into_iter().flatten();
                let said = said_of(&outcome);
                let edges = edges.map(|index| {
                    let edge = &step.edges[*index];
                    let targets = self.targets(at, *index, edge).into_iter();
                    let said = |to: StepId| {
                        if checks && !leads_unsaid(edge, to) { AnswerCounting::Always } else { said }
                    };
                    (*index, targets.map(|to| (to, said(to))).collect())
                });
                let edges = edges.collect();
                OutcomeEdges { failed: matches!(outcome, Outcome::Fail(_)), said, edges }
            };
            outcomes_after_judge(flow, step, judge).into_iter().map(leaving).collect()
        })
    }

    /// The targets of an edge; empty if they depend on the origin.
    fn targets(&self, at: StepId, index: usize, edge: &Edge<StepId>) -> Vec<StepId> {
        match &edge.to {
            Target::Step(to) => vec![*to],
            Target::End(_) | Target::Origin { .. } => Vec::new(),
            Target::Select { .. } | Target::Jump { .. } => {
                let ways = self.live.ways[at.0 as usize].iter();
                ways.filter(|way| way.edge == Some(index) && !way.inner).map(|way| way.to).collect()
            }
        }
    }
}

/// The outcomes of a step without a judge, or after this judge.
fn outcomes_after_judge(flow: &Flow, step: &Step<StepId>, judge: Option<StepId>) -> BTreeSet<Outcome> {
    let Some(judge) = judge else {
        if judges_of_gate(&step.gate).next().is_none() {
            return outcomes_of_step(flow, step);
        }
        let mut alone = step.clone();
        match &mut alone.gate {
            Gate::Readers(readers) => readers.retain(|reader| !matches!(reader, OutcomeReader::Judge { .. })),
            Gate::Join { judges, .. } => judges.clear(),
            Gate::Exit | Gate::Always(_) | Gate::Cases(_) => {}
        }
        return outcomes_of_step(flow, &alone);
    };
    let mut found = outcomes_of_step(flow, flow.step(judge));
    found.remove(&Outcome::None);
    if let Gate::Readers(readers) = &step.gate {
        found.extend(readers.iter().filter_map(|reader| match reader {
            OutcomeReader::Otherwise(outcome)
            | OutcomeReader::Fallback(outcome)
            | OutcomeReader::FirstFallback(outcome) => Some(outcome.clone()),
            _ => None,
        }));
    }
    found
}
