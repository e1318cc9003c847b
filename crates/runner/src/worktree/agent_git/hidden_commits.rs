//! What commits of agents hold and the working tree does not. Reviews and gates see the tree, so such commits do not land.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{collections::BTreeSet, ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use rustix::fs::FileType;

use super::{RepositoryPair, take_over::ChangedEntry};
use crate::{
    beneath::{EntryState, FolderHandle},
    worktree::{
        error::{WorktreeError, io_at},
        git::Git,
        tree_edit::GITLINK,
    },
};

/// Files in the working tree with rules that git reads.
const RULES: [&str; 2] = [".gitattributes", ".gitignore"];

impl RepositoryPair {
    /// The paths that the commits change and the working tree does not show: added files that are missing, removed files that
    /// are still there, and changed files that still have their old content or kind.
    ///
    /// # Errors
    /// When git fails in the user's repository.
    pub(super) fn list_hidden_paths(
        &self,
        users: &Git,
        entries: &[ChangedEntry],
    ) -> Result<Vec<String>, WorktreeError> {
        let top = FolderHandle::open(&self.real.top).map_err(io_at("open", &self.real.top))?;
        // Git waits for a FIFO in their place, so none of it runs in the tree.
        let irregular = list_irregular_rules(&top, entries);
        if !irregular.is_empty() {
            return Ok(irregular);
        }
        // Git compares them unless this setting is off.
        let has_modes =
            !users.word(&["config", "--type=bool", "core.fileMode"]).is_ok_and(|is| is == "false");
        let (mut missing, mut present, mut modified, mut hidden) =
            (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
        for entry in entries {
            let path = Path::new(OsStr::from_bytes(&entry.path));
            let Ok(state) = top.state_of(path) else {
                // It is in a closed folder, or no file system has such a name.
                hidden.insert(name_of(&entry.path));
                continue;
            };
            let is_link = entry.mode == GITLINK;
            let is_there = state.is_some_and(|state| state.is_folder() == is_link);
            match (entry.is_removal(), is_there) {
                // No snapshot has the state of runs, and git of the user enters what cannot be looked at here.
                (false, _) if path.starts_with(".cuegate") || is_link && path.to_str().is_none() => {
                    hidden.insert(name_of(&entry.path));
                }
                (false, false) if is_link => _ = hidden.insert(name_of(&entry.path)),
                (false, false) => missing.push(&entry.path),
                (true, true) if entry.mode_before != GITLINK => present.push(&entry.path),
                (false, true) if !is_link => {
                    if state.is_some_and(|state| !has_kind_of(&state, &entry.mode, has_modes)) {
                        hidden.insert(name_of(&entry.path));
                    } else if !entry.is_addition() && entry.mode_before != GITLINK {
                        modified.push(entry);
                    }
                }
                _ => {}
            }
        }
        hidden.extend(self.keep_checked_out(users, &missing)?);
        hidden.extend(keep_not_ignored(users, &present)?);
        hidden.extend(self.keep_unchanged(users, &modified)?);
        Ok(hidden.into_iter().collect())
    }

    /// Marks entries outside of a sparse checkout as such, whose files are missing on purpose.
    ///
    /// # Errors
    /// When git fails in the user's repository.
    pub(super) fn skip_files_outside(
        &self,
        users: &Git,
        entries: &[ChangedEntry],
    ) -> Result<(), WorktreeError> {
        if !self.real.git_dir.join("info/sparse-checkout").is_file() {
            return Ok(());
        }
        let top = FolderHandle::open(&self.real.top).map_err(io_at("open", &self.real.top))?;
        let is_missing = |entry: &&ChangedEntry| {
            let path = Path::new(OsStr::from_bytes(&entry.path));
            !entry.is_removal()
                && entry.mode != GITLINK
                && top.state_of(path).is_ok_and(|state| state.is_none())
        };
        let missing: Vec<&Vec<u8>> = entries.iter().filter(is_missing).map(|entry| &entry.path).collect();
        let inside: BTreeSet<String> = self.keep_checked_out(users, &missing)?.into_iter().collect();
        let outside = missing.into_iter().filter(|path| !inside.contains(&name_of(path)));
        let input: Vec<u8> = outside.flat_map(|path| [&path[..], &[0]].concat()).collect();
        if !input.is_empty() {
            users.run_with(&["update-index", "-z", "--skip-worktree", "--stdin"], &input)?;
        }
        Ok(())
    }

    /// Those paths that are not outside of a sparse checkout.
    fn keep_checked_out(&self, users: &Git, paths: &[&Vec<u8>]) -> Result<Vec<String>, WorktreeError> {
        let all = || paths.iter().map(|path| name_of(path)).collect();
        if paths.is_empty() || !self.real.git_dir.join("info/sparse-checkout").is_file() {
            return Ok(all());
        }
        let input: Vec<u8> = paths.iter().flat_map(|path| [&path[..], &[0]].concat()).collect();
        let inside = users.output(&["sparse-checkout", "check-rules", "-z"], &input)?;
        if !inside.status.success() {
            return Ok(all());
        }
        Ok(inside.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(name_of).collect())
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
        let unchanged = unchanged.filter(|entry| entry.id != entry.id_before);
        Ok(unchanged.map(|entry| name_of(&entry.path)).collect())
    }
}

/// Whether a file is of the kind that an entry has: a link or none, and a program or none.
fn has_kind_of(state: &EntryState, mode: &str, has_modes: bool) -> bool {
    if mode == "120000" {
        return state.kind == FileType::Symlink;
    }
    state.is_file() && (!has_modes || (mode == "100755") == (state.mode & 0o100 != 0))
}

/// The files with rules of git, in the folders of these entries, that are neither files nor links.
fn list_irregular_rules(top: &FolderHandle, entries: &[ChangedEntry]) -> Vec<String> {
    let folders =
        entries.iter().flat_map(|entry| Path::new(OsStr::from_bytes(&entry.path)).ancestors().skip(1));
    let folders: BTreeSet<&Path> = folders.collect();
    let rules = folders.into_iter().flat_map(|folder| RULES.map(|name| folder.join(name)));
    let irregular = rules.filter(|path| {
        let state = top.state_of(path).ok().flatten();
        state.is_some_and(|state| !state.is_file() && !state.is_folder() && state.kind != FileType::Symlink)
    });
    irregular.map(|path| path.display().to_string()).collect()
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
