//! Files that git ignores and that somebody added to an index all the same.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::snapshot::Trees;
use crate::beneath::{EntryState, FolderHandle};
use crate::worktree::error::{WorktreeError, io_at};

/// The limit of the size of an index of agents that is read, in bytes.
const INDEX_MAX: u64 = 1 << 30;

/// Files that git ignores and an index has all the same, by names that end with a NUL.
#[derive(Debug, Clone)]
pub(in crate::worktree) struct ForcedFiles {
    /// The index that they were read from.
    of: EntryState,
    names: Vec<u8>,
}

impl Trees {
    /// Takes the files that agents added to their index, and that git ignores, for work too. `below` is its path in their
    /// git folder.
    pub(crate) fn with_agent_index(mut self, (folder, below): (PathBuf, PathBuf)) -> Trees {
        self.agent_index = Some((folder, below));
        self
    }

    /// The files that git ignores and that somebody added all the same. They are work as any other.
    pub(in crate::worktree) fn forced_files(&self) -> Result<Vec<u8>, WorktreeError> {
        let folder = self.user_index.parent().unwrap_or(Path::new("")).to_owned();
        let index = PathBuf::from(self.user_index.file_name().unwrap_or_default());
        let mut names = self.forced_files_of(&folder, &index)?;
        if let Some((folder, below)) = &self.agent_index {
            names.extend(self.forced_files_of(folder, below)?);
        }
        Ok(names)
    }

    fn forced_files_of(&self, folder: &Path, below: &Path) -> Result<Vec<u8>, WorktreeError> {
        let index = folder.join(below);
        let Ok(folder) = FolderHandle::open(folder) else { return Ok(Vec::new()) };
        let Ok(Some(of)) = folder.state_of(below) else { return Ok(Vec::new()) };
        let mut known = self.forced.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(forced) = known.get(&index).filter(|forced| forced.of == of) {
            return Ok(forced.names.clone());
        }
        let listed = match index == self.user_index {
            true => self.list_forced_files(&index)?,
            // An agent may have damaged its own, or put something else in its place.
            false => match self.copy_index(&folder, below)? {
                None => Vec::new(),
                Some(copy) => match self.list_forced_files(copy.path()) {
                    Err(WorktreeError::Git { .. }) => Vec::new(),
                    listed => listed?,
                },
            },
        };
        let mut names = Vec::new();
        for name in listed.split_inclusive(|byte| *byte == 0) {
            if !name.starts_with(b".cuegate/") {
                names.extend_from_slice(name);
            }
        }
        known.insert(index, ForcedFiles { of, names: names.clone() });
        Ok(names)
    }

    fn list_forced_files(&self, index: &Path) -> Result<Vec<u8>, WorktreeError> {
        let args = ["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];
        self.user_git().with("GIT_INDEX_FILE", index).run(&args)
    }

    /// Copies an index of agents to where they cannot change it while git reads it. `None` if it is no file, or too large.
    fn copy_index(
        &self,
        folder: &FolderHandle,
        name: &Path,
    ) -> Result<Option<tempfile::NamedTempFile>, WorktreeError> {
        let Ok(file) = folder.open_file(name) else { return Ok(None) };
        let Ok(mut copy) = tempfile::NamedTempFile::new_in(&self.state) else { return Ok(None) };
        let copied = io::copy(&mut io::Read::take(file, INDEX_MAX + 1), copy.as_file_mut());
        let size = copied.map_err(io_at("copy to", copy.path()))?;
        Ok((size <= INDEX_MAX).then_some(copy))
    }
}
