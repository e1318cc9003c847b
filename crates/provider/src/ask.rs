//! Requests to agents, their answers and faults, and the [`Provider`] trait.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use cuegate_ask::{AskKind, AskLimit, FaultClass, McpServer, Permission, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::SandboxNeeds;

/// What a provider supports. This decides how an ask is sent; every answer is validated regardless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// It can constrain the answer to a JSON Schema.
    pub schema: bool,
    /// It can continue a session.
    pub sessions: bool,
    /// It can fork a session.
    pub fork: bool,
    /// It takes a system prompt separate from the prompt.
    pub system_prompt: bool,
    /// It can restrict the agent's tools.
    pub tools: bool,
    /// It reports the cost of an ask.
    pub cost: bool,
    /// Its agent has tools, so an ask can change files.
    pub edits: bool,
    /// It reports usage while the ask runs, so that the caller can stop the ask at its cap.
    pub progress: bool,
}

/// A session to continue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The provider's session id.
    pub id: String,
    /// Fork the session instead of appending to it, so that an interrupted ask leaves the session unchanged.
    pub fork: bool,
    /// The usage of the whole session so far ([`Answer::totals`]). Where a program reports session totals, the usage of
    /// one ask is the difference.
    pub totals: Option<Usage>,
}

/// The limits of one ask; `None` = unlimited. Programs that support limits receive them; otherwise the caller
/// enforces them from the usage that the program reports.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cap {
    /// US dollars.
    pub usd: Option<f64>,
    /// Input and output tokens together.
    pub tokens: Option<u64>,
}

/// Everything a provider needs for one ask.
#[derive(Debug, Clone)]
pub struct Request {
    /// Unique across runs. A retry of the same ask after a crash has the same id.
    pub id: String,
    /// The name of the step.
    pub step: String,
    /// The step that it is for, of a judge, which is a step of its own.
    pub subject: Option<String>,
    /// The key of the step's persona, if it has one.
    pub persona: Option<String>,
    /// Aliases of the persona: its file name.
    pub persona_names: Vec<String>,
    /// The purpose of the ask.
    pub kind: AskKind,
    /// The prompt.
    pub prompt: String,
    /// The system prompt.
    pub system: Option<String>,
    /// The JSON Schema of the answer.
    pub schema: Option<Value>,
    /// The provider's name of the model.
    pub model: Option<String>,
    /// How much the model thinks, as the agent names it.
    pub effort: Option<String>,
    /// The session to continue; `None` starts a new one.
    pub session: Option<Session>,
    /// The agent's permission.
    pub permission: Permission,
    /// The tools the agent may use; `None` = all.
    pub tools: Option<Vec<String>>,
    /// The servers whose tools the agent gets.
    pub tool_servers: Vec<McpServer>,
    /// The working directory.
    pub work: PathBuf,
    /// Further folders the agent may read.
    pub readable: Vec<PathBuf>,
    /// The timeout in milliseconds.
    pub timeout_ms: u64,
    /// The usage limits.
    pub cap: Cap,
    /// No person can answer questions, so the agent does not get the tool that asks one.
    pub unattended: bool,
    /// A folder private to this ask, for files that the program reads; see [`Launch::files`].
    pub scratch: PathBuf,
}

/// Something the agent did, reported as it happens. For display and the journal; the engine never decides by it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "activity", rename_all = "snake_case")]
pub enum Activity {
    /// The agent wrote text.
    Text {
        /// The text.
        text: String,
    },
    /// The agent used a tool.
    Tool {
        /// The id of this use, which is unique in the ask; empty if the program reports none.
        #[serde(default)]
        id: String,
        /// The name of the tool.
        name: String,
        /// The tool's target: a path or a command.
        target: String,
    },
    /// The use of a tool ended.
    ToolEnded {
        /// The id of the use.
        #[serde(default)]
        id: String,
        /// Whether it failed.
        failed: bool,
        /// Its output, or the reason of the failure.
        output: String,
    },
    /// A tool was denied because the ask's permission or list of tools does not cover it.
    Denied {
        /// The id of the use.
        #[serde(default)]
        id: String,
        /// The name of the tool.
        name: String,
        /// The tool's target, or the reason.
        target: String,
    },
    /// Usage since the last event of this kind.
    Usage(Usage),
    /// The agent program retries by itself.
    Retry {
        /// The reason.
        reason: String,
    },
}

/// The answer to an ask.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The structured answer, if the provider returns one separately from the text.
    pub output: Option<Value>,
    /// The text.
    pub text: String,
    /// The usage of this ask alone.
    pub usage: Usage,
    /// The session id after this ask.
    pub session: Option<String>,
    /// The usage of the whole session, if the program reports totals.
    pub totals: Option<Usage>,
    /// The model that answered.
    pub model: Option<String>,
    /// What the agent said of itself at the start: its name, its version, what it can.
    #[serde(default)]
    pub handshake: Option<String>,
    /// Whether files of the working tree may have changed. `false` only if the provider is certain.
    pub edited: bool,
    /// The reason why the agent cannot proceed.
    pub blocked: Option<String>,
    /// The agent's question to a person.
    pub asks_person: Option<String>,
    /// The provider's opaque mark of this answer. The run journals it and passes it to [`Provider::restore`].
    pub receipt: Option<String>,
}

/// Why an ask has no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The class, which decides how the engine reacts.
    pub class: FaultClass,
    /// A message for people.
    pub message: String,
    /// The delay in milliseconds until a retry may succeed, if the service reports one.
    pub resets_in_ms: Option<u64>,
    /// The known usage of the failed ask, with an estimate of the message that was being written.
    pub usage: Usage,
    /// The true usage exceeds [`Fault::usage`] by an unknown amount, because the agent had started to work and that
    /// usage was not reported.
    #[serde(default)]
    pub usage_unknown: bool,
    /// As in [`Answer::receipt`].
    pub receipt: Option<String>,
    /// The limit of the ask that was reached, if the class is [`FaultClass::OverCap`] and it is known.
    #[serde(default)]
    pub limit: Option<AskLimit>,
}

impl Fault {
    /// A fault without usage.
    pub fn new(class: FaultClass, message: impl Into<String>) -> Fault {
        Fault {
            class,
            message: message.into(),
            resets_in_ms: None,
            usage: Usage::default(),
            usage_unknown: false,
            receipt: None,
            limit: None,
        }
    }
}

/// A program to start for an ask. The caller starts it, stores its output and stops it.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment variables in addition to the caller's.
    pub env: Vec<(OsString, OsString)>,
    /// Its standard input.
    pub stdin: Vec<u8>,
    /// Files by name, to write into [`Request::scratch`] before the start.
    pub files: Vec<(String, Vec<u8>)>,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramEnd {
    /// It exited with this code.
    Exit(i32),
    /// A signal killed it.
    Signal(i32),
    /// It could not be started.
    NotStarted(String),
    /// The caller stopped it at the timeout.
    TimedOut,
    /// The caller stopped it at the output limit.
    TooMuchOutput,
}

/// What an ask used that was stopped before its result.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CutUsage {
    /// What the program reported, and an estimate of the message that was being written.
    pub usage: Usage,
    /// Whether the true usage is higher by an unknown amount: the agent worked, and nothing was reported.
    pub unknown: bool,
}

/// Parses a program's output: line by line as it arrives, or all of it when Cuegate resumes after a crash.
pub trait AnswerReader: Send {
    /// Reads one line of standard output, without its line end.
    fn line(&mut self, line: &[u8]) -> Vec<Activity>;

    /// Whether the program waits by itself for something that may never come, such as the network. The caller then
    /// stops it, and [`AnswerReader::end`] returns the fault: only the engine decides how long a run waits.
    fn is_stuck(&self) -> bool {
        false
    }

    /// The usage of an ask that is stopped now, or was stopped after the output read so far.
    fn cut_usage(&self) -> CutUsage;

    /// Finishes with the program's exit and its standard error.
    ///
    /// # Errors
    /// Returns a fault if there is no answer.
    fn end(self: Box<Self>, ended: ProgramEnd, stderr: &[u8]) -> Result<Answer, Fault>;
}

/// An answer computed in this process.
pub type Local = Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send>>;

/// An ask that is ready to start.
pub enum PreparedAsk {
    /// In a separate program.
    Process {
        /// The program to start.
        launch: Launch,
        /// The parser of its output.
        reader: Box<dyn AnswerReader>,
    },
    /// In this process. Dropping the future cancels it.
    Local(Local),
}

/// An agent that can be asked.
///
/// Agent programs are started with one prompt, stream JSON lines, and end with a result whose status must be read from
/// several fields. A provider therefore only describes what to start and how to parse the output; the caller
/// implements starting, spooling, limiting and stopping once for all providers.
pub trait Provider: Send + Sync {
    /// Its name, as in `--provider`.
    fn name(&self) -> &str;

    /// What it supports.
    fn capabilities(&self) -> Capabilities;

    /// Whether it enforces this schema. Otherwise the caller puts the schema into the prompt.
    fn holds(&self, _schema: &Value) -> bool {
        self.capabilities().schema
    }

    /// Whether the cost of an ask with this model will be known; `None` = its default model.
    fn is_priced(&self, _model: Option<&str>) -> bool {
        self.capabilities().cost
    }

    /// Whether it must not be asked without the name of a model.
    fn needs_model(&self) -> bool {
        false
    }

    /// The provider's name for a model that a definition names (`opus`, `sonnet`, `haiku`, or a full name). `None` when
    /// it has none: then the user has to map it.
    fn map_model_name(&self, name: &str) -> Option<String>;

    /// Checks its program, the program's version and the login, without network access beyond this machine.
    fn inspect(&self) -> Inspection;

    /// A request that its service answers for a valid login alone, and that costs nothing. `None` if there is none.
    fn login_request(&self) -> Option<LoginRequest> {
        None
    }

    /// Describes whose agent settings it loads, for the start of a run.
    fn loads(&self) -> String;

    /// The files and services that its program needs inside a sandbox.
    fn needs(&self) -> SandboxNeeds {
        SandboxNeeds::default()
    }

    /// A variant of this provider for asks in a sandbox, if it starts them differently there.
    fn in_sandbox(&self) -> Option<Shared> {
        None
    }

    /// Whether it passes [`Request::effort`] on.
    fn takes_effort(&self) -> bool {
        false
    }

    /// The types of servers whose tools its agent can use, as settings name them. Without any it ignores
    /// [`Request::tool_servers`].
    fn tool_transports(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether the agent may change files in this ask. Decides whether a sandbox allows writes.
    fn writes(&self, request: &Request) -> bool {
        request.permission >= Permission::AcceptEdits
    }

    /// Receives the receipts that the run has already journaled. Called once, before the first ask.
    fn restore(&self, receipts: &[String]);

    /// Removes what its program keeps of these sessions, and of any in a `folder` that is gone. Returns how many files went.
    fn remove_sessions(&self, _sessions: &BTreeSet<String>, _folder: Option<&Path>) -> u64 {
        0
    }

    /// Prepares an ask.
    ///
    /// # Errors
    /// Returns a fault if the ask cannot be started.
    fn prepare(&self, request: &Request) -> Result<PreparedAsk, Fault>;
}

/// A GET request that tries a login.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginRequest {
    /// The address.
    pub url: String,
    /// Its headers, with the key.
    pub headers: Vec<(String, String)>,
}

/// The result of [`Provider::inspect`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// The path of its program, or the address of its service.
    pub at: Option<String>,
    /// The program's version.
    pub version: Option<String>,
    /// The login it would use.
    pub login: Login,
    /// The default model.
    pub model: Option<String>,
    /// What prevents it from working.
    pub problems: Vec<Problem>,
}

/// Something that prevents a provider from working.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// How to fix it.
    pub hint: String,
    /// The fault class an ask would fail with.
    pub class: FaultClass,
}

/// The login a provider uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Login {
    /// It needs no login.
    #[default]
    NotNeeded,
    /// The key in this environment variable, billed by usage.
    Key(String),
    /// A subscription: the cost of tokens is notional.
    Subscription,
    /// A cloud service, by name.
    Cloud(String),
    /// It has a login of unknown kind.
    Unknown,
    /// It needs a login and has none.
    Missing,
}

/// A provider shared between concurrent asks.
pub type Shared = Arc<dyn Provider>;
