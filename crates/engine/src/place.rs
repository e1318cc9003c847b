//! Where a run works, and the recorded states of its working tree.

use cuegate_flow::{Str, model::BlobRef};
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

/// Where the process is that drives a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// A random name of the state dir. The same project elsewhere has another one.
    pub id: String,
    /// The name of the machine.
    pub host: String,
    /// The top folder of the project there.
    pub root: String,
}

/// What is different since a run goes on in another project or on another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMoved {
    pub to: Machine,
    /// The folder where agents work there.
    pub work: String,
    /// The folder of its reports there, if agents read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_dir: Option<Str>,
}

/// A snapshot of the working tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct TreeState {
    /// The git tree of all files that git does not ignore.
    pub tree: String,
    /// The checked out commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// A digest of all branches and tags.
    #[serde(default)]
    pub refs: String,
    /// In a worktree that the run owns: the object id of HEAD, the index, branches and stash, for restoring them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    /// What another machine makes it from, if the journal is shared with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<Box<StatePack>>,
}

/// What a machine that never saw a working tree makes it from, beside the packs before it and the commit that the run
/// started from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatePack {
    /// In the journal.
    Kept {
        /// The files, as a thin pack of git.
        files: BlobRef,
        /// New commits, as a pack of git.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commits: Option<BlobRef>,
    },
    /// Too large for the journal. The next pack that fits has its files as well.
    TooLarge {
        /// The size of the objects.
        bytes: u64,
    },
}
