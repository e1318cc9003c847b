//! Flow builders, a simulated world and model API stand-ins for the tests of all crates. Never shipped.

mod build;
pub mod definitions;
pub mod flows;
pub mod fuzz;
pub mod github;
pub mod large;
pub mod offline;
pub mod postgres;
pub mod random;
pub mod standin;
pub mod world;

pub use build::Builder;
