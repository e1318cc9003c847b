//! Places where prompts read variables that may be missing.

use std::collections::BTreeSet;

use cuegate_flow::model::{PromptRead, Source};

/// The places where steps read a variable, once for each step and variable.
#[derive(Debug, Default)]
pub(crate) struct ReadPlaces {
    /// The places.
    pub(crate) all: Vec<PromptRead>,
    /// The variables that the last step reads: the prompts of one step are compiled together.
    own: BTreeSet<Source>,
}

impl ReadPlaces {
    /// Adds a place, unless the same step has read the same variable before.
    pub(crate) fn add(&mut self, read: PromptRead) {
        if self.all.last().is_none_or(|last| last.step != read.step) {
            self.own.clear();
        }
        if self.own.insert(read.source.clone()) {
            self.all.push(read);
        }
    }
}
