//! Reads the runs of a project while other processes drive them: for the page and the full-screen terminal.
//!
//! Nothing here writes. A journal that does not exist yet has no runs, and a run of which records are lost is listed with
//! the reason.

mod project;
mod run;

pub use project::{Observer, Version};
pub use run::{RunReader, Working};
