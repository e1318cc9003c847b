//! Findings about rules over the outcomes of parallel members.

pub(super) mod ambiguous_join;
pub(super) mod join_never_fires;
pub(super) mod unmatched_join;
