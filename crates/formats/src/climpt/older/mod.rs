//! Features that only older generations have: `completionSteps` and check flows.

pub(crate) mod check_flow;
