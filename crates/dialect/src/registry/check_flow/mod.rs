//! Registries of the check flow (“Step Flow Design” with checks): each step has a prompt and a check of its own.

mod agent;
mod definition;
mod lower;
mod prompts;
mod response;
mod way;

pub(crate) use agent::{compare, written_limit};
pub(crate) use definition::read_check_flow;
pub(crate) use lower::lower_check_flow;
