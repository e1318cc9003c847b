//! Tests of the whole program with real git, processes and signals.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

#[cfg(target_os = "linux")]
mod agents;
mod budget;
mod check;
mod check_flow;
mod complete;
mod crash;
mod doctor;
mod gates;
mod guide;
mod init;
mod judges;
#[cfg(target_os = "linux")]
mod kills;
mod params;
mod pictures;
mod piece_again;
#[cfg(target_os = "linux")]
mod piece_agents;
mod piece_files;
mod piece_keys;
mod piece_routes;
mod piece_rows;
mod piece_ways;
mod pieces;
mod priced;
mod real_input;
mod registry;
mod registry_keys;
mod run;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod sandbox_agents;
mod schema;
mod simulate;
mod simulate_random;
mod simulate_reasons;
mod starters;
mod support;
mod suspend;
mod trajectories;
mod verdicts;
mod watch;
