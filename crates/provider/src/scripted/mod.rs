//! A scripted agent for tests, demos and simulations. It really edits files, takes time and fails.
//!
//! `docs/scripted-agents.md` documents the script format.

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
