//! Drives runs: performs the engine's commands, journals each completion and feeds it back to the engine. Also owns
//! child processes, working trees, the sandbox and simulations.
//!
//! This crate *never* decides, parses definitions, prints or exits.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests make what agents leave"))]

mod activity;
mod batch_writer;
mod beneath;
mod clock;
mod confinement;
mod drive;
mod effect_plan;
mod error;
mod executor;
pub mod github;
mod http;
mod local;
mod poll;
pub mod process;
mod prompt_text;
pub mod replay;
mod reports;
mod run_writer;
pub mod sandbox;
pub mod simulation;
mod state_dir;
mod state_packer;
mod task_queue;
mod trace;
mod translate;
pub mod worktree;

pub use activity::{ActivityReader, TimedActivity, output_so_far};
pub use batch_writer::{BatchWriter, read_batch};
pub use beneath::{FolderHandle, is_missing};
pub use clock::{Clock, now_ms};
pub use confinement::Confinement;
pub use drive::{
    AgentActivity, ExecutorMessage, InboxMessage, Notice, StopRequests, drive_run, has_inbox_answer, is_over,
    waits_for_person,
};
pub use effect_plan::EffectPlan;
pub use error::Error;
pub use executor::{CommandFuture, CommandResult, Executor, TreeInspection};
pub use http::{get_status, post_json};
pub use local::proof::undo_proofs;
pub use local::{
    CalledAgent, CalledAgents, ExecutorSettings, FormerProviders, LocalExecutor, RUN_VARIABLE,
    WITHIN_VARIABLE, put_back, state_of, state_with,
};
pub use poll::check_polled_path;
pub use prompt_text::{join_prompt_parts, read_stored_text};
pub use run_writer::{Entry, RunWriter, read_each_record, read_first_record, read_records, read_run};
pub use state_dir::{SharedStore, StateDir, user_key_path, user_state_folder};
pub use state_packer::{MissingState, StatePacker, name_state, restore_packs};
pub use task_queue::{NewTask, TaskQueue};
pub use trace::Trace;
