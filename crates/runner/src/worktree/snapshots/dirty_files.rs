//! The uncommitted files of a working tree, with what `stat` says about them: cheap to compare, and nothing is stored.

use std::{collections::BTreeMap, os::unix::ffi::OsStrExt, os::unix::fs::MetadataExt, path::Path};

use crate::worktree::error::WorktreeError;
use crate::worktree::git::Git;

/// The uncommitted files of a working tree by path, relative to `work`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DirtyFiles(BTreeMap<String, (String, Option<[i64; 4]>)>);

impl DirtyFiles {
    /// Reads them. `work` is the top folder of a working tree. Ignored files and `.cuegate` do not count.
    ///
    /// # Errors
    /// Git fails.
    pub fn read(work: &Path) -> Result<DirtyFiles, WorktreeError> {
        let args = [
            "status",
            "--porcelain=v1",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=dirty",
            "--",
            ":/",
            ":(top,exclude,literal).cuegate",
        ];
        let output = Git::new(work).run(&args)?;
        let entry = |entry: &[u8]| {
            let (state, path) = entry.split_at_checked(3)?;
            let found = work.join(std::ffi::OsStr::from_bytes(path)).symlink_metadata().ok();
            let found =
                found.map(|file| [file.size() as i64, file.mtime(), file.mtime_nsec(), file.ino() as i64]);
            let state = String::from_utf8_lossy(state).into_owned();
            Some((String::from_utf8_lossy(path).into_owned(), (state, found)))
        };
        Ok(DirtyFiles(output.split(|byte| *byte == 0).filter_map(entry).collect()))
    }

    /// The paths that became dirty or clean since `before`, or were written again.
    pub fn changed_since(&self, before: &DirtyFiles) -> Vec<String> {
        let mut changed: Vec<String> = self
            .0
            .iter()
            .filter(|(path, is)| before.0.get(*path) != Some(is))
            .map(|(path, _)| path.clone())
            .collect();
        changed.extend(before.0.keys().filter(|path| !self.0.contains_key(*path)).cloned());
        changed.sort_unstable();
        changed
    }
}
