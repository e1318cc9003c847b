//! Permissions of agents.

pub use cuegate_ask::{McpServer, McpTransport, Permission};
use serde::{Deserialize, Serialize};

use crate::{Str, model::tools};

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
