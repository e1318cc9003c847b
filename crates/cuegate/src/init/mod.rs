//! Definitions of our own making, written into a project: what `cuegate init` does.

mod detect;
mod merge_write;
mod minimal;
mod piece;
mod starter;
mod write;

pub(crate) use detect::{Found, detect};
pub(crate) use merge_write::{Left, beside};
pub(crate) use starter::{Form, STARTERS, Starter, Tests, Wanted, nearest, starter};
pub(crate) use write::write;
