//! The [`Provider`] trait and one implementation per agent.
//!
//! This crate does not depend on flows, runs or journals, and a provider never retries by itself.
//!
//! ```
//! use cuegate_provider::{Provider, scripted::{Script, ScriptedProvider}};
//!
//! let script = Script::parse("answers: [{ step: fix, output: { action: next }, text: Fixed it. }]", "script.yaml")?;
//! let agent: Box<dyn Provider> = Box::new(ScriptedProvider::new(script, None));
//! assert!(agent.inspect().problems.is_empty() && agent.capabilities().schema);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

mod answer_server;
mod ask;
pub mod claude;
pub mod codex;
pub mod driven;
pub mod exec;
mod mcp_protocol;
pub mod openai;
mod program;
mod redact;
mod sandbox_needs;
pub mod scripted;
mod secret_forms;
mod token_prices;

pub use answer_server::answer_server_main;
pub use ask::{
    Activity, Answer, AnswerReader, Cap, Capabilities, CutUsage, Fault, Inspection, Launch, Local, Login,
    LoginRequest, PreparedAsk, Problem, ProgramEnd, Provider, Request, Session, Shared,
};
pub use cuegate_ask::{
    AskKind, AskLimit, FaultClass, McpServer, McpTransport, Permission, Usage, list_variables,
};
pub use mcp_protocol::{ToolReply, ToolServer, answer_message};
pub use program::locate::{exclude_from_path, locate_or_missing, locate_program, search_path};
pub use program::probe::capture_program_output;
pub use program::redact_env::wrap_redacting_reader;
pub use redact::{Redactor, environment_secrets, is_secret, is_secret_name, redact_variables};
pub use sandbox_needs::{NetworkService, SandboxNeeds, calling_session};
pub use secret_forms::{find_secret_forms, redact_secret_forms};
pub use token_prices::{Price, Prices};
