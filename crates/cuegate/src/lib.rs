//! Check it, price it, run it: declarative workflows of coding agents.
//!
//! The library loads, checks and runs a definition and returns the result. The program adds arguments, terminal output
//! and exit codes.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use cuegate::{Definition, Program, RunOptions};
//!
//! fn main() -> ExitCode {
//!     // This must come first: cuegate starts this program again for its hidden subcommands.
//!     let program = match Program::enter() {
//!         Ok(program) => program,
//!         Err(code) => return code,
//!     };
//!     let go = || {
//!         let definition = Definition::load("code-improver", std::path::Path::new("."))?;
//!         let options = RunOptions::new(program, "claude").arg("topic", "Refactoring authentication module");
//!         cuegate::run(&definition, options)
//!     };
//!     match go() {
//!         Ok(result) if result.success() => ExitCode::SUCCESS,
//!         Ok(_) => ExitCode::FAILURE,
//!         Err(failure) => ExitCode::from(failure.code),
//!     }
//! }
//! ```
//!
//! This crate contains no rules about flows.
#![warn(missing_docs)]

mod agents;
pub(crate) mod batch;
mod before_start;
mod binary;
mod built_in;
pub mod cli;
pub mod config;
pub mod definition;
pub mod doctor;
pub mod exit;
mod exported_run;
mod failure;
pub mod github;
mod init;
mod library;
pub mod models;
mod otel;
pub mod project;
pub mod providers;
mod replay;
mod retention;
pub mod run;
mod run_changes;
mod shared_journal;
pub mod simulate;
mod task_queue;
mod text_file;
mod visits;

pub use agents::Agent;
pub use binary::Program;
pub use failure::Failure;
pub use library::{CheckResult, Definition, HistoryEntry, RunOptions, RunResult, run, run_async};
