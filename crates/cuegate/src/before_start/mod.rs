//! What is checked before the first call of a run: that its end can be reached, and that its validators can pass.

pub(crate) mod baseline;
pub(crate) mod diagnose;
pub(crate) mod nesting;
pub(crate) mod review;
pub(crate) mod settings;
pub(crate) mod start_checks;
pub(crate) mod trial;
