//! Removes locks that a killed git left.

#![expect(clippy::disallowed_methods, reason = "the git folder of the user")]

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use super::error::{WorktreeError, io_at};
use super::git::Git;
use super::repository::Repository;
use crate::process;

/// The age at which a lock can be stale. Programs that are not called `git` (editors) hold their locks for less.
const AGE_MIN: Duration = Duration::from_secs(1);

/// The clocks of files and processes tick every 4 to 10 ms, so a time of theirs may lie before an earlier one of ours.
const SLACK: Duration = Duration::from_millis(100);

/// How long to wait for a running git to remove its lock.
const GIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Removes the stale locks of the repository that contains `work`: of its index, HEAD, settings and references, those
/// that were created after `since` and whose creator no longer lives. Returns the paths of the removed locks.
///
/// An agent that is killed during `git commit` may leave locks: git removes its locks on SIGTERM, but not on SIGKILL
/// and not in the moment between creating a lock and registering it. Every later commit would fail. A commit that lacks
/// only its last step is ended instead.
///
/// Processes of other containers that share the folder are not seen.
///
/// Takes a second or two if there are locks. Removes nothing on systems other than Linux, where processes cannot be
/// listed.
///
/// # Errors
/// [`WorktreeError::Io`] when a lock cannot be removed. A folder in no working tree has no locks.
pub fn clear_stale_locks(work: &Path, since: SystemTime) -> Result<Vec<PathBuf>, WorktreeError> {
    let mut removed = Vec::new();
    if !cfg!(target_os = "linux") {
        return Ok(removed);
    }
    let Some((git_dir, common_dir)) = git_dirs(work) else { return Ok(removed) };
    let mut locks = find_lock_files(&git_dir, &common_dir);
    locks.retain(|lock| creation_time_of_lock(lock).is_some_and(|made| made + SLACK >= since));
    if locks.is_empty() {
        return Ok(removed);
    }
    let folders = repository_folders(work, &git_dir, &common_dir);
    for lock in locks {
        if is_stale(&lock, &folders) {
            if lock == git_dir.join("index.lock")
                && let Ok(Some(repository)) = Repository::find(work)
                && finish_commit(&Git::in_repository(repository), &lock)
            {
                removed.push(lock);
                continue;
            }
            match fs::remove_file(&lock) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(io_at("remove", &lock)(error));
                }
                _ => removed.push(lock),
            }
        }
    }
    Ok(removed)
}

/// Ends a `git commit` that was killed after it had moved the branch and before it put the new index in place, by doing
/// that. `lock` is the `index.lock` that it left. Otherwise everything of that commit would look changed back in the
/// index, and the same commit again would find nothing to do. Returns whether the lock was such an index: one with
/// exactly the files of HEAD.
pub(super) fn finish_commit(git: &Git, lock: &Path) -> bool {
    if !fs::symlink_metadata(lock).is_ok_and(|about| about.is_file() && about.len() > 0) {
        return false;
    }
    let new = git.clone().with("GIT_INDEX_FILE", lock);
    let is_head = new.output(&["diff-index", "--cached", "--quiet", "HEAD", "--"], b"");
    is_head.is_ok_and(|output| output.status.success()) && fs::rename(lock, lock.with_extension("")).is_ok()
}

/// The git folder of the working tree, and the one that all working trees of the repository share. Without git
/// processes, because this runs after every command.
fn git_dirs(work: &Path) -> Option<(PathBuf, PathBuf)> {
    let dot_git = work.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists())?;
    let git_dir = match fs::read_to_string(&dot_git) {
        // A linked worktree has a file that names its folder.
        Ok(text) => dot_git.parent()?.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => dot_git,
    };
    let git_dir = fs::canonicalize(git_dir).ok()?;
    let common = fs::read_to_string(git_dir.join("commondir")).unwrap_or_default();
    let common_dir = fs::canonicalize(git_dir.join(common.trim())).ok()?;
    Some((git_dir, common_dir))
}

/// The locks in the git folders.
fn find_lock_files(git_dir: &Path, common_dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in [git_dir, common_dir] {
        add_locks(dir, false, &mut found);
        add_locks(&dir.join("refs"), true, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

fn add_locks(dir: &Path, deep: bool, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && deep {
            add_locks(&entry.path(), deep, found);
        } else if kind.is_file() && is_git_lock(&entry.path(), deep) {
            found.push(entry.path());
        }
    }
}

/// Whether a file is a lock of git. Other programs may have locks in the git folder too.
fn is_git_lock(path: &Path, reference: bool) -> bool {
    const NAMES: [&str; 5] =
        ["index.lock", "config.lock", "config.worktree.lock", "packed-refs.lock", "shallow.lock"];
    // `HEAD.lock`, `REBASE_HEAD.lock` and so on.
    let pseudo_reference = |name: &str| {
        let stem = name.strip_suffix(".lock").unwrap_or_default();
        !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    match reference {
        true => path.extension().is_some_and(|extension| extension == "lock"),
        false => path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| NAMES.contains(&name) || pseudo_reference(name)),
    }
}

/// Whether any process has the lock open. This finds holders that are not called `git`.
fn is_open(lock: &Path) -> bool {
    let Ok(lock) = fs::canonicalize(lock) else { return false };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.map(|process| process.path().join("fd")).any(|folder| {
        let mut open = fs::read_dir(folder).into_iter().flatten().flatten();
        open.any(|file| fs::read_link(file.path()).is_ok_and(|path| path == lock))
    })
}

/// When a lock was created; `None` if it is gone.
fn creation_time_of_lock(lock: &Path) -> Option<SystemTime> {
    fs::symlink_metadata(lock).and_then(|about| about.modified()).ok()
}

/// Whether the lock stays although no process that could have created it lives.
fn is_stale(lock: &Path, folders: &[PathBuf]) -> bool {
    const CHECK_INTERVAL: Duration = Duration::from_millis(50);
    let Some(first) = creation_time_of_lock(lock) else { return false };
    let mut waited = Duration::ZERO;
    loop {
        // Ended meanwhile, or taken by another process.
        if creation_time_of_lock(lock) != Some(first) {
            return false;
        }
        let Some(held) = may_be_held(first, folders) else { return false };
        let old = SystemTime::now().duration_since(first).is_ok_and(|age| age >= AGE_MIN);
        if !held && (old || waited >= AGE_MIN) {
            return !is_open(lock);
        }
        if waited >= GIT_TIMEOUT {
            return false;
        }
        thread::sleep(CHECK_INTERVAL);
        waited += CHECK_INTERVAL;
    }
}

/// The folders in which a git works on this repository: its working trees and its git folders.
fn repository_folders(work: &Path, git_dir: &Path, common_dir: &Path) -> Vec<PathBuf> {
    let mut folders = vec![git_dir.to_owned(), common_dir.to_owned()];
    let listed = Repository::working_trees(work).unwrap_or_default().concat();
    let paths = listed.iter().filter_map(|line| line.strip_prefix("worktree ")).map(PathBuf::from);
    folders.extend(paths.chain([work.to_owned()]).filter_map(|path| fs::canonicalize(path).ok()));
    folders
}

/// Whether a running git process may have made the lock: it works in one of these folders and started before `made`.
/// `None` if processes cannot be listed.
fn may_be_held(made: SystemTime, folders: &[PathBuf]) -> Option<bool> {
    let lock_age = SystemTime::now().duration_since(made).unwrap_or_default();
    let processes = fs::read_dir("/proc").ok()?;
    let held = processes.flatten().map(|process| process.path()).any(|process| {
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        let is_git = name.trim_end() == "git" || name.starts_with("git-");
        is_git
            && age_of_process(&process).is_none_or(|age| age + SLACK >= lock_age)
            && works_in(&process, folders)
    });
    Some(held)
}

/// The age of a process; `None` if it is unknown.
fn age_of_process(process: &Path) -> Option<Duration> {
    /// The unit of times in /proc, on all architectures.
    const TICKS_PER_SECOND: f64 = 100.0;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let pid = process.file_name()?.to_str()?.parse().ok()?;
    let started: f64 = process::start_time_of_process(pid)?.parse().ok()?;
    Duration::try_from_secs_f64((uptime - started / TICKS_PER_SECOND).max(0.0)).ok()
}

/// Whether a process works in one of the folders, or names one as its repository.
fn works_in(process: &Path, folders: &[PathBuf]) -> bool {
    let inside = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    let elsewhere = match fs::read_link(process.join("cwd")) {
        Ok(cwd) => !inside(&cwd),
        // A process of another user may work anywhere. One without a working folder has just ended.
        Err(error) => error.kind() != std::io::ErrorKind::PermissionDenied,
    };
    if !elsewhere {
        return true;
    }
    // A git may work on a repository from another folder.
    let words = |file: &str| fs::read(process.join(file)).unwrap_or_default();
    let named = [words("environ"), words("cmdline")].concat();
    named.split(|byte| *byte == 0).any(|word| {
        let word = String::from_utf8_lossy(word);
        let path = word.strip_prefix("GIT_DIR=").or_else(|| word.strip_prefix("--git-dir="));
        path.is_some_and(|path| fs::canonicalize(path).map_or(true, |path| inside(&path)))
    })
}
