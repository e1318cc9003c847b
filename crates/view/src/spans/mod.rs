//! A run as spans of time: visits, and in them asks with their tools, validators, effects and waits. The timeline of the
//! page, the terminal and traces are made of them.
//!
//! Spans depend on the records only, so a live run and its journal give the same ones.

mod fold;
mod json;

use cuegate_engine::{CommandId, Usage};
use cuegate_flow::Str;

pub use fold::Spans;

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A step was entered, until it was left.
    Visit,
    /// An agent was asked.
    Ask,
    /// An agent used a tool.
    Tool,
    /// A validator ran.
    Validator,
    /// An action on GitHub, on a branch or by a program.
    Effect,
    /// A part of the completion rule was polled.
    Poll,
    /// The run waited for a person, a provider or a repair.
    Wait,
}

impl SpanKind {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            SpanKind::Visit => "visit",
            SpanKind::Ask => "ask",
            SpanKind::Tool => "tool",
            SpanKind::Validator => "validator",
            SpanKind::Effect => "effect",
            SpanKind::Poll => "poll",
            SpanKind::Wait => "wait",
        }
    }
}

/// How a span ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanState {
    /// It has not ended.
    Open,
    /// As wanted.
    Ok,
    /// With a failure: a validator did not pass, an ask failed, a visit ended in `@failed`.
    Failed,
    /// It was cut off, or its result is unknown.
    Cut,
}

impl SpanState {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            SpanState::Open => "open",
            SpanState::Ok => "ok",
            SpanState::Failed => "failed",
            SpanState::Cut => "cut",
        }
    }
}

/// A part of a run with a beginning and an end.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its position, which is its id.
    pub id: usize,
    /// The span that contains it.
    pub parent: Option<usize>,
    /// What it is.
    pub kind: SpanKind,
    /// Whose: the step of a visit or an ask, the tool, the validator, the action.
    pub name: Str,
    /// The kind of an ask, the target of a tool, the reason of a wait.
    pub detail: Str,
    /// How it ended.
    pub state: SpanState,
    /// The outcome of a visit, the message of a failure.
    pub outcome: Option<Str>,
    /// The next step of a visit, or `@completed` and the like.
    pub target: Option<Str>,
    /// The number of a visit.
    pub visit: u32,
    /// The number of the attempt in a visit.
    pub attempt: u32,
    /// The beginning, in milliseconds since 1970.
    pub from_ms: i64,
    /// The end, in milliseconds since 1970; `None` while it is open.
    pub to_ms: Option<i64>,
    /// The record that began it.
    pub from_seq: u64,
    /// The record that ended it; `None` while it is open.
    pub to_seq: Option<u64>,
    /// The command of an ask, a validator or an effect.
    pub command: Option<CommandId>,
    /// The usage of an ask; of a visit that of its asks.
    pub usage: Usage,
    /// The provider of an ask.
    pub provider: Option<Str>,
    /// The model that answered an ask.
    pub model: Option<Str>,
}

/// What a run had spent at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpendPoint {
    /// In milliseconds since 1970.
    pub at_ms: i64,
    /// US dollars of answered and failed asks whose cost is known.
    pub spent_usd: f64,
    /// US dollars reserved for pending asks.
    pub reserved_usd: f64,
    /// Input and output tokens.
    pub tokens: u64,
}

/// How often a run went from one step to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEdge {
    /// The step that was left.
    pub from: Str,
    /// The step that was entered, or `@completed` and the like.
    pub to: Str,
    /// How often.
    pub count: u32,
}

#[cfg(test)]
mod tests;
