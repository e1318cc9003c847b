//! Transitions to names that do not resolve, kept to display the definition.

use crate::Str;

/// A transition to a name that is not a step.
///
/// Only unsound flows have these. The edge's target is then a placeholder that no run follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DanglingTarget {
    /// The value that selects this target, if the edge has several.
    pub case: Option<Str>,
    /// The name as written; `None` if it could not be read.
    pub name: Option<Str>,
}

impl DanglingTarget {
    /// A transition to a name that is not a step.
    pub fn to(name: &str) -> DanglingTarget {
        DanglingTarget { case: None, name: Some(name.into()) }
    }

    /// A transition whose target could not be read.
    pub fn unread() -> DanglingTarget {
        DanglingTarget { case: None, name: None }
    }

    /// The same for one selecting value.
    #[must_use]
    pub fn of_case(self, case: &Str) -> DanglingTarget {
        DanglingTarget { case: Some(case.clone()), ..self }
    }
}
