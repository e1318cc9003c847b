//! Where prompts read what may not be there.

use std::collections::BTreeSet;

use cuegate_flow::model::{Read, Source};

/// Places where steps read something, each step and what it reads once.
#[derive(Debug, Default)]
pub(crate) struct ReadPlaces {
    /// The places.
    pub(crate) all: Vec<Read>,
    /// What the last step of them reads: the prompts of one step are compiled at a time.
    own: BTreeSet<Source>,
}

impl ReadPlaces {
    /// Adds a place, unless the same step reads the same before it.
    pub(crate) fn add(&mut self, read: Read) {
        if self.all.last().is_none_or(|last| last.step != read.step) {
            self.own.clear();
        }
        if self.own.insert(read.source.clone()) {
            self.all.push(read);
        }
    }
}
