//! Source positions of prompt findings.

use std::collections::{BTreeMap, HashMap};

use crate::{
    diagnostics::Span,
    model::{PromptRead, Source, Step, StepId},
};

/// The values that prompts read and their positions, by step.
pub(super) struct PromptPositions<'r>(HashMap<&'r str, BTreeMap<&'r Source, &'r PromptRead>>);

impl<'r> PromptPositions<'r> {
    /// The positions of some reads.
    pub(super) fn of_reads(reads: &'r [PromptRead]) -> PromptPositions<'r> {
        let mut places: HashMap<&str, BTreeMap<&Source, &PromptRead>> = HashMap::new();
        for read in reads {
            places.entry(&read.step).or_default().entry(&read.source).or_insert(read);
        }
        PromptPositions(places)
    }

    /// The position at which the prompt of a step reads something; the step itself if unknown. A generated step, such
    /// as a check, reads at the positions of its owner's prompts.
    pub(super) fn of(&self, step: &Step<StepId>, source: &Source) -> Span {
        self.known(step, source).unwrap_or(step.span)
    }

    /// As [`PromptPositions::of`]; `None` if unknown.
    pub(super) fn known(&self, step: &Step<StepId>, source: &Source) -> Option<Span> {
        let at = |name: &str| self.0.get(name)?.get(source);
        let owner = || step.name.split_once('/').and_then(|(owner, _)| at(owner));
        at(&step.name).or_else(owner).map(|read| read.span)
    }
}
