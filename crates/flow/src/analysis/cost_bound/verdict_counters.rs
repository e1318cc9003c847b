//! The counts of a verdict, and when they alone end every run.

use std::collections::{BTreeSet, HashSet};

use crate::Str;
use crate::analysis::flow_queries;
use crate::model::{Act, Edge, Flow, Gate, Outcome, OutcomeReader, Selector, StepId, Target, Verdict};

/// How far a verdict's counts matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountLimits {
    /// Visits; `None` if no number of them ends a run.
    pub(super) visits: Option<u32>,
    /// Check answers; `None` if no number of them ends a run.
    pub(super) checks: Option<u32>,
}

impl CountLimits {
    /// The relevant counts of a verdict.
    pub(super) fn of(verdict: &Verdict) -> CountLimits {
        // The value from which on more makes no difference: it ends the run by itself, or no part waits for more.
        let far = |counts: &dyn Fn(&Verdict) -> Option<u32>, alone: &dyn Fn(u32) -> bool| {
            let waited: BTreeSet<u32> =
                verdict.places().iter().filter_map(|(_, part)| counts(part)).collect();
            let most = waited.last().copied().filter(|_| verdict.holds(u32::MAX, u32::MAX, false));
            waited.iter().copied().find(|count| alone(*count)).or(most)
        };
        let visits = |part: &Verdict| match part {
            Verdict::Iterations(max) => Some(*max),
            _ => None,
        };
        let checks = |part: &Verdict| match part {
            Verdict::Checks { max, of } if !of.is_empty() => Some(*max),
            _ => None,
        };
        CountLimits {
            visits: far(&visits, &|count| verdict.holds(count, 0, false)),
            checks: far(&checks, &|count| verdict.holds(0, count, false)),
        }
    }
}

/// The steps whose answers a verdict counts.
pub(super) fn find_counted_steps(flow: &Flow) -> HashSet<StepId> {
    let places = flow.verdict.places();
    let names: HashSet<&Str> = places
        .iter()
        .filter_map(|(_, part)| match part {
            Verdict::Checks { of, .. } => Some(of),
            _ => None,
        })
        .flatten()
        .collect();
    let ids = (0..flow.steps.len() as u32).map(StepId);
    ids.filter(|id| names.contains(&flow.step(*id).name)).collect()
}

/// Whether only counted answers lead to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerCounting {
    Always,
    /// Except in the first iteration, in which a step has a fallback to it.
    AfterFirst,
    /// No: a step has a fallback to it, or no step with counted answers is asked.
    Never,
}

/// Which outcomes of a step come from counted answers. Of members that are asked together, any number may give none.
pub(super) fn classify_outcomes(
    flow: &Flow,
    at: StepId,
    checks: bool,
) -> impl Fn(&Outcome) -> AnswerCounting {
    let step = flow.step(at);
    let asks = checks && matches!(step.act, Act::Ask(_));
    let readers = match &step.gate {
        Gate::Readers(readers) => &readers[..],
        _ => &[],
    };
    let fallen = |falls: fn(&OutcomeReader<StepId>) -> bool| -> HashSet<Outcome> {
        readers
            .iter()
            .filter(|reader| falls(reader))
            .flat_map(|reader| flow_queries::possible_outcomes_of_reader(flow, at, reader))
            .collect()
    };
    let always = fallen(|reader| matches!(reader, OutcomeReader::Fallback(_) | OutcomeReader::Otherwise(_)));
    let first = fallen(|reader| matches!(reader, OutcomeReader::FirstFallback(_)));
    move |outcome| match () {
        () if !asks || always.contains(outcome) => AnswerCounting::Never,
        () if first.contains(outcome) => AnswerCounting::AfterFirst,
        () => AnswerCounting::Always,
    }
}

/// Whether an edge leads to a step without an answer that selects it.
pub(super) fn leads_unsaid(edge: &Edge<StepId>, to: StepId) -> bool {
    match &edge.to {
        Target::Jump { default, .. } | Target::Select { by: Selector::Field(_), default, .. } => {
            *default == Some(to)
        }
        _ => true,
    }
}

/// The number of iterations after which a verdict ends every run.
pub(super) fn iterations_of(verdict: &Verdict) -> Option<u32> {
    match verdict {
        Verdict::Iterations(max) => Some(*max),
        Verdict::Any(parts) | Verdict::First(parts) => parts.iter().filter_map(iterations_of).min(),
        Verdict::Every(parts) if !parts.is_empty() => {
            parts.iter().map(iterations_of).collect::<Option<Vec<u32>>>()?.into_iter().max()
        }
        _ => None,
    }
}

/// Whether a failed validator can lead on, so that the verdict waits until it passes.
pub(super) fn may_wait(flow: &Flow) -> bool {
    let execs = flow.steps.iter().filter(|step| matches!(step.act, Act::Exec { .. }));
    let failed = execs.flat_map(|step| &step.edges).filter(|edge| matches!(edge.on, Outcome::Fail(_)));
    failed.into_iter().any(|edge| !matches!(edge.to, Target::End(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_matter_only_up_to_the_end_of_a_run() {
        let checks = |max| Verdict::Checks { max, of: vec!["a".into()] };
        let of = |verdict: &Verdict| {
            let CountLimits { visits, checks } = CountLimits::of(verdict);
            (visits, checks)
        };
        assert_eq!(of(&Verdict::Flow), (None, None));
        assert_eq!(of(&checks(3)), (None, Some(3)));
        let nobody = Verdict::Checks { max: 3, of: Vec::new() };
        assert_eq!(of(&Verdict::Any(vec![nobody, Verdict::Iterations(7)])), (Some(7), None));
        let word = || Verdict::Keyword("DONE".into());
        assert_eq!(of(&Verdict::Every(vec![Verdict::Iterations(3), word()])), (None, None));
        let far = Verdict::Every(vec![Verdict::Iterations(50), word()]);
        assert_eq!(of(&Verdict::Any(vec![far, Verdict::Iterations(3)])), (Some(3), None));
        let both = Verdict::Every(vec![Verdict::Iterations(5), checks(2), checks(4)]);
        assert_eq!(of(&both), (Some(5), Some(4)));
        assert_eq!(of(&Verdict::First(vec![both, checks(9)])), (Some(5), Some(9)));
    }
}
