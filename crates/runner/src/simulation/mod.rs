//! Runs with stand-in agents: the real engine and the real loop, without processes, files or time.
//!
//! *Never* starts a process, writes a file or waits. The same seed gives the same runs.

mod agent;
mod answer_builder;
mod fake_executor;
mod fake_reads;
mod fake_world;
mod numbers;
mod pattern;
mod random;
mod run;
mod set_path;
mod state_mapping;
mod strategy;
#[cfg(test)]
mod tests;
mod texts;
mod unions;
mod value_sampler;

pub use agent::Agent;
pub use pattern::text_for;
pub use run::{RunInputs, SimulatedRun, Simulation};
