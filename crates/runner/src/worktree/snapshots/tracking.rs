//! Whether files are as in the last commit.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use cuegate_journal::RunId;

use crate::state_dir::StateDir;
use crate::worktree::error::WorktreeError;
use crate::worktree::git::Git;
use crate::worktree::repository::Repository;

/// What git knows of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackingState {
    /// All of it is as in the last commit.
    Committed,
    /// It differs from the last commit.
    Changed,
    /// A part of it is in no commit.
    Untracked,
    /// There is no repository.
    Unknown,
}

/// Whether a repository brought the folder of a run: git tracks something of it, or a folder above it, or one of them is a link.
///
/// # Errors
/// When git fails.
pub fn is_run_tracked(home: &StateDir, run: &RunId) -> Result<bool, WorktreeError> {
    let folder = home.run(run);
    let Ok(below) = folder.strip_prefix(home.root()) else { return Ok(false) };
    let above: Vec<&Path> = below.ancestors().filter(|above| !above.as_os_str().is_empty()).collect();
    if above.iter().any(|path| home.root().join(path).is_symlink()) {
        return Ok(true);
    }
    if Repository::find(home.root())?.is_none() {
        return Ok(false);
    }
    let first = above.last().copied().unwrap_or(below);
    let mut path = OsString::from(":(literal)");
    path.push(first);
    let words = ["ls-files", "-z", "--"].map(OsStr::new);
    let listed = Git::new(home.root()).run(&[&words[..], &[path.as_os_str()]].concat())?;
    let mut tracked = listed.split(|byte| *byte == 0).map(|name| Path::new(OsStr::from_bytes(name)));
    // A submodule in the place of a folder has an entry of that name.
    Ok(tracked.any(|name| above.contains(&name) || name.starts_with(below)))
}

/// What git knows of `path`, which is relative to the folder `root`.
///
/// # Errors
/// When git fails.
pub fn tracking_of(root: &Path, path: &str) -> Result<TrackingState, WorktreeError> {
    if Repository::find(root)?.is_none() {
        return Ok(TrackingState::Unknown);
    }
    let path = format!(":(literal){path}");
    let args = [
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignored=matching",
        "--",
    ];
    let listed = Git::new(root).run(&[&args[..], &[path.as_str()]].concat())?;
    let mut entries = listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).peekable();
    if entries.peek().is_none() {
        // Also if there is no such file in any commit.
        let known = Git::new(root).run(&["ls-files", "-z", "--", path.as_str()])?;
        return Ok(if known.is_empty() { TrackingState::Untracked } else { TrackingState::Committed });
    }
    let is_new = |entry: &[u8]| entry.starts_with(b"??") || entry.starts_with(b"!!");
    Ok(if entries.any(is_new) { TrackingState::Untracked } else { TrackingState::Changed })
}
