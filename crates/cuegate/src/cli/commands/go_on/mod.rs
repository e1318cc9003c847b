//! The commands that let a run go on, or end it.

pub(in crate::cli) mod answer;
pub(in crate::cli) mod cancel;
pub(in crate::cli) mod fork;
pub(in crate::cli) mod instruct;
pub(in crate::cli) mod resume;
pub(in crate::cli) mod retry;
