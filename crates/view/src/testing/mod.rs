//! Small flows and runs for tests; the engine decides every event.

mod flows;
mod scene;

pub(crate) use flows::{piece, registry};
pub(crate) use scene::{START_MS, Scene, answer, started};
