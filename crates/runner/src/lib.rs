//! Drives runs: performs the engine's commands, journals each completion and feeds it back to the engine. Also owns
//! child processes, working trees, the sandbox and simulations.
//!
//! This crate *never* decides, parses definitions, prints or exits.

mod activity;
mod batch_writer;
mod clock;
mod drive;
mod error;
mod executor;
pub mod github;
mod http;
mod local;
mod poll;
pub mod process;
mod prompt_text;
mod reports;
mod run_writer;
pub mod sandbox;
pub mod simulation;
mod state_dir;
mod trace;
mod translate;
pub mod worktree;

pub use activity::{ActivityReader, TimedActivity, output_so_far};
pub use batch_writer::{BatchWriter, read_batch};
pub use clock::{Clock, now_ms};
pub use drive::{Doing, Heard, Letter, Notice, answered, drive, is_over, waits_for_person};
pub use error::Error;
pub use executor::{Executor, Look, Performance, Performed};
pub use http::{get_status, post_json};
pub use local::{EffectPlan, FormerProviders, Local, Setting, put_back, state_of};
pub use poll::within;
pub use prompt_text::{join, lookup};
pub use run_writer::{Entry, RunWriter, records, records_from};
pub use state_dir::StateDir;
pub use trace::Trace;
