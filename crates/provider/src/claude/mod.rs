//! Claude Code: `claude -p`, one program for each ask.
//!
//! What was learned of it stands beside the code that heeds it; `docs/providers.md` says what it can do.

mod agent;
mod fault;
mod inspect;
mod launch;
mod read;
mod sandbox_needs;
mod settings;
mod wire;

pub use agent::Claude;
pub use settings::{SECRETS, Settings};
