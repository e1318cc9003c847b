//! Registries of the check flow (“Step Flow Design” with checks): each step has a prompt and a check of its own.

mod agent_limits;
mod lower;
mod prompt_files;
mod response_format;
mod steps;
mod transitions;

pub(crate) use agent_limits::{compare, written_limit};
pub(crate) use lower::lower_check_flow;
pub(crate) use steps::read_check_flow;
