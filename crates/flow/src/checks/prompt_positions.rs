//! Where findings about prompts point to.

use std::collections::{BTreeMap, HashMap};

use crate::{
    diagnostics::Span,
    model::{Read, Source, Step, StepId},
};

/// What prompts read and where, by the steps that they belong to.
pub(super) struct Places<'r>(HashMap<&'r str, BTreeMap<&'r Source, &'r Read>>);

impl<'r> Places<'r> {
    /// The places of what is read.
    pub(super) fn of_reads(reads: &'r [Read]) -> Places<'r> {
        let mut places: HashMap<&str, BTreeMap<&Source, &Read>> = HashMap::new();
        for read in reads {
            places.entry(&read.step).or_default().entry(&read.source).or_insert(read);
        }
        Places(places)
    }

    /// Where the prompt of a step reads something; where nobody says, the step itself. What belongs to a step, as its
    /// check, reads where that step's prompts do.
    pub(super) fn of(&self, step: &Step<StepId>, source: &Source) -> Span {
        self.known(step, source).unwrap_or(step.span)
    }

    /// The same, where somebody says.
    pub(super) fn known(&self, step: &Step<StepId>, source: &Source) -> Option<Span> {
        let at = |name: &str| self.0.get(name)?.get(source);
        let owner = || step.name.split_once('/').and_then(|(owner, _)| at(owner));
        at(&step.name).or_else(owner).map(|read| read.span)
    }
}
