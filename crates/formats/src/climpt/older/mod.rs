//! Features that only older generations have: `completionSteps` and check flows.

pub(crate) mod answer_words;
pub(crate) mod check_flow;
pub(crate) mod completion_steps;
