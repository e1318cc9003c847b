//! What the page and the terminal need of the program: views that need definitions or git, and control.

use std::collections::BTreeMap;

use cuegate_journal::RunId;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Observer;

/// The project whose runs are shown.
pub trait Project: Send + Sync + 'static {
    /// Its runs.
    fn observer(&self) -> &Observer;

    /// Its name.
    fn name(&self) -> String;

    /// The graph of the definition of a run, as SVG without a style sheet.
    ///
    /// # Errors
    /// When this version cannot read the definition.
    fn graph(&self, run: &RunId) -> Result<String, Problem>;

    /// The findings of the definition of a run, as `cuegate/check/v1`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    fn findings(&self, run: &RunId) -> Result<Value, Problem>;

    /// The report of a run, as text.
    ///
    /// # Errors
    /// When the journal cannot be read.
    fn report(&self, run: &RunId) -> Result<String, Problem>;

    /// The changes of a run, or those between two of its records, as a patch.
    ///
    /// # Errors
    /// When the run worked outside of git.
    fn diff(&self, run: &RunId, records: Option<(u64, u64)>) -> Result<String, Problem>;

    /// What differs between the files of two runs, as a patch.
    ///
    /// # Errors
    /// When one of them worked outside of git.
    fn compare(&self, run: &RunId, other: &RunId) -> Result<String, Problem>;

    /// The definitions that can be run, as `cuegate/list/v1`.
    ///
    /// # Errors
    /// When the project cannot be read.
    fn definitions(&self) -> Result<Value, Problem>;

    /// The agents, those that work on this machine, and the default one, as `cuegate/agents/v1`.
    ///
    /// # Errors
    /// When the configuration cannot be read.
    fn agents(&self) -> Result<Value, Problem>;

    /// The machines that take runs from the same journal, as `cuegate/fleet/v1`; `None` if there is no fleet.
    ///
    /// # Errors
    /// When the journal cannot be read.
    fn fleet(&self) -> Result<Option<Value>, Problem>;

    /// Whether there is a batch.
    ///
    /// # Errors
    /// When the journal cannot be read.
    fn has_batches(&self) -> Result<bool, Problem>;

    /// The batches with their tasks, as `cuegate/batches/v1`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    fn batches(&self) -> Result<Value, Problem>;

    /// A batch with its tasks, as `cuegate/work/v1`.
    ///
    /// # Errors
    /// When there is none with this id.
    fn batch(&self, typed: &str) -> Result<Value, Problem>;

    /// Whether a person marked a run as reviewed.
    fn is_reviewed(&self, run: &RunId) -> bool;

    /// Opens a run in the browser; returns what was done.
    ///
    /// # Errors
    /// When no server of the project runs.
    fn open(&self, run: &RunId) -> Result<String, Problem>;

    /// Does what a person wants. Returns an object that names the run.
    ///
    /// # Errors
    /// When the program refuses.
    fn control(&self, control: Control) -> Result<Value, Problem>;
}

/// What a person wants of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Control {
    /// Answers its question, and continues it.
    Answer {
        run: RunId,
        /// The answer.
        text: String,
    },
    /// Cancels it.
    Cancel { run: RunId },
    /// Interrupts it; it can be resumed.
    Pause { run: RunId },
    /// Resumes it.
    Resume { run: RunId },
    /// Merges the changes of its worktree into the user's working tree.
    Apply { run: RunId },
    /// Takes back what it did in the user's working tree.
    Undo { run: RunId },
    /// Marks it as reviewed, or takes that back.
    MarkReviewed { run: RunId, is_reviewed: bool },
    /// Continues one that failed or was aborted.
    Retry {
        run: RunId,
        /// A text that is added to the prompt of its step.
        say: Option<String>,
    },
    /// Goes on from a moment of it as a new run.
    Fork {
        run: RunId,
        /// The visit, as `STEP#VISIT`, or the number of a record.
        moment: String,
        /// Whether that visit is begun anew, or what came after it.
        before: bool,
        /// The answer to the question that was asked then.
        answer: Option<String>,
        /// The model for all calls.
        model: Option<String>,
    },
    /// Starts a run.
    Start(Box<StartRequest>),
}

/// A run that a person wants to start.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    /// The name or path of the definition.
    pub definition: String,
    /// The task, if the definition takes one.
    pub task: Option<String>,
    /// Values of parameters.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
    /// The folder of the project to work in.
    pub folder: Option<String>,
    /// The agent, as `--provider` names it.
    pub agent: Option<String>,
    /// The model for all calls.
    pub model: Option<String>,
    /// Whether the run works in a worktree of its own.
    #[serde(default)]
    pub worktree: bool,
    /// The number of the issue that it works on.
    pub issue: Option<u64>,
    /// The budget in US dollars.
    pub budget_usd: Option<f64>,
    pub budget_tokens: Option<u64>,
    pub budget_calls: Option<u64>,
    pub budget_minutes: Option<f64>,
    /// The cost limit of one call, in US dollars.
    pub call_usd: Option<f64>,
    /// A key: a second start with the same one starts nothing, and names the run of the first.
    pub key: Option<String>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The problem.
    pub message: String,
    /// Advice.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem with a status.
    pub fn new(status: u16, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into(), hint: None }
    }

    /// As `cuegate/error/v1`.
    pub fn to_json(&self) -> Value {
        json!({ "schema": "cuegate/error/v1", "error": self.message, "hint": self.hint })
    }
}

impl From<cuegate_runner::Error> for Problem {
    fn from(error: cuegate_runner::Error) -> Problem {
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            message.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        Problem::new(500, message)
    }
}
