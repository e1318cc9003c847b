//! `cuegate init`: writes a starter definition into a project.

mod built_in;
mod detect;
mod merge_write;
mod minimal;
mod starter;
mod takt_starter;
mod write;

pub(crate) use built_in::{look_at_built_in, write_built_in};
pub(crate) use detect::{DetectedCommand, DetectedCommands, detect_commands, from_here};
pub(crate) use merge_write::{WriteSummary, merge_into_folder};
pub(crate) use starter::{
    STARTERS, Starter, StarterFormat, StarterValues, TestUse, find_nearest_starter, find_starter,
};
pub(crate) use write::write_new_folder;
