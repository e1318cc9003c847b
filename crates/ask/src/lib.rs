//! The vocabulary of a call of an agent: its purpose, what it may do, what it used, and how it fails.
//!
//! Flows, the engine and the providers of agents share these types, so that nobody translates between them.
#![warn(missing_docs)]

mod mcp_server;

use serde::{Deserialize, Serialize};

pub use mcp_server::{McpServer, McpTransport, list_variables};

/// The purpose of an ask. Scripts and prices distinguish kinds; agents do not see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// The work of a step.
    Work,
    /// A report that a step owes.
    Report,
    /// A choice between outcomes.
    Judge,
    /// A check of another step's work.
    Check,
    /// A retry after an invalid answer.
    Repair,
    /// Work after a failed validator.
    Remedy,
}

impl AskKind {
    /// The printed word.
    pub fn as_str(self) -> &'static str {
        match self {
            AskKind::Work => "work",
            AskKind::Report => "report",
            AskKind::Judge => "judge",
            AskKind::Check => "check",
            AskKind::Repair => "repair",
            AskKind::Remedy => "remedy",
        }
    }
}

/// How much an agent may do without a person, from least to most.
///
/// The order is the strictness order, so the effective permission of a step is the minimum of what the
/// agent and the step allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Permission {
    /// Reads only; a changed file is a violation.
    Plan,
    /// Asks a person before each action; without a person, writing is denied.
    Default,
    /// Edits files in the working tree.
    AcceptEdits,
    /// Allows everything.
    BypassPermissions,
}

impl Permission {
    /// Whether files in the working tree may change.
    pub fn may_write(self) -> bool {
        self >= Permission::AcceptEdits
    }

    /// The word that definitions use.
    pub fn as_str(self) -> &'static str {
        match self {
            Permission::Plan => "plan",
            Permission::Default => "default",
            Permission::AcceptEdits => "acceptEdits",
            Permission::BypassPermissions => "bypassPermissions",
        }
    }
}

/// What an ask used: tokens, and money where it is known.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, including cached ones.
    #[serde(default)]
    pub input_tokens: u64,
    /// The input tokens read from a cache, which are cheaper.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
    /// Tokens that the model wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// Cost in US dollars; `None` = unknown, which is not zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether a part of it is estimated by the length of texts or the number of requests, because the agent did not report it.
    #[serde(default, rename = "estimated", skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
}

impl Usage {
    /// The sum. The cost is unknown if either cost is.
    #[must_use]
    pub fn plus(&self, other: &Usage) -> Usage {
        self.with(other, u64::saturating_add, |a, b| a + b)
    }

    /// The difference, at least 0 in each field.
    #[must_use]
    pub fn minus(&self, other: &Usage) -> Usage {
        self.with(other, u64::saturating_sub, |a, b| (a - b).max(0.0))
    }

    /// The maximum of each field.
    #[must_use]
    pub fn max(&self, other: &Usage) -> Usage {
        self.with(other, u64::max, f64::max)
    }

    /// The usage of one ask, computed from the session totals before and after it.
    ///
    /// If the totals decreased, the program has restarted its count, and all of `self` belongs to this ask.
    #[must_use]
    pub fn beyond(&self, before: &Usage) -> Usage {
        let anew = self.input_tokens < before.input_tokens || self.output_tokens < before.output_tokens;
        if anew { *self } else { self.minus(before) }
    }

    fn with(&self, other: &Usage, count: fn(u64, u64) -> u64, money: fn(f64, f64) -> f64) -> Usage {
        Usage {
            input_tokens: count(self.input_tokens, other.input_tokens),
            cached_input_tokens: count(self.cached_input_tokens, other.cached_input_tokens),
            output_tokens: count(self.output_tokens, other.output_tokens),
            cost_usd: self.cost_usd.zip(other.cost_usd).map(|(a, b)| money(a, b)),
            is_estimated: self.is_estimated || other.is_estimated,
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A limit of one ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskLimit {
    /// The cost that it reserved.
    Usd,
    /// The tokens that it reserved.
    Tokens,
    /// A limit outside of the budget: the agent's turns, or the length of an answer of the model.
    #[default]
    Other,
}

/// Why an ask failed, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultClass {
    /// The service rejected the request because of its rate limit; a later request may succeed.
    RateLimited,
    /// The service is overloaded; a later request may succeed.
    Overloaded,
    /// The service cannot be reached: the connection is refused or reset, DNS or the proxy fails.
    Network,
    /// The service rejected the key or login.
    Auth,
    /// The service refused the request or its content.
    Refused,
    /// The request exceeds the model's context window.
    ContextOverflow,
    /// The program does not have the session that it was to continue, or the service rejects its messages.
    SessionLost,
    /// The program exited without an answer.
    Crashed,
    /// The ask exceeded its timeout.
    Timeout,
    /// The response cannot be parsed.
    Malformed,
    /// The service does not know the model.
    UnknownModel,
    /// The program is missing, too old or misconfigured.
    MissingProgram,
    /// The script has no unused entry for this ask.
    ScriptExhausted,
    /// The agent wrote outside of its boundary.
    Violation,
    /// The ask reached its limit of cost, tokens or turns.
    OverCap,
}

impl FaultClass {
    /// The words for people.
    pub fn words(self) -> &'static str {
        match self {
            FaultClass::RateLimited => "rate limit",
            FaultClass::Overloaded => "server error",
            FaultClass::Network => "network error",
            FaultClass::Auth => "login rejected",
            FaultClass::Refused => "request refused",
            FaultClass::ContextOverflow => "context window exceeded",
            FaultClass::SessionLost => "conversation lost",
            FaultClass::Crashed => "agent crashed",
            FaultClass::Timeout => "timeout",
            FaultClass::Malformed => "unreadable answer",
            FaultClass::UnknownModel => "unknown model",
            FaultClass::MissingProgram => "agent not available",
            FaultClass::ScriptExhausted => "script exhausted",
            FaultClass::Violation => "boundary violated",
            FaultClass::OverCap => "limit of the call reached",
        }
    }

    /// The identifier in JSON and in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            FaultClass::RateLimited => "rate_limited",
            FaultClass::Overloaded => "overloaded",
            FaultClass::Network => "network",
            FaultClass::Auth => "auth",
            FaultClass::Refused => "refused",
            FaultClass::ContextOverflow => "context_overflow",
            FaultClass::SessionLost => "session_lost",
            FaultClass::Crashed => "crashed",
            FaultClass::Timeout => "timeout",
            FaultClass::Malformed => "malformed",
            FaultClass::UnknownModel => "unknown_model",
            FaultClass::MissingProgram => "missing_program",
            FaultClass::ScriptExhausted => "script_exhausted",
            FaultClass::Violation => "violation",
            FaultClass::OverCap => "over_cap",
        }
    }
}
