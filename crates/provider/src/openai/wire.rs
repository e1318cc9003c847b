//! What the provider and its program tell each other. Both lie on disk while an ask is at work: no key is in them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the program has to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub url: String,
    pub body: Value,
    /// The environment variable that holds the key, never the key.
    pub key_env: Option<String>,
    /// The header that carries the key; without one it is `Authorization: Bearer`.
    pub key_header: Option<String>,
    pub headers: BTreeMap<String, String>,
    pub connect_timeout_ms: u64,
    pub idle_timeout_ms: u64,
}

/// What the program prints, one a line, as it happens. The last is [`Line::Done`] or [`Line::Failed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// Who answers, under which name of the answer.
    Head { id: Option<String>, model: Option<String> },
    /// The model said this.
    Text(String),
    /// It thought so many bytes, which are paid for but no part of the answer.
    Thought(u64),
    /// It says why it does not answer.
    Refusal(String),
    /// It called a tool, though it has none.
    Tool(String),
    /// What was used up so far, all in all.
    Used(Used),
    /// Why it stopped writing.
    Finish(String),
    /// The service said that this was all.
    Done,
    /// There is no answer.
    Failed(Trouble),
}

/// What a service says that was used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Used {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
}

/// Why there is no answer, as the program saw it. What that means for the ask is decided by whoever reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Trouble {
    pub what: What,
    /// The body of an error, or the words of the system.
    pub said: String,
    /// In how many milliseconds the service wants to be asked again.
    pub resets_in_ms: Option<u64>,
}

/// What kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// The environment variable of the key is not set.
    NoKey,
    /// The service answered with this HTTP status.
    Status(u16),
    /// The service reported an error inside an answer that had begun well.
    Reported,
    /// Nobody listens there.
    ConnectionRefused,
    /// The way there is broken: no such name, no route, no connection in time.
    Unreachable,
    /// No encrypted connection came about.
    Tls,
    /// The proxy does not let it through.
    Proxy,
    /// Nothing came for too long.
    Silent,
    /// The connection ended before the answer did.
    BrokeOff,
    /// What came is not what the protocol says.
    Garbled,
    /// The request cannot even be written: a header with a line break, say.
    Unsendable,
}

impl Trouble {
    pub fn new(what: What, said: impl Into<String>) -> Trouble {
        Trouble { what, said: said.into(), resets_in_ms: None }
    }
}
