//! Locks that a killed git left behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use super::error::{Error, io_at};
use super::git::Git;

/// Removes the lock on the index of the working tree at `work` when a git that is gone left it: it was made after
/// `since`, and no git is at work there now. Returns its path when it was removed.
///
/// An agent that is stopped inside `git commit` may leave one: git removes its locks when it is told to end, but there is
/// a moment between making one and knowing of it. Every later commit would fail, and no agent would know why.
///
/// Where running programs cannot be listed (other than on Linux) nothing is removed.
///
/// # Errors
/// [`Error::Io`] when the lock cannot be removed. A folder in no working tree has no lock.
pub fn clear_stale_lock(work: &Path, since: SystemTime) -> Result<Option<PathBuf>, Error> {
    let Ok(lock) = Git::at(work).line(&["rev-parse", "--path-format=absolute", "--git-path", "index.lock"])
    else {
        return Ok(None);
    };
    let lock = PathBuf::from(lock);
    let Ok(made) = fs::metadata(&lock).and_then(|about| about.modified()) else { return Ok(None) };
    if made < since || !nobody_at_work(work) {
        return Ok(None);
    }
    fs::remove_file(&lock).map_err(io_at("remove", &lock))?;
    Ok(Some(lock))
}

/// Whether no git works there; one that does gets a moment to end.
fn nobody_at_work(work: &Path) -> bool {
    const LOOKS: u32 = 20;
    for _ in 0..LOOKS {
        match git_at_work(work) {
            Some(false) => return true,
            None => return false,
            Some(true) => thread::sleep(Duration::from_millis(25)),
        }
    }
    false
}

/// Whether some git works in this folder or below it; `None` where nobody can say.
fn git_at_work(work: &Path) -> Option<bool> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let work = fs::canonicalize(work).ok()?;
    let entries = fs::read_dir("/proc").ok()?;
    let found = entries.flatten().any(|process| {
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        let git = name.trim_end() == "git" || name.starts_with("git-");
        git && match fs::read_link(process.path().join("cwd")) {
            Ok(cwd) => cwd.starts_with(&work),
            // Another user's may be anywhere; one without a folder has just ended.
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        }
    });
    Some(found)
}
