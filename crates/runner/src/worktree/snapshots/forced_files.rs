//! Files that git ignores and that somebody added to an index all the same.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::SystemTime;

use super::snapshot::Trees;
use crate::worktree::error::WorktreeError;

/// Files that git ignores and an index has all the same, by names that end with a NUL.
#[derive(Debug, Clone)]
pub(in crate::worktree) struct ForcedFiles {
    /// The time and the size of the index.
    of: (SystemTime, u64),
    names: Vec<u8>,
}

impl Trees {
    /// Takes the files that agents added to this index, and that git ignores, for work too.
    pub(crate) fn with_agent_index(mut self, index: PathBuf) -> Trees {
        self.agent_index = Some(index);
        self
    }

    /// The files that git ignores and that somebody added all the same. They are work as any other.
    pub(in crate::worktree) fn forced_files(&self) -> Result<Vec<u8>, WorktreeError> {
        let mut names = Vec::new();
        for index in std::iter::once(&self.user_index).chain(&self.agent_index) {
            names.extend(self.forced_files_of(index)?);
        }
        Ok(names)
    }

    fn forced_files_of(&self, index: &Path) -> Result<Vec<u8>, WorktreeError> {
        let about = index.metadata();
        let Ok(of) = about.and_then(|about| Ok((about.modified()?, about.len()))) else {
            return Ok(Vec::new());
        };
        let mut known = self.forced.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(forced) = known.get(index).filter(|forced| forced.of == of) {
            return Ok(forced.names.clone());
        }
        let args = ["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];
        let git = self.user_git().with("GIT_INDEX_FILE", index);
        let listed = match git.run(&args) {
            // An agent may have damaged its own.
            Err(WorktreeError::Git { .. }) if index != self.user_index => Vec::new(),
            listed => listed?,
        };
        let mut names = Vec::new();
        for name in listed.split_inclusive(|byte| *byte == 0) {
            if !name.starts_with(b".cuegate/") {
                names.extend_from_slice(name);
            }
        }
        known.insert(index.to_owned(), ForcedFiles { of, names: names.clone() });
        Ok(names)
    }
}
