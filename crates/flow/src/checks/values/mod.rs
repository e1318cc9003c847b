//! Findings about values: variables, handoffs, reports, parameters.

pub(super) mod maybe_unassigned;
pub(super) mod optional_parameter;
pub(super) mod type_mismatch;
pub(super) mod unassigned_value;
pub(super) mod unknown_variable;
pub(super) mod unwritten_report;
