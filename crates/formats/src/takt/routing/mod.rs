//! Where a step leads: conditions and the rules made of them.

pub(super) mod condition;
pub(super) mod join;
pub(super) mod predicate;
pub(super) mod rules;
