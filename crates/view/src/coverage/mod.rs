//! Coverage of simulated runs: the steps, edges, outcomes, validators, monitors, limits and ends that they covered.

mod fold;
mod items;
mod observed;
mod page;
#[cfg(test)]
mod tests;
mod unreached;

pub use fold::{Coverage, Covered};
pub use items::{CoverKind, Item};
pub use observed::Observed;
pub use page::{AgentRow, BugRow, Simulated, end_of};
