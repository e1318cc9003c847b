//! Reads the runs of a project while other processes drive them: for the page and the full-screen terminal.
//!
//! Nothing here writes: what changes runs goes through [`Project::control`], which starts the program itself, so that a
//! page or a key can do nothing that the command line does not check. A journal that does not exist yet has no runs, and a run of which records are lost is listed with
//! the reason.

mod observer;
mod project;
mod row_file;
mod run;

pub use observer::{Observer, RunList};
pub use project::{Control, Problem, Project, StartRequest};
pub use row_file::keep_row;
pub use run::{RunReader, RunningCommand};
