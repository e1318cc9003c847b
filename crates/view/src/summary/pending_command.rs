//! What a run waits for.

use cuegate_engine::AskKind;
use cuegate_flow::Str;

/// A pending command of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingCommand {
    /// An ask waits for its answer.
    Ask {
        /// The step; for a judge the step that it judges.
        step: Str,
        /// The kind of the ask.
        kind: AskKind,
        /// Since when, in milliseconds since 1970.
        since_ms: i64,
        /// The earliest time of the next try.
        not_before_ms: Option<i64>,
        /// The agent, if not the usual one.
        agent: Option<String>,
    },
    /// A requested action runs.
    Effect {
        action: Str,
        /// Since when, in milliseconds since 1970.
        since_ms: i64,
    },
    /// A command runs.
    Command {
        /// The command on one line.
        command: String,
        /// Since when, in milliseconds since 1970.
        since_ms: i64,
    },
    /// The completion rule is checked.
    Look {
        /// The part of the completion rule, by its position.
        condition: Str,
        /// Since when, in milliseconds since 1970.
        since_ms: i64,
    },
}
