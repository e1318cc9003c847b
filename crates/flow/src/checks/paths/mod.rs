//! Findings about the paths that runs can take.

pub(super) mod bound_never_hit;
pub(super) mod closure_skipped;
pub(super) mod limit_too_low;
pub(super) mod missing_transition;
pub(super) mod monitor_never_acts;
pub(super) mod no_entry;
pub(super) mod no_way_to_end;
pub(super) mod retry_without_change;
pub(super) mod transition_without_default;
pub(super) mod unreachable_step;
pub(super) mod unreachable_transition;
