//! The targets and outcomes of the parts of a flow.

use std::collections::{HashMap, HashSet};

use crate::model::{Act, Edge, Flow, Gate, Outcome, OutcomeReader, Selector, Step, StepId, Target};

/// Whether the first step has a fallback for the first iteration only.
pub(crate) fn falls_first(flow: &Flow) -> bool {
    let Gate::Readers(readers) = &flow.step(flow.entry).gate else { return false };
    readers.iter().any(|reader| matches!(reader, OutcomeReader::FirstFallback(_)))
}

/// The possible steps of a target.
pub(crate) fn steps_of_target(to: &Target<StepId>) -> Vec<StepId> {
    match to {
        Target::Step(step) => vec![*step],
        Target::End(_) => Vec::new(),
        Target::Origin { among } => among.clone(),
        Target::Select { cases, default, .. } => {
            cases.iter().map(|(_, step)| *step).chain(*default).collect()
        }
        Target::Jump { among, default, .. } => among.iter().copied().chain(*default).collect(),
    }
}

/// Whether an edge can ever be taken on its outcome: its bound is not 0, and no earlier edge always takes that outcome.
pub(crate) fn is_takeable(step: &Step<StepId>, edge: usize) -> bool {
    let taken = &step.edges[edge];
    let shadowed = step.edges[..edge].iter().any(|before| before.on == taken.on && before.bound.is_none());
    !shadowed && taken.is_ever_open()
}

/// Up to this many edges, a linear search is used.
pub(crate) const FEW: usize = 16;

/// The edges of a step for which [`is_takeable`] holds, in order.
pub(crate) fn takeable_edges_of_step(step: &Step<StepId>) -> Vec<usize> {
    if step.edges.len() <= FEW {
        return (0..step.edges.len()).filter(|edge| is_takeable(step, *edge)).collect();
    }
    let (mut found, mut taken) = (Vec::new(), HashSet::new());
    for (at, edge) in step.edges.iter().enumerate() {
        if !taken.contains(&edge.on) && edge.is_ever_open() {
            found.push(at);
        }
        if edge.bound.is_none() {
            taken.insert(&edge.on);
        }
    }
    found
}

/// The index of the first edge of each outcome.
pub(crate) fn by_outcome(step: &Step<StepId>) -> HashMap<&Outcome, usize> {
    let mut first = HashMap::new();
    for (at, edge) in step.edges.iter().enumerate() {
        first.entry(&edge.on).or_insert(at);
    }
    first
}

/// Who is asked when control is at a step: the step, or its members.
pub(crate) fn list_asked_steps(flow: &Flow, at: usize) -> impl Iterator<Item = StepId> + '_ {
    let (members, step) = match &flow.steps[at].act {
        Act::All { members, .. } => (members.as_slice(), None),
        _ => (&[][..], Some(StepId(at as u32))),
    };
    members.iter().copied().chain(step)
}

/// The steps that a gate asks when it cannot read an outcome by itself.
pub fn judges_of_gate(gate: &Gate<StepId>) -> impl Iterator<Item = StepId> {
    let (readers, joining): (&[OutcomeReader<StepId>], &[StepId]) = match gate {
        Gate::Readers(readers) => (readers, &[]),
        Gate::Join { judges, .. } => (&[], judges),
        Gate::Exit | Gate::Always(_) | Gate::Cases(_) => (&[], &[]),
    };
    let reading = readers.iter().filter_map(|reader| match reader {
        OutcomeReader::Judge { step } => Some(*step),
        _ => None,
    });
    reading.chain(joining.iter().copied())
}

/// The outcome of a step whose answer is unusable and leaves no values.
pub(crate) struct Fallback<'f> {
    pub(crate) outcome: &'f Outcome,
    /// Whether it applies only in the first iteration of a run.
    pub(crate) first: bool,
}

impl Fallback<'_> {
    /// Whether an edge can lead to a step without an answer that selects or names one.
    pub(crate) fn leads(&self, edge: &Edge<StepId>, to: StepId) -> bool {
        let default = match &edge.to {
            Target::Select { by: Selector::Handoff(_), .. } if !self.first => {
                return edge.on == *self.outcome;
            }
            Target::Select { default, .. } | Target::Jump { default, .. } => *default,
            _ => return edge.on == *self.outcome,
        };
        edge.on == *self.outcome && default == Some(to)
    }
}

/// The fallback of a step; a first-iteration fallback applies only to an entry (`begins`).
pub(crate) fn fallback_of_step(step: &Step<StepId>, begins: bool) -> Option<Fallback<'_>> {
    let Gate::Readers(readers) = &step.gate else { return None };
    readers.iter().find_map(|reader| match reader {
        OutcomeReader::Fallback(outcome) | OutcomeReader::Otherwise(outcome) => {
            Some(Fallback { outcome, first: false })
        }
        OutcomeReader::FirstFallback(outcome) if begins => Some(Fallback { outcome, first: true }),
        _ => None,
    })
}

/// The outcomes that readers can read from an answer by themselves.
pub(crate) fn outcomes_of_readers(readers: &[OutcomeReader<StepId>]) -> Vec<Outcome> {
    let mut all = Vec::new();
    for (index, reader) in readers.iter().enumerate() {
        match reader {
            // The next reader gets what this one leaves open.
            OutcomeReader::Field { words, .. } => all.extend(
                words
                    .iter()
                    .map(|(_, outcome)| outcome.clone())
                    .filter(|outcome| *outcome != Outcome::None || index + 1 == readers.len()),
            ),
            OutcomeReader::Tag { outcomes, .. } => {
                all.extend(outcomes.iter().filter(|outcome| **outcome != Outcome::None).cloned());
            }
            OutcomeReader::Said { words, .. } => all.extend(words.iter().map(|(_, outcome)| outcome.clone())),
            OutcomeReader::Judge { .. } | OutcomeReader::Silence(_) => {}
            OutcomeReader::Otherwise(outcome)
            | OutcomeReader::Fallback(outcome)
            | OutcomeReader::FirstFallback(outcome) => {
                all.push(outcome.clone());
            }
        }
    }
    all
}
