//! Builders of flows and a scripted world, for tests of every floor. Never shipped.

mod build;
pub mod definitions;
pub mod flows;
pub mod large;
pub mod offline;
pub mod random;
pub mod standin;
pub mod world;

pub use build::Builder;
