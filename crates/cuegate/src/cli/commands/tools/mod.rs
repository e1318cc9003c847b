//! The commands about the program and this machine.

pub(in crate::cli) mod agents;
pub(in crate::cli) mod completions;
pub(in crate::cli) mod config;
pub(in crate::cli) mod doctor;
pub(in crate::cli) mod man;
