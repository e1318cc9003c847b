//! OpenAI Codex: one `codex exec` process per ask.
//!
//! Comments document the program's observed behaviour where the code depends on it; `docs/agents.md` lists its
//! capabilities.

mod agent;
mod fault;
mod inspect;
mod launch;
mod read;
mod rollout;
mod sandbox_needs;
mod settings;
mod strict;

pub(crate) use sandbox_needs::VARIABLES;

pub use agent::Codex;
pub use settings::{CodexSettings, SECRETS};
