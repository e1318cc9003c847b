//! Lets one run at a time work in a working tree: two agents in one tree overwrite each other's files, and nobody can
//! tell which of them changed what.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::PathBuf,
    time::{Duration, Instant},
};

use cuegate_journal::{Liveness, Owner, RunId};
use cuegate_runner::StateDir;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::{Failure, project};

/// The lock of a working tree. The kernel releases it when the process dies.
#[derive(Debug)]
pub(crate) struct TreeLock(File);

impl Drop for TreeLock {
    /// A later process must not name this run.
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
    }
}

/// Called with the name of the run that works in the tree, if the caller waits for it.
pub(crate) type Waiting<'w> = Option<&'w mut dyn FnMut(&str)>;

/// How often a waiting process tries again.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a lock may be held that no living process needs.
const RELEASE_MAX: Duration = Duration::from_secs(10);

impl TreeLock {
    /// Locks a working tree for a run: that of the project, or the worktree that the run `made_by` made.
    ///
    /// # Errors
    /// When another run works there and the caller does not wait, or the lock file cannot be written. `hint` says what
    /// to do then.
    pub(crate) fn take(
        home: &StateDir,
        id: &RunId,
        made_by: Option<&str>,
        hint: &str,
        mut waiting: Waiting<'_>,
    ) -> Result<TreeLock, Failure> {
        let (path, mut file) = open_lock_file(home, made_by)?;
        let begun = Instant::now();
        while !try_lock_file(&file, &path)? {
            let holder = read_holder(&mut file);
            // Without a name, the other process is about to write it or to release the lock.
            let other = holder.as_ref().map_or("another process".to_owned(), |run| format!("run {run}"));
            match &mut waiting {
                Some(tell) => tell(&other),
                None => {
                    let is_kept = holder.map_or(Ok(false), |run| is_driven_by_another(home, &run));
                    if is_kept? || begun.elapsed() > RELEASE_MAX {
                        let message = format!("{other} works in this working tree");
                        return Err(Failure::usage(message, hint.to_owned()));
                    }
                }
            }
            std::thread::sleep(PAUSE);
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(id.as_str().as_bytes()));
        written.map_err(|error| failure_of_lock_error("write", &path, &error))?;
        Ok(TreeLock(file))
    }
}

/// Whether another process drives a run, beyond the moment in which it ends. A lock outlives the process of its run where
/// that was killed: the kernel releases it with the last program that was just being started.
fn is_driven_by_another(home: &StateDir, run: &RunId) -> Result<bool, Failure> {
    let Some(journal) = project::open_journal_read_only(home)? else { return Ok(false) };
    project::wait_for_release(&*journal, run)?;
    let holder = journal.holder(run)?.map(|lease| lease.owner);
    Ok(holder.is_some_and(|owner| owner.liveness() != Liveness::Dead && owner != Owner::current()))
}

fn open_lock_file(home: &StateDir, made_by: Option<&str>) -> Result<(PathBuf, File), Failure> {
    let folder = match made_by.and_then(|run| run.parse().ok()) {
        Some(run) => home.run(&run),
        None => home.dir().to_owned(),
    };
    std::fs::create_dir_all(&folder).map_err(|error| failure_of_lock_error("create", &folder, &error))?;
    let path = folder.join("tree.lock");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|error| failure_of_lock_error("open", &path, &error))?;
    Ok((path, file))
}

/// Tries to lock; `false` if another process holds the lock.
fn try_lock_file(file: &File, path: &std::path::Path) -> Result<bool, Failure> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(failure_of_lock_error("lock", path, &error.into())),
    }
}

fn read_holder(file: &mut File) -> Option<RunId> {
    let mut name = String::new();
    file.seek(SeekFrom::Start(0)).and_then(|_| file.take(100).read_to_string(&mut name)).ok()?;
    name.parse().ok()
}

fn failure_of_lock_error(what: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
    Failure::environment(format!("failed to {what} `{}`: {error}", path.display()))
}
