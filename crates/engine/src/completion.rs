//! What the world answered.

use cuegate_flow::model::BlobRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    budget::Budget,
    command::CommandId,
    event_types::{Put, SourceBlob, Started, TreeState, Usage},
};

/// When something is decided. A moment alone (`i64`) is one of a run whose time nobody counts.
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

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Completion {
    /// Somebody starts the run.
    Start(Box<Start>),
    /// An agent answered.
    Answered {
        /// The ask.
        ask: CommandId,
        /// The answer.
        answer: Box<Answer>,
        /// The tree afterwards, when it can have changed.
        seen: Option<Seen>,
    },
    /// An ask found no answer.
    Faulted {
        /// The ask.
        ask: CommandId,
        /// The fault.
        fault: Fault,
        /// The tree afterwards, when it can have changed.
        seen: Option<Seen>,
    },
    /// An ask had begun, and was cut off before it answered: by a crash, or by an interruption.
    Cut {
        /// The ask.
        ask: CommandId,
        /// What it was seen to use up.
        usage: Usage,
        /// Whether it had added to a conversation that others continue.
        spoilt: bool,
    },
    /// A command ended.
    Executed {
        /// The command.
        id: CommandId,
        /// How.
        exec: Exec,
        /// The tree afterwards, when it can have changed.
        seen: Option<Seen>,
    },
    /// A program acted on what an agent asked for.
    Acted {
        /// The effect.
        id: CommandId,
        /// How it ended.
        exec: Exec,
        /// The tree afterwards, when it can have changed.
        seen: Option<Seen>,
    },
    /// Somebody looked whether the run is done.
    Probed {
        /// The look.
        id: CommandId,
        /// What was seen.
        look: Look,
    },
    /// A person answered.
    PersonAnswered {
        /// What.
        text: String,
        /// The tree as it was found.
        found: Option<TreeState>,
    },
    /// Somebody interrupted the run.
    Interrupted {
        /// The tree, after what was at work there had been stopped.
        seen: Option<Seen>,
    },
    /// Somebody cancelled the run.
    Cancelled {
        /// The tree, after what was at work there had been stopped.
        seen: Option<Seen>,
    },
    /// Time passed while something was at work: told now and then, so that a kill loses little of it.
    TimePassed,
    /// The time of the run is used up; what was at work has been stopped.
    OutOfTime {
        /// The tree, after that.
        seen: Option<Seen>,
    },
    /// The sandbox kept somebody behind it from reaching something.
    SandboxDenied {
        /// The ask, or what else is at work.
        by: CommandId,
        /// What: a host with its port.
        to: String,
        /// Why.
        why: String,
    },
    /// Somebody continues the run.
    Resumed(Box<Resume>),
}

/// What a run is started with.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The facts.
    pub started: Started,
}

/// What a run is continued with; `None` = as before.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resume {
    /// Another limit of iterations.
    pub iterations_max: Option<u32>,
    /// Another limit of repairs.
    pub repairs_max: Option<u32>,
    /// Another provider.
    pub provider: Option<String>,
    /// Another script.
    pub script: Option<SourceBlob>,
    /// Another model.
    pub model: Option<String>,
    /// How long a limit of the provider is waited for, in milliseconds.
    pub wait_max_ms: Option<u64>,
    /// Whether a subscription pays.
    pub notional: Option<bool>,
    /// Limits in place of the run's own.
    pub budget: Option<Budget>,
    /// Without the sandbox that the definition demands.
    pub unsandboxed: bool,
    /// The tree as it was found, and what differs from the one that the run stood on.
    pub found: Option<Seen>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// The structured answer, when it came apart from the text.
    pub output: Option<Value>,
    /// The text.
    pub text: String,
    /// What it used up.
    pub usage: Usage,
    /// Who answered.
    pub provider: String,
    /// With which model.
    pub model: Option<String>,
    /// The conversation as it is now.
    pub session: Option<String>,
    /// What the provider reports for the whole conversation, where it reports totals.
    pub totals: Option<Usage>,
    /// How it was put.
    pub put: Option<Put>,
    /// The provider's mark.
    pub receipt: Option<String>,
    /// The agent says that it cannot proceed, and why.
    pub blocked: Option<String>,
    /// The agent asks a person, and what.
    pub asks_person: Option<String>,
    /// The exact prompt, stored.
    pub prompt: Option<BlobRef>,
    /// The exact system prompt, stored.
    pub system_prompt: Option<BlobRef>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// The tree after something was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// The tree.
    pub tree: TreeState,
    /// Paths that differ from the tree before.
    pub changed: Vec<String>,
    /// Those of them that are new files, where steps that may not write may leave new ones.
    pub spared: Vec<String>,
}

/// An ask without an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What kind.
    pub class: FaultClass,
    /// What happened.
    pub message: String,
    /// In how many milliseconds it may be tried again, when the service says so.
    pub resets_in_ms: Option<u64>,
    /// What it used up nevertheless.
    pub usage: Usage,
    /// Whether it used up more than that, and nobody knows how much.
    pub usage_unknown: bool,
    /// The provider's mark.
    pub receipt: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultClass {
    /// Too many requests.
    RateLimited,
    /// The service is too busy.
    Overloaded,
    /// The key or login is not accepted.
    Auth,
    /// The service refuses this content.
    Refused,
    /// The conversation no longer fits.
    ContextOverflow,
    /// The program ended without an answer.
    Crashed,
    /// It took longer than it may.
    Timeout,
    /// What came back cannot be read.
    Malformed,
    /// The service does not know the model.
    UnknownModel,
    /// The program is not there or too old.
    MissingProgram,
    /// The script has no answer left.
    ScriptExhausted,
    /// The agent touched what it must not.
    Violation,
    /// It reached its cap of money, tokens or turns.
    OverCap,
}

impl FaultClass {
    /// Whether nobody knows what such an ask used up: then it is settled at its share of the budget.
    pub fn costs_unknown(self) -> bool {
        use FaultClass::{Crashed, Malformed, OverCap, Timeout};
        matches!(self, Crashed | Malformed | OverCap | Timeout)
    }

    /// The word that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            FaultClass::RateLimited => "rate_limited",
            FaultClass::Overloaded => "overloaded",
            FaultClass::Auth => "auth",
            FaultClass::Refused => "refused",
            FaultClass::ContextOverflow => "context_overflow",
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

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// The exit.
    pub exit: Exit,
    /// What it printed.
    pub stdout: String,
    /// What it printed to standard error.
    pub stderr: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// What a look at the verdict of a run saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look {
    /// Whether it holds.
    pub holds: bool,
    /// Whether it could not be looked at all.
    pub failed: bool,
    /// What was seen, in words.
    pub said: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The tree afterwards, when it can have changed.
    pub seen: Option<Seen>,
}

/// How a command's process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
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
