//! Commands: the work that the engine requests.

use std::fmt;

use cuegate_ask::{AskKind, Usage};
use cuegate_flow::{
    Str,
    model::{BlobRef, Boundary, Handler, Poll, Program, SchemaId, Validator},
};
use serde::{Deserialize, Serialize};

use crate::{
    agents::AgentChoice, budget::Share, effect::Effect, event_types::PromptPart, place::TreeState,
    system::ReadCommand,
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

/// Work for the executor. A command runs at least once; the first completion counts.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Ask an agent.
    Ask(Box<AskCommand>),
    /// Run a command.
    Exec(Box<ExecCommand>),
    /// Poll a part of the verdict.
    Probe(Box<ProbeCommand>),
    /// Run the program of an effect.
    Effect(Box<EffectCommand>),
    /// Read what a step needs.
    Read(Box<ReadCommand>),
}

impl Command {
    pub fn id(&self) -> CommandId {
        match self {
            Command::Ask(ask) => ask.id,
            Command::Exec(exec) => exec.id,
            Command::Probe(probe) => probe.id,
            Command::Effect(effect) => effect.effect.id,
            Command::Read(read) => read.id,
        }
    }
}

/// An ask for the executor.
#[derive(Debug, Clone, PartialEq)]
pub struct AskCommand {
    pub id: CommandId,
    pub step: Str,
    /// The checked step, for a check: agents and scripts see its name.
    pub of: Option<Str>,
    /// The step whose answer is judged, for a judge.
    pub subject: Option<Str>,
    pub persona: Option<Str>,
    /// Other names of the persona.
    pub persona_names: Vec<Str>,
    /// Its purpose.
    pub kind: AskKind,
    pub prompt: Vec<PromptPart>,
    /// Earlier messages, for a provider that cannot continue the session. Empty at the start of a session.
    pub without_session: Vec<PromptPart>,
    /// The system prompt.
    pub system: Vec<PromptPart>,
    /// The schema of the answer.
    pub schema: Option<SchemaId>,
    /// The agent; `None` for the usual one.
    pub agent: Option<AgentChoice>,
    /// The model, as the definition names it.
    pub model: Option<Str>,
    /// The session to continue.
    pub session: Option<SessionUse>,
    /// The permission and the tools of the agent.
    pub boundary: Boundary,
    /// Its reserved share of the budget.
    pub share: Share,
    /// The earliest start, in milliseconds since 1970.
    pub not_before_ms: Option<i64>,
    /// The journaled working tree. An owned worktree that differs is restored to it first.
    pub tree: Option<TreeState>,
}

/// A session to continue.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionUse {
    /// The provider's id.
    pub id: String,
    /// The usage of the whole session so far, as the provider reported it.
    pub totals: Option<Usage>,
    /// Whether the session must not change: only a provider that can fork it continues it.
    pub branch: bool,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecCommand {
    pub id: CommandId,
    pub step: Str,
    /// The command.
    pub validator: Validator,
    /// The values that it reads, by the name of their variable; those that do not exist are left out.
    pub values: Vec<(Str, BlobRef)>,
    /// The journaled working tree, for a gate command of a member: changes to it belong to the visit.
    pub tree: Option<TreeState>,
}

/// An effect to be done by a program of the definition.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectCommand {
    pub effect: Effect,
    /// The program of an [`EffectKind::Exec`](crate::EffectKind::Exec), as it was when the run started.
    pub program: Option<Program>,
    /// The blocks that the comment of the run already shows.
    pub comments: Vec<BlobRef>,
    /// The address of that comment.
    pub comment_url: Option<String>,
    /// Whether nobody knows if that comment exists.
    pub comment_unknown: bool,
    /// The journaled working tree.
    pub tree: Option<TreeState>,
    /// The commands that passed in this run, for an effect that publishes its work: they prove it again on another base.
    pub gates: Vec<ExecCommand>,
    /// Those of them that have to pass on the final files, because files changed after they passed last; empty if none did.
    pub deciding: Vec<Str>,
    /// Whether no gate has seen the final files: somebody edited them after the run ended, or a step without a gate did.
    pub is_edited: bool,
}

/// A poll of a part of the verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeCommand {
    pub id: CommandId,
    /// The path of the part.
    pub condition: Str,
    /// The subject.
    pub probe: Probe,
}

/// The subject of a poll.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// A resource.
    Poll {
        /// The wanted state.
        poll: Poll,
        /// The value that identifies the resource.
        which: BlobRef,
    },
    /// The result of a program of the definition.
    Handler {
        /// The program.
        handler: Handler,
        /// Its input.
        about: HandlerInput,
    },
}

/// The state of a run, as the input of a completion handler.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HandlerInput {
    /// The step whose visit ended.
    pub step: Str,
    /// The number of its visit.
    pub visit: u32,
    /// The number of the iteration.
    pub iteration: u32,
    /// The last answer.
    pub answer: Option<LastAnswer>,
    /// The handoff values.
    pub handoffs: Vec<HandoffEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastAnswer {
    /// The structured answer, when it came apart from the text.
    pub output: Option<BlobRef>,
    pub text: Option<BlobRef>,
}

/// A handoff value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffEntry {
    pub step: Str,
    pub key: Str,
    /// The value: text as it is, everything else as JSON.
    pub value: BlobRef,
}
