//! What an agent may touch.

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
    /// Asks a person before each action; with nobody there, writing is denied.
    Default,
    /// Edits files in the working tree.
    AcceptEdits,
    /// Does everything.
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

/// What an agent may touch while it works on a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// The permission in force: the more restrictive of agent and step.
    pub permission: Permission,
    /// The tools in force.
    pub tools: Tools,
}

impl Default for Boundary {
    fn default() -> Self {
        Boundary { permission: Permission::AcceptEdits, tools: Tools::All }
    }
}

impl Boundary {
    /// Whether an agent within it can change files: it may, and has a tool to do so.
    pub fn can_write(&self) -> bool {
        let has_one = match &self.tools {
            Tools::All => true,
            Tools::Only(tools) => tools.iter().any(|tool| tools::can_write(tool)),
        };
        self.permission.may_write() && has_one
    }
}
