//! `cuegate init`: writes a starter definition into a project.

mod built_in;
mod detect;
mod merge_write;
mod minimal;
mod piece;
mod starter;
mod write;

pub(crate) use built_in::{look_at_built_in, write_built_in};
pub(crate) use detect::{Detected, Found, detect, from_here};
pub(crate) use merge_write::{Left, beside};
pub(crate) use starter::{Form, STARTERS, Starter, Tests, Wanted, nearest, starter};
pub(crate) use write::write;
