//! Ways that lead nowhere, kept for those who show a definition.

use crate::Str;

/// A way that is written to lead where no step is.
///
/// Only flows that are not sound have any: what an edge leads to stands in for it there, and nobody may follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dangling {
    /// The value that selects it, where an edge leads to several steps.
    pub case: Option<Str>,
    /// The name as written; `None` where there is none that could be read.
    pub name: Option<Str>,
}

impl Dangling {
    /// A way to a name that is no step's.
    pub fn to(name: &str) -> Dangling {
        Dangling { case: None, name: Some(name.into()) }
    }

    /// A way of which nobody can tell where it leads.
    pub fn unread() -> Dangling {
        Dangling { case: None, name: None }
    }

    /// The same for one value among those that select.
    #[must_use]
    pub fn of_case(self, case: &Str) -> Dangling {
        Dangling { case: Some(case.clone()), ..self }
    }
}
