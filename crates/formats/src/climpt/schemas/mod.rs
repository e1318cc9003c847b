//! The schemas of answers: bound to steps, and compared with their gates.

pub(crate) mod allow_abort;
pub(crate) mod answer;
pub(in crate::climpt) mod answer_words;
pub(crate) mod position;
pub(crate) mod satisfiable;
pub(crate) mod step_id;
pub(crate) mod unsatisfiable_intents;
