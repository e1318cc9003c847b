//! What a verdict counts, and when it ends every run by that, whatever is said and looked at.

use std::collections::{BTreeSet, HashSet};

use crate::{
    Str,
    analysis::variants,
    model::{Act, CounterId, Edge, Flow, Gate, Outcome, Reader, Selector, StepId, Target, Verdict},
};

/// How far a verdict's counts matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// Visits; `None` where no number of them ends a run.
    pub(super) visits: Option<u32>,
    /// Answers of steps that check; the same.
    pub(super) checks: Option<u32>,
}

impl Counted {
    /// What a verdict counts.
    pub(super) fn of(verdict: &Verdict) -> Counted {
        // What more of it makes no difference: it ends the run by itself, or no part waits for more.
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
        Counted {
            visits: far(&visits, &|count| verdict.holds(count, 0, false)),
            checks: far(&checks, &|count| verdict.holds(0, count, false)),
        }
    }
}

/// The steps whose answers a verdict counts.
pub(super) fn checking(flow: &Flow) -> HashSet<StepId> {
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

/// Whether something is come to by answers only that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// Always.
    Always,
    /// But for the first iteration, in which a step falls back to it.
    AfterFirst,
    /// No: a step falls back to it, or nobody is asked whose answers count.
    Never,
}

/// Which outcomes a step comes to by answers that count. Of members that are asked together any number may give none.
pub(super) fn said(flow: &Flow, at: StepId, checks: bool) -> impl Fn(&Outcome) -> Said {
    let step = flow.step(at);
    let asks = checks && matches!(step.act, Act::Ask(_));
    let readers = match &step.gate {
        Gate::Readers(readers) => &readers[..],
        _ => &[],
    };
    let fallen = |falls: fn(&Reader<StepId>) -> bool| -> HashSet<Outcome> {
        readers
            .iter()
            .filter(|reader| falls(reader))
            .flat_map(|reader| variants::told(flow, at, reader))
            .collect()
    };
    let always = fallen(|reader| matches!(reader, Reader::Fallback(_) | Reader::Otherwise(_)));
    let first = fallen(|reader| matches!(reader, Reader::FirstFallback(_)));
    move |outcome| match () {
        () if !asks || always.contains(outcome) => Said::Never,
        () if first.contains(outcome) => Said::AfterFirst,
        () => Said::Always,
    }
}

/// Whether an edge leads to a step though no answer says so.
pub(super) fn leads_unsaid(edge: &Edge<StepId>, to: StepId) -> bool {
    match &edge.to {
        Target::Jump { default, .. } | Target::Select { by: Selector::Field(_), default, .. } => {
            *default == Some(to)
        }
        _ => true,
    }
}

/// After how many iterations a verdict ends every run.
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

/// How often a validator that has just failed can put its remedy before the verdict's word; `None` without a limit.
pub(super) fn remedies_max(flow: &Flow) -> Option<u32> {
    let execs = flow.steps.iter().filter(|step| matches!(step.act, Act::Exec { .. }));
    let remedies = execs.flat_map(|step| &step.edges).filter(|edge| edge.remedy.is_some() || edge.again);
    let bounds: Option<BTreeSet<(CounterId, u32)>> =
        remedies.map(|edge| edge.bound.map(|bound| (bound.counter, bound.max))).collect();
    let bounds = bounds?;
    let edges = flow.steps.iter().flat_map(|step| &step.edges);
    let reset: BTreeSet<CounterId> = edges.flat_map(|edge| edge.resets.iter().copied()).collect();
    if bounds.iter().any(|(counter, _)| reset.contains(counter)) {
        return None;
    }
    Some(bounds.iter().fold(0, |sum, (_, max)| sum.saturating_add(*max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_matter_as_far_as_they_end_a_run() {
        let checks = |max| Verdict::Checks { max, of: vec!["a".into()] };
        let of = |verdict: &Verdict| {
            let Counted { visits, checks } = Counted::of(verdict);
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
