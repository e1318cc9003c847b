//! To which steps runs come, from the entry and from others, and to which they may come by ways that could not be read.

use super::live::{Live, Yields};
use super::misread::Misread;
use crate::{Flow, StepId};

/// The steps that runs come to by ways that are known.
pub(super) struct Came {
    /// From the entry.
    pub(super) live: Live,
    /// From any of the entries; `None` when there is one only.
    from_others: Option<Live>,
}

impl Came {
    pub(super) fn to(known: &Flow, entries: &[StepId], yields: &Yields, precise: bool) -> Came {
        let live = Live::where_yields(known, yields, &entries[..1], precise);
        let from_others = (entries.len() > 1).then(|| Live::where_yields(known, yields, entries, precise));
        Came { live, from_others }
    }

    pub(super) fn from_all(&self) -> &Live {
        self.from_others.as_ref().unwrap_or(&self.live)
    }

    /// The steps to which runs from the entry may come: a misread one may lead to what nothing else is known to lead
    /// to. What another entry leads to needs no such way.
    pub(super) fn possibly(&self, misread: &Misread) -> Vec<bool> {
        let anywhere = misread.is_live(&self.live);
        let steps = self.live.steps.iter().zip(&self.from_all().steps);
        steps.map(|(from_entry, from_any)| *from_entry || (anywhere && !*from_any)).collect()
    }
}
