//! Parses answers: structured answers, plain text, gates, extractors and action blocks.

pub(crate) mod action_blocks;
pub(crate) mod extractors;
pub(crate) mod gate;
pub(crate) mod parsed_answer;
pub(crate) mod spoken;
pub(crate) mod structured;
