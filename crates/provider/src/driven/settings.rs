//! The settings of a driven agent.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

use crate::{NetworkService, Prices};

/// `[providers.opencode]` and the like, and `[agents.NAME]` with `command`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DrivenSettings {
    /// The program and its arguments, of an agent of the user's own, which speaks the Agent Client Protocol.
    pub command: Vec<String>,
    /// The program of an agent that Cuegate knows, by a name in `PATH` or a path.
    pub program: Option<PathBuf>,
    /// More arguments.
    pub args: Vec<String>,
    /// The model for calls that name none.
    pub model: Option<String>,
    /// How an agent of the user's own takes `submit_answer`.
    pub answer: AnswerTransport,
    /// Whether an agent of the user's own continues conversations.
    pub sessions: bool,
    /// Whether an agent of the user's own reports what a session cost so far.
    pub cost: bool,
    /// The modes of an agent of the user's own, by permission: `plan`, `default`, `acceptEdits`, `bypassPermissions`.
    pub modes: BTreeMap<String, String>,
    /// Environment variables that it gets in the sandbox; `*` at the end of a name is a wildcard.
    pub variables: Vec<String>,
    /// The hosts that it may reach in the sandbox, besides those that Cuegate knows.
    pub hosts: Vec<NetworkService>,
    /// Files and folders that it may write in the sandbox besides the working tree and its own.
    pub state: Vec<PathBuf>,
    /// More environment.
    pub env: BTreeMap<String, String>,
    /// Its names of the models in definitions.
    pub models: BTreeMap<String, String>,
    /// Token prices by its model name.
    pub prices: Prices,
}

/// How `submit_answer` gets to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerTransport {
    /// It starts the server and talks over its standard input and output.
    #[default]
    Stdio,
    /// It talks to a server on the loopback interface.
    Http,
    /// Not at all: the prompt has the schema.
    None,
}
