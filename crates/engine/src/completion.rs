//! Completions: the inputs of a decision, such as answers, finished commands, and requests of a person.

use cuegate_ask::{AskLimit, FaultClass, Usage};
use cuegate_flow::{Str, model::BlobRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    agents::{AgentPlan, AskDelivery},
    budget::Budget,
    command::CommandId,
    effect::Delay,
    event_types::{AdoptedDefinition, RunForked, RunStarted, SourceBlob, ToolCall},
    place::RunMoved,
    place::TreeState,
    recorded_completion::{read_json_text, write_json_text},
    system::ReadResult,
};

/// The time of a decision. An `i64` converts to the moment of a run without a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// The time, in milliseconds since 1970.
    pub at_ms: i64,
    /// How long the run was driven since its last record, in milliseconds, by a clock that stands still while the
    /// machine sleeps.
    pub driven_ms: u64,
}

impl From<i64> for Moment {
    fn from(at_ms: i64) -> Moment {
        Moment { at_ms, driven_ms: 0 }
    }
}

/// An input of a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// The run starts.
    Start(Box<Start>),
    /// An agent answered.
    Answered {
        ask: CommandId,
        answer: Box<Answer>,
        /// The working tree afterwards; `None` if it cannot have changed.
        seen: Option<TreeChange>,
    },
    /// An ask failed.
    Faulted {
        ask: CommandId,
        fault: Fault,
        /// The working tree afterwards; `None` if it cannot have changed.
        seen: Option<TreeChange>,
    },
    /// A started ask was cut off before it answered, by a crash or an interruption.
    Cut {
        ask: CommandId,
        /// What its output reports, and an estimate of the message that was being written.
        usage: Usage,
        /// Whether it used an unknown amount.
        usage_unknown: bool,
        /// Whether it had added messages to a session that other asks continue.
        spoilt: bool,
        /// The tools that the agent used.
        #[serde(default)]
        tools: Tools,
    },
    /// A validator or gate command ended.
    Executed {
        /// The command.
        id: CommandId,
        /// How it ended.
        exec: ExecResult,
        /// The working tree afterwards; `None` if it cannot have changed.
        seen: Option<TreeChange>,
    },
    /// What a step reads was read, or could not be.
    Read { id: CommandId, result: ReadResult },
    /// An effect was tried.
    Acted {
        /// The effect.
        id: CommandId,
        /// The number of the try.
        attempt: u32,
        result: EffectResult,
        /// The duration in milliseconds.
        duration_ms: u64,
        /// The working tree afterwards; `None` if it cannot have changed.
        seen: Option<TreeChange>,
    },
    /// A person settled an effect that failed, or whose result was unknown.
    Settled {
        /// The effect.
        id: CommandId,
        /// The address of what it did; `None`: try it again.
        url: Option<String>,
    },
    /// A part of the verdict was polled.
    Probed {
        /// The poll.
        id: CommandId,
        /// Its result.
        look: ProbeResult,
    },
    PersonAnswered {
        text: String,
        /// The working tree as it was found.
        found: Option<TreeState>,
    },
    /// The run was interrupted.
    Interrupted {
        /// The working tree after running commands were stopped.
        seen: Option<TreeChange>,
    },
    /// The run was cancelled.
    Cancelled {
        /// The working tree after running commands were stopped.
        seen: Option<TreeChange>,
    },
    /// Time passed while a command is running. Sent regularly, so that a kill loses little of it.
    TimePassed,
    /// The time limit of the run is used up, and running commands were stopped.
    OutOfTime {
        /// The working tree afterwards.
        seen: Option<TreeChange>,
    },
    /// The sandbox denied access to a host.
    SandboxDenied {
        /// The command inside the sandbox.
        by: CommandId,
        /// The host with its port.
        to: String,
        /// The reason.
        why: String,
    },
    /// The run is resumed.
    Resumed(Box<ResumeSettings>),
    /// The run goes on from here as another one.
    Forked(Box<RunForked>),
}

/// The start of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Its first event.
    pub started: RunStarted,
}

/// The changed settings of a resumed run; `None` = unchanged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResumeSettings {
    /// The iteration limit.
    pub iterations_max: Option<u32>,
    /// The repair limit.
    pub repairs_max: Option<u32>,
    pub provider: Option<String>,
    /// The script of the scripted provider.
    pub script: Option<SourceBlob>,
    pub model: Option<String>,
    /// The agents beside the usual one.
    pub agents: Option<AgentPlan>,
    /// The longest wait for a rate limit of the provider, in milliseconds.
    pub wait_max_ms: Option<u64>,
    /// Whether a subscription pays, so that costs are notional.
    pub notional: Option<bool>,
    pub budget: Option<Budget>,
    /// Whether the run continues without the sandbox that it ran in.
    pub unsandboxed: bool,
    /// The settings, if changed ones are adopted.
    pub settings: Option<BlobRef>,
    /// Whether all conversations are started anew.
    pub new_sessions: bool,
    /// Where it goes on, if elsewhere.
    pub moved: Option<Box<RunMoved>>,
    /// What is known of the commands that were in progress on the machine that it leaves. In the same record: a run that
    /// has moved never starts one of them again as if nobody had.
    pub lost: Vec<Completion>,
    /// The working tree as it was found, and its differences from the journaled one.
    pub found: Option<TreeChange>,
    /// The worktree of the run after it was put back, if files that a person changed since the interruption stayed.
    pub kept: Option<TreeChange>,
    /// Continues a run that failed or was aborted.
    pub retry: Option<Retry>,
    /// The edited definition, if it is adopted. Decide with its flow from this completion on.
    pub definition: Option<Box<AdoptedDefinition>>,
}

/// How a run continues that failed or was aborted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Retry {
    /// The step to enter; `None` = the last one that was entered.
    pub from: Option<Str>,
    /// What a person adds to the prompt of that step.
    pub note: Option<BlobRef>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The structured answer, if the provider returns it separately from the text.
    #[serde(serialize_with = "write_json_text", deserialize_with = "read_json_text")]
    pub output: Option<Value>,
    pub text: String,
    pub usage: Usage,
    pub provider: String,
    pub model: Option<String>,
    /// What the agent said of itself at the start.
    pub handshake: Option<String>,
    /// The provider's id of the session after the answer.
    pub session: Option<String>,
    /// The usage of the whole session, if the provider reports totals.
    pub totals: Option<Usage>,
    /// How the schema and the session were passed to the provider.
    pub put: Option<AskDelivery>,
    /// The provider's receipt, which it needs to resume.
    pub receipt: Option<String>,
    /// Why the agent cannot proceed, if it says so.
    pub blocked: Option<String>,
    /// The question of the agent to a person, if it asks one.
    pub asks_person: Option<String>,
    /// The exact prompt, as a stored blob.
    pub prompt: Option<BlobRef>,
    /// The exact system prompt, as a stored blob.
    pub system_prompt: Option<BlobRef>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The tools that the agent used.
    pub tools: Tools,
}

/// The tools that an agent used in an ask.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tools {
    /// The uses in their order.
    pub calls: Vec<ToolCall>,
    /// The number of further uses, which are not kept.
    pub more: u64,
}

/// The working tree after a command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeChange {
    pub tree: TreeState,
    /// The paths that differ from the tree before it.
    pub changed: Vec<String>,
    /// The new files among them that a read-only step is allowed to leave.
    pub spared: Vec<String>,
    /// Whether the changes cannot come from the command, because its tree was read-only: a person, an editor or another
    /// program made them.
    pub by_others: bool,
    /// What the repository needs and no longer has: `HEAD`, the objects of a commit, `.git`.
    pub lost: Vec<String>,
    /// What agents changed in their git folder and the run does not take over, in words.
    pub left_in_git: Vec<String>,
    /// What snapshots of the working tree leave out, in words, as far as it was not told before.
    pub gaps: Vec<String>,
    /// What was changed in the repository of the user that no command may change, in words. It was put back.
    pub trespassed: Vec<String>,
    /// The changes of the main checkout, if the run works in a worktree of its own.
    pub outside: OutsideWrites,
}

impl Completion {
    /// The command whose result it is; `None` for what nobody asked for.
    pub fn command(&self) -> Option<CommandId> {
        match self {
            Completion::Answered { ask: id, .. }
            | Completion::Faulted { ask: id, .. }
            | Completion::Cut { ask: id, .. }
            | Completion::Executed { id, .. }
            | Completion::Read { id, .. }
            | Completion::Acted { id, .. }
            | Completion::Probed { id, .. } => Some(*id),
            Completion::Start(_)
            | Completion::Settled { .. }
            | Completion::PersonAnswered { .. }
            | Completion::Interrupted { .. }
            | Completion::Cancelled { .. }
            | Completion::TimePassed
            | Completion::OutOfTime { .. }
            | Completion::SandboxDenied { .. }
            | Completion::Resumed(_)
            | Completion::Forked(_) => None,
        }
    }

    /// The same result of another command.
    #[must_use]
    pub fn for_command(mut self, command: CommandId) -> Completion {
        match &mut self {
            Completion::Answered { ask: id, .. }
            | Completion::Faulted { ask: id, .. }
            | Completion::Cut { ask: id, .. }
            | Completion::Executed { id, .. }
            | Completion::Read { id, .. }
            | Completion::Acted { id, .. }
            | Completion::Probed { id, .. } => *id = command,
            _ => {}
        }
        self
    }

    /// The working tree afterwards.
    pub fn seen(&self) -> Option<&TreeChange> {
        match self {
            Completion::Answered { seen, .. }
            | Completion::Faulted { seen, .. }
            | Completion::Executed { seen, .. }
            | Completion::Acted { seen, .. }
            | Completion::Interrupted { seen }
            | Completion::Cancelled { seen }
            | Completion::OutOfTime { seen } => seen.as_ref(),
            Completion::Probed { look, .. } => look.seen.as_ref(),
            Completion::Start(_)
            | Completion::Cut { .. }
            | Completion::Read { .. }
            | Completion::Settled { .. }
            | Completion::PersonAnswered { .. }
            | Completion::TimePassed
            | Completion::SandboxDenied { .. }
            | Completion::Forked(_) => None,
            Completion::Resumed(resume) => resume.found.as_ref(),
        }
    }

    /// The states of the working tree that it reports, in their order.
    pub fn tree_states_mut(&mut self) -> Vec<&mut TreeState> {
        let states: [Option<&mut TreeState>; 2] = match self {
            Completion::Start(start) => [start.started.tree.as_mut(), None],
            Completion::Answered { seen, .. }
            | Completion::Faulted { seen, .. }
            | Completion::Executed { seen, .. }
            | Completion::Acted { seen, .. }
            | Completion::Interrupted { seen }
            | Completion::Cancelled { seen }
            | Completion::OutOfTime { seen } => [seen.as_mut().map(|seen| &mut seen.tree), None],
            Completion::Probed { look, .. } => [look.seen.as_mut().map(|seen| &mut seen.tree), None],
            Completion::PersonAnswered { found, .. } => [found.as_mut(), None],
            Completion::Forked(fork) => [fork.tree.as_mut(), None],
            Completion::Resumed(resume) => {
                [&mut resume.found, &mut resume.kept].map(|seen| seen.as_mut().map(|seen| &mut seen.tree))
            }
            Completion::Cut { .. }
            | Completion::Read { .. }
            | Completion::Settled { .. }
            | Completion::TimePassed
            | Completion::SandboxDenied { .. } => [None, None],
        };
        states.into_iter().flatten().collect()
    }
}

/// Files of the main checkout that changed during an ask. Absolute paths.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OutsideWrites {
    /// Those that a tool call of the agent writes.
    pub by_agent: Vec<String>,
    /// The others: a person or another program may have changed them.
    pub by_others: Vec<String>,
    /// The number of further files of either kind.
    pub more: u64,
}

/// A failed ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    pub class: FaultClass,
    pub message: String,
    /// The delay in milliseconds after which the service allows a retry, if it states one.
    pub resets_in_ms: Option<u64>,
    /// The usage despite the failure.
    pub usage: Usage,
    /// Whether the true usage is higher by an unknown amount.
    pub usage_unknown: bool,
    /// Whether the ask continued a conversation, which a retry can do without.
    pub continued: bool,
    /// The provider's receipt, which it needs to resume.
    pub receipt: Option<String>,
    /// The tools that the agent used.
    #[serde(default)]
    pub tools: Tools,
    /// The limit of the ask that was reached, if the class is [`FaultClass::OverCap`] and the provider knows it.
    pub limit: Option<AskLimit>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecResult {
    pub exit: Exit,
    /// What it printed.
    pub stdout: String,
    /// What it printed to standard error.
    pub stderr: String,
    /// The duration in milliseconds.
    pub duration_ms: u64,
}

/// What a look at the verdict of a run saw.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeResult {
    /// Whether it holds.
    pub holds: bool,
    /// Whether it could not be looked at all.
    pub failed: bool,
    /// What was seen, in words.
    pub said: String,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The working tree afterwards; `None` if it cannot have changed.
    pub seen: Option<TreeChange>,
}

/// How a command's process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed after its time.
    TimedOut,
    /// It was killed for printing too much.
    TooMuchOutput,
    /// It could not be started.
    NotStarted(String),
}

impl Exit {
    /// The exit code, when it ended by itself.
    pub fn code(&self) -> Option<i32> {
        match self {
            Exit::Code(code) => Some(*code),
            _ => None,
        }
    }

    /// In words.
    pub fn describe(&self, timeout_ms: u64) -> String {
        match self {
            Exit::Code(code) => format!("exit {code}"),
            Exit::Signal(signal) => format!("killed by signal {signal}"),
            Exit::TimedOut => format!("timed out after {} s", timeout_ms.div_ceil(1000)),
            Exit::TooMuchOutput => "stopped for printing too much".to_owned(),
            Exit::NotStarted(why) => format!("could not be started: {why}"),
        }
    }
}

/// The result of a try of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectResult {
    /// Its program ended.
    Ran(ExecResult),
    /// Its program was cut off, so nobody knows what it did. The output until then.
    CutOff {
        /// What it printed to standard output.
        stdout: String,
        /// What it printed to standard error.
        stderr: String,
    },
    /// It is done.
    Done {
        /// What was done.
        said: String,
        /// The address of what was created.
        url: Option<String>,
    },
    /// It made something that has a number.
    Created {
        /// What was done.
        said: String,
        url: Option<String>,
        number: u64,
    },
    /// It met conflicts, and changed nothing.
    Conflicted {
        /// Where.
        said: String,
        /// The files with conflicts, as JSON: a list of objects with `path` and `text`.
        files: String,
    },
    /// It is not done and cannot be.
    Failed {
        /// The reason, for people.
        said: String,
    },
    /// It may succeed later.
    Later {
        /// The reason.
        delay: Delay,
        /// What happened.
        why: String,
        /// The time to wait that the server asks for, in milliseconds.
        after_ms: Option<u64>,
    },
}
