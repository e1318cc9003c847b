//! What the engine wants done.

use std::fmt;

use cuegate_flow::{
    Str,
    model::{BlobRef, Boundary, Handler, Poll, Program, SchemaId, Validator},
};
use serde::{Deserialize, Serialize};

use crate::{
    budget::Share,
    effect::Effect,
    event_types::{AskKind, PromptPart, TreeState, Usage},
};

/// Identifies a command permanently, by the record that made it pending.
///
/// Together with the run it is the idempotency key of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum CommandId {
    /// An ask or a validator of the current step.
    Step {
        /// The record that requested it.
        seq: u64,
    },
    /// An ask or a validator of a member of a parallel step.
    Member {
        /// The record that requested it.
        seq: u64,
        /// The index of the member.
        index: u16,
    },
    /// A poll of a part of the completion rule.
    Poll {
        /// The record that requested it.
        seq: u64,
        /// The index among the polls of that record.
        index: u16,
    },
    /// An effect that an action block of an answer requests.
    Effect {
        /// The record that contains the block.
        seq: u64,
        /// The index among the blocks of the answer.
        index: u16,
    },
}

impl CommandId {
    /// The id of an ask or validator of the current step, or of a member of it.
    pub fn new(seq: u64, member: Option<u16>) -> CommandId {
        match member {
            None => CommandId::Step { seq },
            Some(index) => CommandId::Member { seq, index },
        }
    }

    /// The record that made the command pending.
    pub fn seq(self) -> u64 {
        let (CommandId::Step { seq }
        | CommandId::Member { seq, .. }
        | CommandId::Poll { seq, .. }
        | CommandId::Effect { seq, .. }) = self;
        seq
    }

    /// The index of the member that it belongs to.
    pub fn member(self) -> Option<u16> {
        match self {
            CommandId::Member { index, .. } => Some(index),
            _ => None,
        }
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandId::Step { seq } => write!(f, "{seq}"),
            CommandId::Member { seq, index } => write!(f, "{seq}-member-{index}"),
            CommandId::Poll { seq, index } => write!(f, "{seq}-poll-{index}"),
            CommandId::Effect { seq, index } => write!(f, "{seq}-effect-{index}"),
        }
    }
}

/// Something to do. Commands run at least once; the first completion counts.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Ask an agent.
    Ask(Box<AskCommand>),
    /// Run a command.
    Exec(ExecCommand),
    /// Look whether the run is done.
    Probe(Box<ProbeCommand>),
    /// Do what an agent asked for.
    Effect(Box<EffectCommand>),
}

impl Command {
    /// Its name.
    pub fn id(&self) -> CommandId {
        match self {
            Command::Ask(ask) => ask.id,
            Command::Exec(exec) => exec.id,
            Command::Probe(probe) => probe.id,
            Command::Effect(effect) => effect.effect.id,
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
    /// Other names of that persona.
    pub persona_names: Vec<Str>,
    /// What for.
    pub kind: AskKind,
    /// What is said.
    pub prompt: Vec<PromptPart>,
    /// What is said before that when the conversation cannot be continued; empty when nothing was said yet.
    pub without_session: Vec<PromptPart>,
    /// What is said before everything else.
    pub system: Vec<PromptPart>,
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
    /// Whether it has to stay as it was: only a provider that can branch off from it continues it.
    pub branch: bool,
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
    /// The tree that the run stands on, where what changes meanwhile is the visit's: beside members at work.
    pub tree: Option<TreeState>,
}

/// Something that an agent asked for, to be done by a program of the definition.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectCommand {
    /// What.
    pub effect: Effect,
    /// The program that does it, as it was when the run began.
    pub program: Program,
    /// The tree that the run stands on.
    pub tree: Option<TreeState>,
}

/// A look at the verdict of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeCommand {
    /// Its name.
    pub id: CommandId,
    /// The part of the verdict, by its place.
    pub condition: Str,
    /// At what.
    pub probe: Probe,
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// A resource.
    Poll {
        /// What is wanted of it.
        poll: Poll,
        /// The value that says which one.
        which: BlobRef,
    },
    /// What a program of the definition says.
    Handler {
        /// The program.
        handler: Handler,
        /// What it is told.
        about: About,
    },
}

/// Where a run stands, for those who decide whether it is done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct About {
    /// The step whose visit is over.
    pub step: Str,
    /// Which visit of it.
    pub visit: u32,
    /// Which iteration of the run.
    pub iteration: u32,
    /// The last answer.
    pub answer: Option<LastAnswer>,
    /// Data that steps left.
    pub handoffs: Vec<Left>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastAnswer {
    /// The structured answer, when it came apart from the text.
    pub output: Option<BlobRef>,
    /// The text.
    pub text: Option<BlobRef>,
}

/// Data that a step left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The step.
    pub step: Str,
    /// The name.
    pub key: Str,
    /// The value: text as it is, everything else as JSON.
    pub value: BlobRef,
}
