//! Flow builders, a simulated world and model API stand-ins for the tests of all crates. Never shipped.

#[cfg(feature = "flows")]
mod build;
pub mod definitions;
#[cfg(feature = "flows")]
pub mod flows;
pub mod fuzz;
pub mod github;
pub mod large;
pub mod offline;
pub mod postgres;
#[cfg(feature = "flows")]
pub mod random;
pub mod standin;
#[cfg(feature = "flows")]
pub mod world;

#[cfg(feature = "flows")]
pub use build::Builder;
