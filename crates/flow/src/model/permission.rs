//! Permissions of agents.

use serde::{Deserialize, Serialize};

use crate::{Str, model::tools};

/// How much an agent may do without a person, from least to most.
///
/// The order is the strictness order, so the effective permission of a step is the minimum of what the
/// agent and the step allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Permission {
    /// Reads only; a changed file is a violation.
    Plan,
    /// Asks a person before each action; without a person, writing is denied.
    Default,
    /// Edits files in the working tree.
    AcceptEdits,
    /// Allows everything.
    BypassPermissions,
}

impl Permission {
    /// Whether files in the working tree may change.
    pub fn may_write(self) -> bool {
        self >= Permission::AcceptEdits
    }

    /// The word that definitions use.
    pub fn as_str(self) -> &'static str {
        match self {
            Permission::Plan => "plan",
            Permission::Default => "default",
            Permission::AcceptEdits => "acceptEdits",
            Permission::BypassPermissions => "bypassPermissions",
        }
    }
}

/// Which tools an agent may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tools {
    /// Every tool the permission allows.
    All,
    /// Only these, by the provider's names; never widens the permission.
    Only(Vec<Str>),
}

/// The permissions of an agent during a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// The effective permission: the more restrictive of agent and step.
    pub permission: Permission,
    /// The effective tools.
    pub tools: Tools,
}

impl Default for Boundary {
    fn default() -> Self {
        Boundary { permission: Permission::AcceptEdits, tools: Tools::All }
    }
}

impl Boundary {
    /// Whether an agent can change files: its permission allows it, and it has a tool for it.
    pub fn can_write(&self) -> bool {
        let has_one = match &self.tools {
            Tools::All => true,
            Tools::Only(tools) => tools.iter().any(|tool| tools::can_write(tool)),
        };
        self.permission.may_write() && has_one
    }
}
