//! The settings of a program that is an agent.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

use crate::{NetworkService, Prices};

/// A program that is an agent: `[agents.NAME]` with `exec` in cuegate.toml.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExecSettings {
    /// The program, by a name in `PATH` or a path, and its arguments.
    pub exec: Vec<String>,
    /// The model for asks that name none; otherwise the program chooses.
    pub model: Option<String>,
    /// Whether it keeps to the schema of a request by itself. Otherwise the prompt asks for that.
    pub schema: bool,
    /// Whether it can continue a conversation by the name that it gave it.
    pub sessions: bool,
    /// Whether it may change files. Without it, it is given to steps that only read or judge.
    pub edits: bool,
    /// Whether it reports what an ask cost.
    pub cost: bool,
    /// Environment variables that it gets in the sandbox; `*` at the end of a name is a wildcard.
    pub variables: Vec<String>,
    /// The hosts that it may reach in the sandbox.
    pub hosts: Vec<NetworkService>,
    /// Files and folders that it may write in the sandbox besides the working tree, such as its login.
    pub state: Vec<PathBuf>,
    /// More environment.
    pub env: BTreeMap<String, String>,
    /// Its names of the models in definitions.
    pub models: BTreeMap<String, String>,
    /// Token prices by its model name.
    pub prices: Prices,
}
