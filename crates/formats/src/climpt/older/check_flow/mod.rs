//! Registries of check flows (“Step Flow Design” with checks): each step has its own prompt and check.

mod agent_limits;
mod lower;
mod prompt_files;
mod response_format;
mod steps;
mod transitions;

pub(crate) use agent_limits::{check_agent_completion, written_limit};
pub(crate) use lower::lower_check_flow;
pub(crate) use steps::read_check_flow;
