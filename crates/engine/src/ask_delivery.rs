//! How an ask was put to an agent.

use serde::{Deserialize, Serialize};

/// How the schema and the session were passed to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AskDelivery {
    /// How the schema was enforced; `None` for an ask without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaEnforcement>,
    /// How the session continued.
    #[serde(default)]
    pub session: SessionContinuation,
}

/// How a schema was enforced. The answer is validated in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaEnforcement {
    /// By the provider.
    Provider,
    /// By the prompt.
    Prompt,
}

/// How a session continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionContinuation {
    /// A new session.
    #[default]
    New,
    /// The provider continued it.
    Continued,
    /// The provider forked it, so that it stays unchanged if the ask is cut off.
    Forked,
    /// The provider cannot continue sessions: earlier messages are part of the prompt.
    Retold,
}
