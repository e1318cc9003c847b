//! The git state of a worktree that a run owns: HEAD, index, unfinished rebases and merges, branches and stash.
//!
//! Everything that git keeps only for one linked worktree is in the worktree's own git folder, a few small files. A git
//! state holds all of them, and of what the worktree shares with the repository the branches and those stash entries
//! that name the branch of the run. It is a JSON text in our object store.

#![expect(clippy::disallowed_methods, reason = "the git folder of the user")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::changes::object_id;
use super::error::{WorktreeError, io_at};
use super::git::Git;
use super::repository::Repository;
use super::snapshots::snapshot::Trees;

/// The git state of a worktree.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct GitState {
    /// The files of the worktree's git folder, with the object ids of their contents.
    files: BTreeMap<String, String>,
    /// The branches of the repository with their commits.
    branches: BTreeMap<String, String>,
    /// The stash entries that name the branch of the run, the newest first: commit and message.
    stash: Vec<(String, String)>,
    /// The size of the log of HEAD in bytes: later entries are after this state.
    log_size: u64,
}

/// The files and folders of a worktree's git folder that hold its state. Others stay as they are: logs, links to the
/// repository, the repositories of submodules.
const STATE: [&str; 16] = [
    "HEAD",
    "index",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "COMMIT_EDITMSG",
    "config.worktree",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "refs",
    "reftable",
];

/// Beginnings of further names.
const STATE_PREFIXES: [&str; 2] = ["MERGE_", "BISECT_"];

/// Whether a file of a worktree's git folder holds its state.
pub(super) fn is_state(name: &str) -> bool {
    STATE.contains(&name) || STATE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The objects that a git state names. Its commits are in the repository.
pub(super) fn list_state_objects(text: &[u8]) -> Vec<String> {
    serde_json::from_slice::<GitState>(text)
        .map(|state| state.files.into_values().collect())
        .unwrap_or_default()
}

/// The branches of a git state by name, with their commits.
pub(super) fn list_state_branches(text: &[u8]) -> BTreeMap<String, String> {
    serde_json::from_slice::<GitState>(text).unwrap_or_default().branches
}

/// The commits of the stash of a git state.
pub(super) fn list_stash_commits(text: &[u8]) -> Vec<String> {
    let state = serde_json::from_slice::<GitState>(text).unwrap_or_default();
    state.stash.into_iter().map(|(commit, _)| commit).collect()
}

/// The folder of references that keep commits which are no longer on a branch.
const SET_ASIDE: &str = "refs/cuegate/set-aside";

/// The reflog message.
const REFLOG_MESSAGE: &str = "cuegate: put back";

impl Trees {
    /// Stores the git state of the worktree, whose run has the branch `branch`. Returns its object id, or `None` if the
    /// working tree is no linked worktree.
    ///
    /// # Errors
    /// When git fails or a file cannot be read.
    pub fn git_state(&self, branch: &str) -> Result<Option<String>, WorktreeError> {
        let Some(dir) = self.linked_git_dir() else { return Ok(None) };
        let state = self.capture_git_state(&dir, branch)?;
        let text = serde_json::to_vec(&state).expect("maps and texts can be serialised");
        let stored = self.git.run_with(&["hash-object", "-w", "--no-filters", "--stdin"], &text)?;
        Ok(Some(String::from_utf8_lossy(&stored).trim_end().to_owned()))
    }

    /// Restores a git state and the commit `head` of its branch. Files of the working tree stay. Commits and stash
    /// entries that were made since are kept under `refs/cuegate/set-aside`; returns those references.
    ///
    /// Of other branches only those are restored that this worktree, and no other one, checked out and moved since.
    ///
    /// Only for a worktree that the run owns.
    ///
    /// # Errors
    /// `state` is unknown, or git cannot write. The call can be repeated.
    pub fn restore_git_state(
        &self,
        branch: &str,
        state: &str,
        head: Option<&str>,
    ) -> Result<Vec<String>, WorktreeError> {
        let _guard = self.guard()?;
        let mut aside = Vec::new();
        let Some(dir) = self.linked_git_dir() else { return Ok(aside) };
        let text = self.git.run(&["cat-file", "blob", object_id(state)?])?;
        let to: GitState =
            serde_json::from_slice(&text).map_err(|_| WorktreeError::NoTree(state.to_owned()))?;
        let is = self.capture_git_state(&dir, branch)?;
        let git = Git::new(&self.root);
        let elsewhere = checked_out_elsewhere(&self.root)?;
        self.restore_files(&dir, &is, &to)?;
        let on = head_branch(&dir);
        let names: BTreeSet<&String> = is.branches.keys().chain(to.branches.keys()).collect();
        for name in names.into_iter().filter(|name| !elsewhere.contains(*name)) {
            let now = is.branches.get(name);
            let moved_here = || now.is_none_or(|now| was_head(&dir, to.log_size, now));
            let commit = match &on {
                Some(on) if on == name && (name == branch || moved_here()) => head,
                _ if was_checked_out(&dir, to.log_size, name) && moved_here() => {
                    to.branches.get(name).map(String::as_str)
                }
                _ => continue,
            };
            if commit == now.map(String::as_str) {
                continue;
            }
            if let Some(now) = now {
                aside.push(keep_commit(&git, now)?);
            }
            let reference = format!("refs/heads/{name}");
            match (commit, now) {
                (Some(commit), Some(now)) => {
                    git.run(&["update-ref", "-m", REFLOG_MESSAGE, &reference, object_id(commit)?, now])?;
                }
                (Some(commit), None) => {
                    git.run(&["update-ref", "-m", REFLOG_MESSAGE, &reference, object_id(commit)?])?;
                }
                (None, Some(now)) => {
                    git.run(&["update-ref", "-d", &reference, now])?;
                }
                (None, None) => {}
            }
        }
        restore_stash(&git, &is.stash, &to.stash, &mut aside)?;
        Ok(aside)
    }

    /// The worktree's own git folder; `None` in the main working tree of a repository.
    fn linked_git_dir(&self) -> Option<PathBuf> {
        Some(self.git_dir.clone()).filter(|dir| dir.join("commondir").is_file())
    }

    fn capture_git_state(&self, dir: &Path, branch: &str) -> Result<GitState, WorktreeError> {
        let mut paths = Vec::new();
        add_files(dir, dir, &mut paths)?;
        let names: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let mut input = Vec::new();
        for name in &names {
            input.extend_from_slice(dir.join(name).as_os_str().as_bytes());
            input.push(b'\n');
        }
        let stored = self.git.run_with(&["hash-object", "-w", "--no-filters", "--stdin-paths"], &input)?;
        let stored = String::from_utf8_lossy(&stored).into_owned();
        let files = names
            .iter()
            .map(|name| name.display().to_string())
            .zip(stored.lines().map(str::to_owned))
            .collect();
        let listed = self.git.run(&[
            "for-each-ref",
            "--format=%(objectname) %(refname)",
            "refs/heads",
            "refs/stash",
        ])?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let references = listed.lines().filter_map(|line| line.split_once(' '));
        let branches = references.filter_map(|(commit, name)| {
            name.strip_prefix("refs/heads/").map(|name| (name.to_owned(), commit.to_owned()))
        });
        let branches = branches.collect();
        let has_stash = listed.lines().any(|line| line.ends_with(" refs/stash"));
        let stash = if has_stash { self.stash_of(branch)? } else { Vec::new() };
        let log_size = fs::metadata(dir.join("logs/HEAD")).map_or(0, |log| log.len());
        Ok(GitState { files, branches, stash, log_size })
    }

    fn stash_of(&self, branch: &str) -> Result<Vec<(String, String)>, WorktreeError> {
        let listed = self.git.run(&["log", "--walk-reflogs", "--format=%H %gs", "refs/stash", "--"])?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let entries = listed.lines().filter_map(|line| line.split_once(' '));
        let entries = entries.filter(|(_, message)| {
            let on = message.strip_prefix("WIP on ").or_else(|| message.strip_prefix("On "));
            on.and_then(|on| on.split_once(": ")).is_some_and(|(on, _)| on == branch)
        });
        Ok(entries.map(|(commit, message)| (commit.to_owned(), message.to_owned())).collect())
    }

    /// Writes the files of the state and removes others. Each file is replaced atomically: without HEAD the folder
    /// would be no worktree any more.
    fn restore_files(&self, dir: &Path, is: &GitState, to: &GitState) -> Result<(), WorktreeError> {
        for (name, id) in &to.files {
            if is.files.get(name) == Some(id) {
                continue;
            }
            let bytes = self.git.run(&["cat-file", "blob", object_id(id)?])?;
            let file = dir.join(name);
            create_real_folders(dir, name)?;
            // An agent may have put a link in its place.
            let partial = tempfile::Builder::new().prefix("cuegate-").tempfile_in(dir);
            let (mut written, partial) =
                partial.and_then(|file| Ok(file.keep()?)).map_err(io_at("create a file in", dir))?;
            written.write_all(&bytes).map_err(io_at("write", &partial))?;
            if name == "index" {
                // Git rereads files that are not older than the index. With the present time it would miss a change of
                // the same length within the second in which the index was written; with this one it reads them all.
                let opened = fs::OpenOptions::new().write(true).open(&partial);
                let dated = opened.and_then(|file| file.set_modified(UNIX_EPOCH + Duration::from_secs(1)));
                dated.map_err(io_at("date", &partial))?;
            }
            fs::rename(&partial, &file).map_err(io_at("replace", &file))?;
        }
        for name in is.files.keys().filter(|name| !to.files.contains_key(*name)) {
            let file = dir.join(name);
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(io_at("remove", &file)(error));
                }
                _ => {}
            }
        }
        // Git takes any `rebase-merge` for an unfinished rebase, also an empty one or one with a lock of a killed git.
        for name in ["rebase-merge", "rebase-apply", "sequencer"] {
            let unfinished = to.files.keys().any(|file| Path::new(file).starts_with(name));
            remove_left(&dir.join(name), !unfinished);
        }
        Ok(())
    }
}

/// The branches that other worktrees than `root` have checked out.
pub(super) fn checked_out_elsewhere(root: &Path) -> Result<BTreeSet<String>, WorktreeError> {
    let own = fs::canonicalize(root).ok();
    let is_own = |entry: &Vec<String>| {
        let path = entry.first().and_then(|line| line.strip_prefix("worktree "));
        path.is_some_and(|path| fs::canonicalize(path).ok() == own)
    };
    let others = Repository::working_trees(root)?.into_iter().filter(|entry| !is_own(entry)).flatten();
    Ok(others.filter_map(|line| line.strip_prefix("branch refs/heads/").map(str::to_owned)).collect())
}

/// Creates the folders above a file of a git folder. An agent may have put links there, which lead elsewhere.
fn create_real_folders(dir: &Path, name: &str) -> Result<(), WorktreeError> {
    let above: Vec<&Path> =
        Path::new(name).ancestors().skip(1).filter(|above| *above != Path::new("")).collect();
    for folder in above.into_iter().rev().map(|above| dir.join(above)) {
        if folder.symlink_metadata().is_ok_and(|about| !about.is_dir()) {
            fs::remove_file(&folder).map_err(io_at("remove", &folder))?;
        }
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_at("create", &folder)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The branch that HEAD names.
fn head_branch(dir: &Path) -> Option<String> {
    let head = fs::read_to_string(dir.join("HEAD")).ok()?;
    head.trim_end().strip_prefix("ref: refs/heads/").map(str::to_owned)
}

/// Removes the locks in a folder, or the whole folder.
fn remove_left(dir: &Path, whole: bool) {
    if whole {
        let _ = fs::remove_dir_all(dir);
        return;
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "lock") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Collects the files below `folder`, relative to `dir`, without locks.
fn add_files(dir: &Path, folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), WorktreeError> {
    for entry in fs::read_dir(folder).map_err(io_at("read", folder))?.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        let Ok(name) = path.strip_prefix(dir) else { continue };
        let text = name.to_string_lossy();
        let first =
            name.components().next().map(|part| part.as_os_str().to_string_lossy()).unwrap_or_default();
        if !is_state(&first)
            || text.ends_with(".lock")
            || text == "cuegate-partial"
            || text.contains(['\n', '\u{fffd}'])
        {
            continue;
        }
        if kind.is_dir() {
            add_files(dir, &path, paths)?;
        } else if kind.is_file() {
            paths.push(name.to_owned());
        }
    }
    paths.sort();
    Ok(())
}

/// Whether the worktree has switched to or from this branch since its log of HEAD had `size` bytes.
fn was_checked_out(dir: &Path, size: u64, branch: &str) -> bool {
    let log = fs::read(dir.join("logs/HEAD")).unwrap_or_default();
    let later = log.get(usize::try_from(size).unwrap_or(usize::MAX)..).unwrap_or_default();
    String::from_utf8_lossy(later).lines().any(|line| {
        let moved = line.split_once("checkout: moving from ").and_then(|(_, moved)| moved.split_once(" to "));
        let rebased = line.ends_with(&format!(" returning to refs/heads/{branch}"));
        rebased || moved.is_some_and(|(from, to)| from == branch || to == branch)
    })
}

/// Whether HEAD of the worktree was at this commit since its log had `size` bytes.
fn was_head(dir: &Path, size: u64, commit: &str) -> bool {
    let log = fs::read(dir.join("logs/HEAD")).unwrap_or_default();
    let later = log.get(usize::try_from(size).unwrap_or(usize::MAX)..).unwrap_or_default();
    String::from_utf8_lossy(later).lines().any(|line| line.split(' ').take(2).any(|id| id == commit))
}

/// Keeps a commit under a reference, which is returned.
pub(super) fn keep_commit(git: &Git, commit: &str) -> Result<String, WorktreeError> {
    let reference = format!("{SET_ASIDE}/{}", object_id(commit)?);
    git.run(&["update-ref", &reference, commit])?;
    Ok(reference)
}

/// Drops the entries that were added since and stores those that are gone.
fn restore_stash(
    git: &Git,
    is: &[(String, String)],
    to: &[(String, String)],
    aside: &mut Vec<String>,
) -> Result<(), WorktreeError> {
    for (commit, _) in is.iter().filter(|entry| !to.contains(entry)) {
        let listed = git.run(&["log", "--walk-reflogs", "--format=%H", "refs/stash", "--"])?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        if let Some(place) = listed.lines().position(|entry| entry == commit) {
            aside.push(keep_commit(git, commit)?);
            git.run(&["stash", "drop", "--quiet", &format!("stash@{{{place}}}")])?;
        }
    }
    for (commit, message) in to.iter().rev().filter(|entry| !is.contains(entry)) {
        git.run(&["stash", "store", "--quiet", "--message", message, object_id(commit)?])?;
    }
    Ok(())
}
