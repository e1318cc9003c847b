//! What commits of agents hold and the working tree does not. Reviews and gates see the tree, so such commits do not land.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{collections::BTreeSet, ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use super::{RepositoryPair, take_over::ChangedEntry};
use crate::{
    beneath::FolderHandle,
    worktree::{
        error::{WorktreeError, io_at},
        git::Git,
        tree_edit::GITLINK,
    },
};

impl RepositoryPair {
    /// The paths that the commits bring and the tree does not show: files that are missing there, or there all the same, and
    /// files that have the content from before.
    ///
    /// # Errors
    /// When git fails in the user's repository.
    pub(super) fn list_hidden_paths(
        &self,
        users: &Git,
        entries: &[ChangedEntry],
    ) -> Result<Vec<String>, WorktreeError> {
        let top = FolderHandle::open(&self.real.top).map_err(io_at("open", &self.real.top))?;
        let (mut missing, mut present, mut modified, mut hidden) =
            (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
        for entry in entries.iter().filter(|entry| entry.mode != GITLINK && entry.mode_before != GITLINK) {
            let path = Path::new(OsStr::from_bytes(&entry.path));
            let state = top.state_of(path).map_err(io_at("read", &self.real.top.join(path)))?;
            let is_there = state.is_some_and(|state| !state.is_folder());
            match (entry.is_removal(), is_there) {
                // No snapshot has the state of runs.
                (false, _) if path.starts_with(".cuegate") => _ = hidden.insert(name_of(&entry.path)),
                (false, false) => missing.push(&entry.path),
                (true, true) => present.push(&entry.path),
                (false, true) if !entry.is_addition() => modified.push(entry),
                _ => {}
            }
        }
        hidden.extend(self.keep_checked_out(users, &missing)?);
        hidden.extend(keep_not_ignored(users, &present)?);
        hidden.extend(self.keep_unchanged(users, &modified)?);
        Ok(hidden.into_iter().collect())
    }

    /// Those paths that are not outside of a sparse checkout.
    fn keep_checked_out(&self, users: &Git, paths: &[&Vec<u8>]) -> Result<Vec<String>, WorktreeError> {
        let sparse = self.real.git_dir.join("info/sparse-checkout");
        if paths.is_empty() || !sparse.is_file() {
            return Ok(paths.iter().map(|path| name_of(path)).collect());
        }
        let skipped = users.run(&["ls-files", "-v", "-z"])?;
        let skipped: BTreeSet<&[u8]> =
            skipped.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(b"S ")).collect();
        Ok(paths.iter().filter(|path| !skipped.contains(&path[..])).map(|path| name_of(path)).collect())
    }

    /// Those entries whose files are as before the commits.
    fn keep_unchanged(&self, users: &Git, entries: &[&ChangedEntry]) -> Result<Vec<String>, WorktreeError> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let index =
            tempfile::NamedTempFile::new().map_err(io_at("create a file in", &std::env::temp_dir()))?;
        // Git makes it; an empty file is no index.
        let index = index.into_temp_path();
        std::fs::remove_file(&index).map_err(io_at("remove", &index))?;
        let git = users.clone().with("GIT_INDEX_FILE", index.as_os_str());
        let mut lines = Vec::new();
        for entry in entries {
            lines.extend_from_slice(format!("{} {}\t", entry.mode_before, entry.id_before).as_bytes());
            lines.extend_from_slice(&entry.path);
            lines.push(0);
        }
        git.run_with(&["update-index", "-z", "--index-info"], &lines)?;
        // It fails if a file differs, which is no failure here.
        git.output(&["update-index", "-q", "--refresh"], b"")?;
        let differing = git.run(&["diff-files", "-z", "--name-only"])?;
        let differing: BTreeSet<&[u8]> = differing.split(|byte| *byte == 0).collect();
        let unchanged = entries.iter().filter(|entry| !differing.contains(&entry.path[..]));
        // A mode that git does not look at is no difference.
        let unchanged = unchanged.filter(|entry| entry.id != entry.id_before);
        Ok(unchanged.map(|entry| name_of(&entry.path)).collect())
    }
}

/// Those paths that git does not ignore: `git rm --cached` leaves ignored files there on purpose.
fn keep_not_ignored(users: &Git, paths: &[&Vec<u8>]) -> Result<Vec<String>, WorktreeError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let input: Vec<u8> = paths.iter().flat_map(|path| [&path[..], &[0]].concat()).collect();
    let output = users.output(&["check-ignore", "--no-index", "-z", "--stdin"], &input)?;
    let ignored: BTreeSet<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
    Ok(paths.iter().filter(|path| !ignored.contains(&path[..])).map(|path| name_of(path)).collect())
}

fn name_of(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
