//! `cuegate init`: writes a starter definition into a project.

mod detect;
mod merge_write;
mod minimal;
mod starter;
mod takt_starter;
mod write;

pub(crate) use detect::{DetectedCommand, DetectedCommands, detect_commands, from_here};
pub(crate) use merge_write::{WriteSummary, merge_into_folder};
pub(crate) use starter::{
    DefinitionFile, STARTERS, Starter, StarterFormat, StarterValues, TestUse, find_nearest_starter,
    find_starter,
};
pub(crate) use write::write_new_folder;
