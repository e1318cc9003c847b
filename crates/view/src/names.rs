//! Keeps one copy of each name.

use std::collections::HashSet;

use cuegate_flow::Str;

/// The names of a long run are few, and each record that is read brings copies of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(HashSet<Str>);

/// A run with more names than this has no few names: keeping them would cost more than it saves.
const NAMES_MAX: usize = 4096;

impl Names {
    /// The kept copy of a name.
    pub(crate) fn share(&mut self, name: &str) -> Str {
        if let Some(kept) = self.0.get(name) {
            return kept.clone();
        }
        let new: Str = name.into();
        if self.0.len() < NAMES_MAX {
            self.0.insert(new.clone());
        }
        new
    }

    /// Replaces a name by its kept copy.
    pub(crate) fn share_in(&mut self, name: &mut Option<Str>) {
        if let Some(own) = name {
            *own = self.share(own);
        }
    }
}
