//! A server of the Model Context Protocol with one tool, `submit_answer`, whose input is the answer of a step.
//!
//! Prose of an agent also has its notices and retries in it, so an answer is taken from here, where it arrives as it was
//! given. An answer that does not fit the schema is refused with the reason, and the agent corrects it in its turn. What
//! happens is appended to a file: a sandbox that hides sockets lets the agent program and its servers share that.

mod http;
mod protocol;
mod record;
mod server;

pub use server::answer_server_main;

pub(crate) use http::HttpAnswerServer;
pub(crate) use protocol::{SERVER_NAME, TOOL_NAME};
pub(crate) use record::{AnswerRecord, AnswerRecords};
pub(crate) use server::{RECORDS_FILE, SCHEMA_FILE};
