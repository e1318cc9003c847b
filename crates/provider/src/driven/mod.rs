//! Agents whose program our own child drives: over the Agent Client Protocol, or with a prompt and lines of JSON.
//!
//! The child starts the program beside itself, in the same sandbox, talks with it, and prints the events of an `exec` agent.
//! So everything that holds for those (spool, limits, replay) holds here, and an agent is a row of `rows`.

mod acp;
mod agent;
mod agent_probe;
mod child;
mod classify;
mod events;
mod job;
mod lines;
mod program_process;
mod rows;
mod settings;

pub use agent::DrivenAgent;
pub use agent_probe::AgentProbe;
pub use child::driver_main;
pub use job::DriverProgram;
pub use rows::DRIVEN_NAMES;
pub use settings::{AnswerTransport, DrivenSettings};
