//! Where a step leads: conditions and the rules made of them.

pub(super) mod condition;
pub(super) mod decisions;
pub(super) mod expression;
pub(super) mod predicate;
pub(super) mod rules;

/// The target that completes the run.
pub(super) const COMPLETE: &str = "COMPLETE";
/// The target that aborts the run.
pub(super) const ABORT: &str = "ABORT";
