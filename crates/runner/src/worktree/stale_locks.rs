//! Removes locks that a killed git left.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use super::error::{Error, io_at};
use super::git::Git;

/// Removes a stale index lock of the working tree at `work`: one that was created after `since` while no git runs there
/// now. Returns the path of the removed lock.
///
/// An agent that is stopped during `git commit` may leave a lock: git removes its locks on SIGTERM, but not in the
/// moment between creating a lock and registering it. Every later commit would fail.
///
/// Removes nothing on systems other than Linux, where processes cannot be listed.
///
/// # Errors
/// [`Error::Io`] when the lock cannot be removed. A folder in no working tree has no lock.
pub fn clear_stale_lock(work: &Path, since: SystemTime) -> Result<Option<PathBuf>, Error> {
    let Ok(lock) = Git::new(work).line(&["rev-parse", "--path-format=absolute", "--git-path", "index.lock"])
    else {
        return Ok(None);
    };
    let lock = PathBuf::from(lock);
    let Ok(made) = fs::metadata(&lock).and_then(|about| about.modified()) else { return Ok(None) };
    if made < since || !no_git_runs(work) {
        return Ok(None);
    }
    fs::remove_file(&lock).map_err(io_at("remove", &lock))?;
    Ok(Some(lock))
}

/// Whether no git runs there; waits up to half a second for a running one to end.
fn no_git_runs(work: &Path) -> bool {
    const CHECKS: u32 = 20;
    for _ in 0..CHECKS {
        match git_runs(work) {
            Some(false) => return true,
            None => return false,
            Some(true) => thread::sleep(Duration::from_millis(25)),
        }
    }
    false
}

/// Whether a git runs in this folder or below it; `None` if unknown.
fn git_runs(work: &Path) -> Option<bool> {
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
            // A process of another user may run anywhere. One without a working folder has just ended.
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        }
    });
    Some(found)
}
