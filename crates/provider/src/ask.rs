//! What is asked, what comes back, and the trait between.

use std::{ffi::OsString, future::Future, path::PathBuf, pin::Pin, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Needs;

/// What an ask is for. Scripts and prices tell these apart; agents do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The work of a step.
    Work,
    /// A report that a step owes.
    Report,
    /// A decision between outcomes.
    Judge,
    /// A check of another step's work.
    Check,
    /// A second try after an answer that could not be used.
    Repair,
    /// Work after a failed validator.
    Remedy,
}

/// How much the agent may do, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Permission {
    /// Reads only.
    Plan,
    /// Asks before each action; with nobody there, writing is denied.
    Default,
    /// Edits files.
    AcceptEdits,
    /// Everything.
    BypassPermissions,
}

/// What a provider can do. It decides how an ask is put, never whether its answer is validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// It makes the agent answer by a JSON Schema.
    pub schema: bool,
    /// It can continue a conversation.
    pub sessions: bool,
    /// It can branch off from an earlier point of a conversation.
    pub fork: bool,
    /// It has a system prompt apart from the prompt.
    pub system_prompt: bool,
    /// It can restrict which tools exist.
    pub tools: bool,
    /// It reports what an ask cost.
    pub cost: bool,
    /// Its agent has tools, so an ask can change files.
    pub edits: bool,
    /// It tells what is used up while it works, so that a runaway ask can be cut at its cap.
    pub progress: bool,
}

/// A conversation to continue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The provider's name for it.
    pub id: String,
    /// Branch off instead of adding to it: an ask that is cut then leaves the conversation as it was.
    pub fork: bool,
    /// What the provider had reported for the whole conversation at this point ([`Answer::totals`]): where a program
    /// reports totals, an ask's own share is what is beyond them.
    pub totals: Option<Usage>,
}

/// The most that one ask may use up; `None` = no bound. Passed on to programs that can keep to it, watched by the
/// caller where the program tells what it uses.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cap {
    /// US dollars.
    pub usd: Option<f64>,
    /// Tokens, read and written ones together.
    pub tokens: Option<u64>,
}

/// One ask, complete: a provider needs nothing else to put it.
#[derive(Debug, Clone)]
pub struct Request {
    /// Unique over all runs; the same for the same ask after a crash.
    pub id: String,
    /// The step, by name.
    pub step: String,
    /// The persona, when the step has one, by its key.
    pub persona: Option<String>,
    /// Other names that the persona goes by: what its file is called.
    pub persona_names: Vec<String>,
    /// What the ask is for.
    pub kind: Kind,
    /// What the agent is told.
    pub prompt: String,
    /// What it is told before everything else.
    pub system: Option<String>,
    /// What its answer must look like.
    pub schema: Option<Value>,
    /// The model, by the provider's name for it.
    pub model: Option<String>,
    /// The conversation to continue; `None` begins one.
    pub session: Option<Session>,
    /// How much it may do.
    pub permission: Permission,
    /// The tools it may use; `None` = all.
    pub tools: Option<Vec<String>>,
    /// The folder it works in.
    pub work: PathBuf,
    /// Folders outside of that one that it may read.
    pub readable: Vec<PathBuf>,
    /// After how many milliseconds it is stopped.
    pub timeout_ms: u64,
    /// The most it may use up.
    pub cap: Cap,
    /// Nobody answers questions: a tool by which the agent asks a person is taken away from it.
    pub unattended: bool,
    /// A folder of this ask alone, for files that the program reads: see [`Launch::files`].
    pub scratch: PathBuf,
}

/// Something an agent did, as it happens. For eyes and logs, never for decisions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "activity", rename_all = "snake_case")]
pub enum Activity {
    /// It said something.
    Text {
        /// What.
        text: String,
    },
    /// It used a tool.
    Tool {
        /// Which.
        name: String,
        /// On what: a path, a command.
        target: String,
    },
    /// It was denied a tool: the ask's permission, or its list of tools, does not cover it.
    Denied {
        /// Which.
        name: String,
        /// On what, or why.
        target: String,
    },
    /// It used up so much since the last such event.
    Usage(Usage),
    /// The provider's program says that it tries again by itself.
    Retry {
        /// Why.
        reason: String,
    },
}

/// What an ask used up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    #[serde(default)]
    pub input_tokens: u64,
    /// Those of them that came from a cache, which are cheaper.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// Tokens written.
    #[serde(default)]
    pub output_tokens: u64,
    /// Money in US dollars; `None` = not known, which is not zero.
    #[serde(default)]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Both together. The money is not known when one of them is not.
    #[must_use]
    pub fn plus(&self, other: &Usage) -> Usage {
        self.with(other, u64::saturating_add, |a, b| a + b)
    }

    /// What is left without the other one, never less than nothing.
    #[must_use]
    pub fn minus(&self, other: &Usage) -> Usage {
        self.with(other, u64::saturating_sub, |a, b| (a - b).max(0.0))
    }

    /// The larger one of each number.
    #[must_use]
    pub fn max(&self, other: &Usage) -> Usage {
        self.with(other, u64::max, f64::max)
    }

    /// An ask's share of what a program reports for a whole conversation, given what it had reported before.
    ///
    /// A program whose sum is less than before has begun to count anew: then all of it is the ask's.
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
        }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The structured answer, when the provider gives one apart from the text.
    pub output: Option<Value>,
    /// The text.
    pub text: String,
    /// What it used up, this ask alone.
    pub usage: Usage,
    /// The conversation as it is now.
    pub session: Option<String>,
    /// What the program reports for the whole conversation, where it reports totals.
    pub totals: Option<Usage>,
    /// The model that answered.
    pub model: Option<String>,
    /// Whether files of the working tree can have changed. `false` only where the provider knows.
    pub edited: bool,
    /// The agent says that it cannot proceed, and why.
    pub blocked: Option<String>,
    /// The agent asks a person, and what.
    pub asks_person: Option<String>,
    /// The provider's own mark of this answer. It is journaled and handed back on resume.
    pub receipt: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultClass {
    /// Too many requests; a later one may pass.
    RateLimited,
    /// The service is too busy; a later one may pass.
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
    /// The script has no answer left for this ask.
    ScriptExhausted,
    /// The agent touched what it must not.
    Violation,
    /// It reached its cap of money, tokens or turns.
    OverCap,
}

/// An ask without an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What kind of fault.
    pub class: FaultClass,
    /// What happened, for people.
    pub message: String,
    /// In how many milliseconds it may be tried again, when the service says so.
    pub resets_in_ms: Option<u64>,
    /// What it used up nevertheless, as far as that is known.
    pub usage: Usage,
    /// It used up more than [`Fault::usage`] says, and nobody knows how much: the agent had begun to work, and what that
    /// took was not reported.
    #[serde(default)]
    pub usage_unknown: bool,
    /// As in [`Answer::receipt`].
    pub receipt: Option<String>,
}

impl Fault {
    /// A fault that used nothing up.
    pub fn new(class: FaultClass, message: impl Into<String>) -> Fault {
        Fault {
            class,
            message: message.into(),
            resets_in_ms: None,
            usage: Usage::default(),
            usage_unknown: false,
            receipt: None,
        }
    }
}

/// A program to start for an ask. The caller starts it, keeps its output and ends it.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment on top of the caller's.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads from standard input.
    pub stdin: Vec<u8>,
    /// Files to write into [`Request::scratch`] before it starts, by name.
    pub files: Vec<(String, Vec<u8>)>,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Exit(i32),
    /// A signal ended it.
    Signal(i32),
    /// It could not be started.
    NotStarted(String),
    /// It was stopped because it took too long.
    TimedOut,
    /// It was stopped because it wrote too much.
    TooMuchOutput,
}

/// Makes an answer out of a program's output: line by line as it comes, or all at once after a crash of ours.
pub trait AnswerReader: Send {
    /// Reads a line of standard output, without its line end.
    fn line(&mut self, line: &[u8]) -> Vec<Activity>;

    /// Reads how it ended, and says what came of it.
    ///
    /// # Errors
    /// With the fault, when no answer came of it.
    fn end(self: Box<Self>, ended: Ended, stderr: &[u8]) -> Result<Answer, Fault>;
}

/// An answer that is made in this process.
pub type Local = Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send>>;

/// An ask, ready to be put.
pub enum Prepared {
    /// By a program.
    Process {
        /// What to start.
        launch: Launch,
        /// What reads its output.
        reader: Box<dyn AnswerReader>,
    },
    /// In this process. Dropping the future cancels it.
    Local(Local),
}

/// A way to ask agents.
///
/// Shaped by what the agent programs of 2026 can do: they are started with one prompt, stream JSON lines, and
/// end with a result whose status has to be read from several places at once. That is why a provider only
/// says what to start and how to read it: starting, spooling, limiting and ending is one code for all.
pub trait Provider: Send + Sync {
    /// Its name, as `--provider` takes it.
    fn name(&self) -> &'static str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Whether it makes the agent answer by this schema. Where it does not the caller says the schema in the prompt.
    fn holds(&self, _schema: &Value) -> bool {
        self.capabilities().schema
    }

    /// Whether the cost of an ask with this model will be known; `None` = its default model.
    fn is_priced(&self, _model: Option<&str>) -> bool {
        self.capabilities().cost
    }

    /// The provider's name for a model that a definition names (`opus`, `sonnet`, `haiku`, or a full name). `None` when
    /// it has none: then the user has to map it.
    fn model(&self, name: &str) -> Option<String>;

    /// Whether it can work here: looks for its program, its version and its login, and asks nobody outside.
    fn inspect(&self) -> Inspection;

    /// Whose agent settings it loads, in words, for the start of a run.
    fn loads(&self) -> String;

    /// What its program needs of this machine and of the network, where it is started behind a sandbox.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The same provider for asks that are put behind a sandbox, where it puts them in another way there.
    fn in_sandbox(&self) -> Option<Shared> {
        None
    }

    /// Whether its agent may change files in this ask: behind a sandbox it is let.
    fn writes(&self, request: &Request) -> bool {
        request.permission >= Permission::AcceptEdits
    }

    /// Told once, before the first ask, which receipts a run has already journaled.
    fn restore(&self, receipts: &[String]);

    /// Gets an ask ready.
    ///
    /// # Errors
    /// With the fault, when it cannot even be put.
    fn prepare(&self, request: &Request) -> Result<Prepared, Fault>;
}

/// What a provider found when it looked whether it can work here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// Its program, or the address it asks.
    pub at: Option<String>,
    /// The program's version.
    pub version: Option<String>,
    /// As whom it would ask.
    pub login: Login,
    /// The model that it asks when none is named.
    pub model: Option<String>,
    /// What keeps it from working.
    pub problems: Vec<Problem>,
}

/// Something that keeps a provider from working.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: String,
    /// What an ask would fail with.
    pub class: FaultClass,
}

/// As whom a provider asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Login {
    /// Nobody: it needs no login.
    #[default]
    NotNeeded,
    /// With the key in this environment variable, which is paid by use.
    Key(String),
    /// With a subscription: what a token costs is notional.
    Subscription,
    /// Through a cloud's service, by its name.
    Cloud(String),
    /// It has a login, nobody can say of which kind.
    Unknown,
    /// It needs one and has none.
    Missing,
}

/// Providers are shared between concurrent asks.
pub type Shared = Arc<dyn Provider>;
