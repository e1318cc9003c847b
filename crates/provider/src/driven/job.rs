//! What the child is told.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf};

use cuegate_ask::{Permission, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How to start the child and the answer server: our own binary with the arguments of a hidden subcommand.
#[derive(Debug, Clone)]
pub struct DriverProgram {
    /// The binary.
    pub exe: PathBuf,
    /// The arguments of the child, whose body is [`super::driver_main`].
    pub args: Vec<OsString>,
    /// The arguments of the answer server, whose body is [`crate::answer_server_main`].
    pub answer_server: Vec<String>,
}

/// A call of an agent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DriverJob {
    pub(super) name: String,
    /// The row of the agent; `None` for one of the user's own.
    pub(super) row: Option<String>,
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) prompt: String,
    pub(super) schema: Option<Value>,
    pub(super) model: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) session: Option<String>,
    /// The usage of that session so far, where the agent reports totals.
    pub(super) totals: Option<Usage>,
    pub(super) permission: Permission,
    pub(super) tools: Option<Vec<String>>,
    pub(super) folder: PathBuf,
    /// A folder for files, which may be read-only; in the child a folder of its own.
    pub(super) scratch: PathBuf,
    /// Whether files outside of the agent's boundary cannot be written anyway.
    pub(super) is_sandboxed: bool,
    pub(super) answer: AnswerRoute,
    /// The program and the arguments of the answer server; the folder follows.
    pub(super) answer_server: Vec<String>,
}

/// How `submit_answer` gets to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnswerRoute {
    Stdio,
    Http,
    None,
}
