//! Where a run works.

use serde::{Deserialize, Serialize};

/// Where a run works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Place {
    /// The folder agents work in.
    pub work: String,
    /// Whether the run owns it and may restore it, as its own worktree.
    #[serde(default)]
    pub owned: bool,
    /// The branch of an owned worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The earlier run that made the worktree and its first changes, if this run follows it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// The branch from which the branch of an owned worktree started; `None` for a detached HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Whether it had uncommitted changes at the start.
    #[serde(default)]
    pub dirty: bool,
    /// The folder in it where agents and commands start, with `/`; `None`: at its top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether changes outside of that folder are violations.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bounded: bool,
}

impl Place {
    /// The folder where agents and commands start.
    pub fn start_folder(&self) -> String {
        self.folder.as_ref().map_or_else(|| self.work.clone(), |folder| format!("{}/{folder}", self.work))
    }

    /// Whether a step that may write may not change this path, relative to the top of the working tree.
    pub fn forbids(&self, path: &str) -> bool {
        let Some(folder) = self.folder.as_deref().filter(|_| self.bounded) else { return false };
        path.strip_prefix(folder).is_none_or(|rest| !rest.starts_with('/'))
    }
}
