//! The commands that take or undo what a run did.

pub(in crate::cli) mod apply;
pub(in crate::cli) mod clean;
pub(in crate::cli) mod diff;
pub(in crate::cli) mod effect;
pub(in crate::cli) mod gc;
pub(in crate::cli) mod restore;
pub(in crate::cli) mod undo;
