//! Runs: how they start, go on and leave the machine as it was.

pub(crate) mod adopted_workflow;
pub(crate) mod effects_of_ended_run;
mod executor_settings;
pub(crate) mod finalize_plan;
pub(crate) mod fork_run;
pub mod leftovers;
pub mod limits;
pub(super) mod logfile;
pub(crate) mod moved_run;
pub(crate) mod resume_run;
mod resumed_agents;
pub(crate) mod rights;
pub(super) mod sandbox_setup;
pub mod start_run;
pub(super) mod tree_lock;
pub(crate) mod tried_command;
pub(super) mod typical_cost;
pub(crate) mod worktree_setup;
