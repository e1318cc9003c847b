//! Coverage of simulated runs: the steps, edges, outcomes, validators, monitors, limits and ends that they covered.

mod fold;
mod items;
mod observed;
mod page;
#[cfg(test)]
mod tests;
mod unreached;

pub use fold::{Coverage, CoveredCount};
pub use items::{CoverItem, CoverKind};
pub use observed::ObservedCounts;
pub use page::{AgentRow, BugRow, FinishedSimulation, end_of};
