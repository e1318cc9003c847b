//! What the engine wants done.

use std::fmt;

use cuegate_flow::{Boundary, SchemaId, Str, Validator};
use serde::{Deserialize, Serialize};

use crate::{
    budget::Share,
    facts::{AskKind, Part, TreeState, Usage},
};

/// Names a command for ever: the record that made it pending, and the member of a parallel step.
///
/// Together with the run it is the key under which the world does a thing once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommandId {
    /// The record.
    pub seq: u64,
    /// The member, 0 where there is none.
    pub member: u16,
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.seq, self.member)
    }
}

/// Something to do. Commands run at least once; the first completion counts.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Ask an agent.
    Ask(Box<AskCommand>),
    /// Run a command.
    Exec(ExecCommand),
}

impl Command {
    /// Its name.
    pub fn id(&self) -> CommandId {
        match self {
            Command::Ask(ask) => ask.id,
            Command::Exec(exec) => exec.id,
        }
    }
}

/// An ask to put.
#[derive(Debug, Clone, PartialEq)]
pub struct AskCommand {
    /// Its name.
    pub id: CommandId,
    /// The step.
    pub step: Str,
    /// The step whose work it checks: agents and scripts know it by that one's name.
    pub of: Option<Str>,
    /// Whose persona it takes.
    pub persona: Option<Str>,
    /// What for.
    pub kind: AskKind,
    /// What is said.
    pub prompt: Vec<Part>,
    /// What is said before that when the conversation cannot be continued; empty when nothing was said yet.
    pub without_session: Vec<Part>,
    /// What is said before everything else.
    pub system: Vec<Part>,
    /// What the answer must look like.
    pub schema: Option<SchemaId>,
    /// The model, by the definition's name.
    pub model: Option<Str>,
    /// The conversation to continue.
    pub session: Option<SessionUse>,
    /// What the agent may touch.
    pub boundary: Boundary,
    /// The most that it may use up.
    pub share: Share,
    /// Not before this time, in milliseconds since 1970.
    pub not_before_ms: Option<i64>,
    /// The tree that the run stands on: an owned worktree that differs is restored to it first.
    pub tree: Option<TreeState>,
}

/// A conversation to continue.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionUse {
    /// The provider's name for it.
    pub id: String,
    /// What the provider had reported for the whole of it.
    pub totals: Option<Usage>,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecCommand {
    /// Its name.
    pub id: CommandId,
    /// The step.
    pub step: Str,
    /// What to run.
    pub validator: Validator,
}
