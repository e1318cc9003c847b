//! The messages between the provider and its child process. Both are stored on disk during an ask: no keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The child's job.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OpenAiJob {
    pub url: String,
    pub body: Value,
    /// The name of the environment variable with the key, never the key itself.
    pub key_env: Option<String>,
    /// The header of the key; `None` = `Authorization: Bearer`.
    pub key_header: Option<String>,
    pub headers: BTreeMap<String, String>,
    pub connect_timeout_ms: u64,
    pub idle_timeout_ms: u64,
}

/// A line of the child's output. The last one is [`OpenAiLine::Done`] or [`OpenAiLine::Failed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OpenAiLine {
    /// The answer's id and model.
    Head { id: Option<String>, model: Option<String> },
    /// Text of the answer.
    Text(String),
    /// The number of bytes of reasoning, which are paid for but not part of the answer.
    Thought(u64),
    /// The reason of a refusal.
    Refusal(String),
    /// A tool call, although the model has no tools.
    Tool(String),
    /// The total usage so far.
    Used(ReportedUsage),
    /// The finish reason.
    Finish(String),
    /// The answer is complete.
    Done,
    /// The ask failed.
    Failed(RequestTrouble),
}

/// The usage as reported by a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReportedUsage {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
}

/// Why the ask failed, as the child observed it. The reader decides what it means for the ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RequestTrouble {
    pub what: TroubleKind,
    /// The body of an error response, or the system's error message.
    pub said: String,
    /// The delay in milliseconds until a retry, as requested by the service.
    pub resets_in_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TroubleKind {
    /// The environment variable of the key is not set.
    NoKey,
    /// The service answered with this HTTP status.
    Status(u16),
    /// The service reported an error inside a successful response.
    Reported,
    /// The connection was refused.
    ConnectionRefused,
    /// The host cannot be reached: no such name, no route, or a connection timeout.
    Unreachable,
    /// The TLS connection failed.
    Tls,
    /// The connection through the proxy failed.
    Proxy,
    /// The service was silent for longer than the idle timeout.
    Silent,
    /// The connection ended before the answer was complete.
    BrokeOff,
    /// The response violates the protocol.
    Garbled,
    /// The request is invalid, for example a header with a line break.
    Unsendable,
}

impl RequestTrouble {
    pub fn new(what: TroubleKind, said: impl Into<String>) -> RequestTrouble {
        RequestTrouble { what, said: said.into(), resets_in_ms: None }
    }
}
