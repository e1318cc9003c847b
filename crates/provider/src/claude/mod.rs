//! Claude Code: one `claude -p` process per ask.
//!
//! Comments document the program's observed behaviour where the code depends on it; `docs/agents.md` lists its
//! capabilities.

mod agent;
mod fault;
mod inspect;
mod launch;
mod list_price;
mod read;
mod sandbox_needs;
mod session_files;
mod settings;
mod wire;

pub(crate) use sandbox_needs::VARIABLES;

pub use agent::Claude;
pub use settings::{ClaudeSettings, SECRETS};
