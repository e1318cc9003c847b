//! The schemas of answers: resolved, merged, closed, and compared with their gates.

pub(crate) mod allow_abort;
pub(crate) mod answer;
pub(crate) mod beside_ref;
pub(crate) mod close_objects;
pub(crate) mod merge;
pub(crate) mod position;
pub(crate) mod reference;
pub(crate) mod resolver;
pub(crate) mod satisfiable;
pub(crate) mod step_id;
pub(crate) mod unknown_keywords;
pub(crate) mod unsatisfiable_intents;
