//! The stand-in for an agent in tests, demos and simulations. It really edits files, takes time and fails.
//!
//! The format of a script is in `docs/scripted-agents.md`.

mod act;
mod agent;
mod pick;
mod process;
mod read;
mod script;

pub use agent::{ScriptedProgram, ScriptedProvider};
pub use process::scripted_main;
pub use read::ScriptError;
pub use script::Script;
