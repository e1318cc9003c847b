//! What simulated runs came by: every step, way, outcome, validator, monitor, limit and end of a flow, and what is left.

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
