//! What can follow on the steps of a flow, whatever its memory holds.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::{
    verdict_counters,
    verdict_counters::{Said, checking, leads_unsaid},
};
use crate::analysis::graph::judges;
use crate::analysis::reachability::{Live, outcomes};
use crate::model::{Edge, Flow, Gate, Outcome, Reader, Step, StepId, Target};

/// What can follow on the steps of a flow, whatever is counted.
pub(super) struct Known {
    live: Live,
    /// By step: the judges of its answer.
    pub(super) judges: Vec<Vec<StepId>>,
    /// By step: what it comes to by itself, and when each judge was asked, once somebody asked.
    leaving: Vec<Vec<OnceCell<Vec<Leaving>>>>,
    /// The steps whose answers the verdict counts.
    checking: HashSet<StepId>,
    /// The bounds that are 0: ways with them lead nowhere, and what else that bars depends on it.
    pub(super) closed: Vec<(usize, usize)>,
}

/// An outcome, and the edges on it.
#[derive(Clone)]
pub(super) struct Leaving {
    pub(super) failed: bool,
    /// Whether it is come to by answers only that the verdict counts.
    pub(super) said: Said,
    /// By their places; with where each leads, unless that is to who handed off, and whether only answers that count
    /// lead there.
    pub(super) edges: Vec<(usize, Vec<(StepId, Said)>)>,
}

/// The edges whose bound is 0.
pub(super) fn closed(flow: &Flow) -> Vec<(usize, usize)> {
    let edges =
        flow.steps.iter().enumerate().flat_map(|(at, step)| {
            step.edges.iter().enumerate().map(move |(place, edge)| ((at, place), edge))
        });
    edges.filter(|(_, edge)| edge.bound.is_some_and(|bound| bound.max == 0)).map(|(at, _)| at).collect()
}

impl Known {
    pub(super) fn of(flow: &Flow) -> Rc<Known> {
        let live = Live::of(flow, &[flow.entry], true);
        let judges: Vec<Vec<StepId>> = flow.steps.iter().map(|step| judges(&step.gate).collect()).collect();
        let leaving = judges.iter().map(|judges| vec![OnceCell::new(); judges.len() + 1]).collect();
        Rc::new(Known { live, judges, leaving, checking: checking(flow), closed: closed(flow) })
    }

    /// What a step comes to by itself, or when the judge of this place was asked.
    pub(super) fn leaving(&self, flow: &Flow, at: StepId, judge: Option<u32>) -> &[Leaving] {
        let place = judge.map_or(0, |place| place as usize + 1);
        self.leaving[at.0 as usize][place].get_or_init(|| {
            let step = flow.step(at);
            let judge = judge.map(|place| self.judges[at.0 as usize][place as usize]);
            let checks = self.checking.contains(&at);
            let by_itself = verdict_counters::said(flow, at, checks);
            // Who asks a judge has an answer.
            let said_of = |outcome: &Outcome| match judge {
                Some(_) if checks => Said::Always,
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
                    let said =
                        |to: StepId| if checks && !leads_unsaid(edge, to) { Said::Always } else { said };
                    (*index, targets.map(|to| (to, said(to))).collect())
                });
                let edges = edges.collect();
                Leaving { failed: matches!(outcome, Outcome::Fail(_)), said, edges }
            };
            said(flow, step, judge).into_iter().map(leaving).collect()
        })
    }

    /// Where an edge leads; nowhere where that depends on who handed off.
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

/// What a step comes to by itself, or when this judge was asked.
fn said(flow: &Flow, step: &Step<StepId>, judge: Option<StepId>) -> BTreeSet<Outcome> {
    let Some(judge) = judge else {
        if judges(&step.gate).next().is_none() {
            return outcomes(flow, step);
        }
        let mut alone = step.clone();
        match &mut alone.gate {
            Gate::Readers(readers) => readers.retain(|reader| !matches!(reader, Reader::Judge { .. })),
            Gate::Join { judges, .. } => judges.clear(),
            Gate::Exit | Gate::Always(_) => {}
        }
        return outcomes(flow, &alone);
    };
    let mut found = outcomes(flow, flow.step(judge));
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
