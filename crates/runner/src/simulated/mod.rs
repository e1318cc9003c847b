//! Runs with stand-in agents: the real engine and the real loop, without processes, files or time.
//!
//! *Never* starts, writes or waits for anything. The same seed gives the same runs.

mod agent;
mod compose;
mod desk;
mod dice;
#[cfg(test)]
mod fits;
mod numbers;
mod pattern;
mod places;
mod sample;
mod stand;
mod steer;
mod texts;
mod unions;
mod walk;
mod world;

pub use agent::Agent;
pub use pattern::text_for;
pub use walk::{Beginning, Simulation, Walk};
