//! The Agent Client Protocol, stable version 1, as a client without files and terminals: the agent has its own, and the
//! sandbox is the wall.

mod connection;
mod permission;
mod probe;
mod session;
mod turn;

pub(super) use probe::{describe_failure, probe_acp};
pub(super) use turn::run_acp;
