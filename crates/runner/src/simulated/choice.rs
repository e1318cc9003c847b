//! What can be chosen at a step: its outcomes, and where one can lead to several steps, which of them.

use cuegate_engine::Run;
use cuegate_flow::{Edge, Flow, Outcome, Selector, StepId, Str, Target, ways};

/// Something that an answer can say about where control goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Choice {
    /// The outcome.
    pub(super) outcome: Outcome,
    /// The edge that it takes as things stand, by its place; of a member of a parallel step none.
    pub(super) edge: Option<usize>,
    /// What selects among the steps that the edge can lead to.
    pub(super) pick: Pick,
}

/// What selects among steps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pick {
    /// Nothing that the answer says.
    Any,
    /// A value that is one of the cases, and where that leads.
    Case(Str, StepId),
    /// A value that is none of them.
    Other(StepId),
    /// The name of a step.
    Named(StepId),
    /// No name.
    Unnamed(StepId),
}

impl Choice {
    /// An outcome that leads nowhere by itself: of a member of a parallel step.
    pub(super) fn plain(outcome: Outcome) -> Choice {
        Choice { outcome, edge: None, pick: Pick::Any }
    }

    /// Where it leads from a step; nothing for an end.
    pub(super) fn leads(&self, flow: &Flow, at: StepId) -> Vec<StepId> {
        match self.pick {
            Pick::Case(_, to) | Pick::Other(to) | Pick::Named(to) | Pick::Unnamed(to) => vec![to],
            Pick::Any => self.edge.map(|edge| ways::targets(&flow.step(at).edges[edge])).unwrap_or_default(),
        }
    }
}

/// Everything that can be chosen at a step as things stand.
pub(super) fn choices(flow: &Flow, run: &Run, at: StepId, outcomes: &[Outcome]) -> Vec<Choice> {
    let step = flow.step(at);
    let mut found = Vec::new();
    for outcome in outcomes {
        let open = step.edges.iter().position(|edge| edge.on == *outcome && is_open(flow, run, edge));
        let Some(edge) = open else { continue };
        let own = |key: &Str| step.handoff.iter().any(|handoff| handoff.key == *key);
        let choice = |pick| Choice { outcome: outcome.clone(), edge: Some(edge), pick };
        match &step.edges[edge].to {
            Target::Select { by, cases, default } if picks(by, own) => {
                found.extend(cases.iter().map(|(case, to)| choice(Pick::Case(case.clone(), *to))));
                found.extend(default.map(|to| choice(Pick::Other(to))));
            }
            Target::Jump { field: Some(_), among, default } => {
                found.extend(among.iter().map(|to| choice(Pick::Named(*to))));
                found.extend(default.map(|to| choice(Pick::Unnamed(to))));
            }
            _ => found.push(choice(Pick::Any)),
        }
    }
    found
}

/// Whether the answer itself says the value that selects.
fn picks(by: &Selector, own: impl Fn(&Str) -> bool) -> bool {
    match by {
        Selector::Field(_) => true,
        Selector::Handoff(key) => own(key),
    }
}

/// Whether an edge is not used up.
fn is_open(flow: &Flow, run: &Run, edge: &Edge<StepId>) -> bool {
    edge.bound.is_none_or(|bound| {
        run.counters.get(&flow.counter(bound.counter).name).copied().unwrap_or(0) < bound.max
    })
}
