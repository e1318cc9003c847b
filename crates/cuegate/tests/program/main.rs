//! Tests of the whole program with real git, processes and signals.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod agent_roles;
mod agents;
mod apply;
mod attacks;
mod background;
mod baseline;
mod budget;
mod cases;
mod check;
mod clean;
#[cfg(target_os = "linux")]
mod compare;
mod crash;
mod doctor;
mod effect_kills;
mod faults;
mod finalize;
mod fork;
mod gc;
#[cfg(target_os = "linux")]
mod git_programs;
mod hostile_trees;
mod in_ci;
mod init;
#[cfg(target_os = "linux")]
mod kills;
#[cfg(target_os = "linux")]
mod landing;
mod leftovers;
#[cfg(target_os = "linux")]
mod mcp;
mod more_agents;
mod moved_base;
mod on_github;
mod on_postgres;
mod otel;
mod own_agents;
mod page;
mod params;
mod pictures;
mod places;
mod priced;
mod readme;
mod replay;
mod retry;
mod run;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod sandbox_agents;
mod schema;
#[cfg(target_os = "linux")]
mod screen;
mod starters;
mod support;
mod suspend;
mod system_steps;
mod tool_servers;
mod tools;
#[cfg(target_os = "linux")]
mod tree_kills;
mod undo;
mod user_files;
mod watch;
mod work;
mod agent {
    pub(crate) mod check_flow;
    pub(crate) mod complete;
    pub(crate) mod gates;
    pub(crate) mod guide;
    pub(crate) mod judges;
    pub(crate) mod real_input;
    pub(crate) mod registry;
    pub(crate) mod registry_keys;
    pub(crate) mod verdicts;
}
mod takt {
    pub(crate) mod again;
    #[cfg(target_os = "linux")]
    pub(crate) mod agents;
    pub(crate) mod companions;
    pub(crate) mod files;
    pub(crate) mod keys;
    pub(crate) mod names;
    pub(crate) mod routes;
    pub(crate) mod rows;
    pub(crate) mod selections;
    pub(crate) mod takt_support;
    pub(crate) mod ways;
    pub(crate) mod workflows;
}
mod simulation {
    pub(crate) mod coverage;
    pub(crate) mod random;
    pub(crate) mod simulate;
    pub(crate) mod trajectories;
}
