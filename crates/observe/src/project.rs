//! What the page and the terminal need of the program: views that need definitions or git, and control.

use std::collections::BTreeMap;

use cuegate_journal::RunId;
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

    /// The definitions that can be run, as `cuegate/list/v1`.
    ///
    /// # Errors
    /// When the project cannot be read.
    fn definitions(&self) -> Result<Value, Problem>;

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
        /// The run.
        run: RunId,
        /// The answer.
        text: String,
    },
    /// Cancels it.
    Cancel {
        /// The run.
        run: RunId,
    },
    /// Interrupts it; it can be resumed.
    Pause {
        /// The run.
        run: RunId,
    },
    /// Resumes it.
    Resume {
        /// The run.
        run: RunId,
    },
    /// Starts a run.
    Start {
        /// The name or path of the definition.
        definition: String,
        /// The task, if the definition takes one.
        task: Option<String>,
        /// Values of parameters.
        args: BTreeMap<String, String>,
        /// The folder of the project to work in.
        folder: Option<String>,
        /// The budget in US dollars.
        budget_usd: Option<f64>,
        /// The budget in tokens.
        budget_tokens: Option<u64>,
    },
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
