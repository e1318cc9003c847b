//! Flows and runs for tests: small, but decided by the engine itself.

mod flows;
mod scene;

pub(crate) use flows::{piece, registry};
pub(crate) use scene::{START_MS, Scene, answer, started};
