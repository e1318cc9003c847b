//! Definitions of our own making, written into a project: what `cuegate init` does.

mod detect;
mod minimal;
mod starter;
mod write;

pub(crate) use detect::{Found, detect};
pub(crate) use starter::{File, STARTERS, Starter, Wanted, starter};
pub(crate) use write::write;
