//! Lets one run at a time work in a working tree: two agents in one tree overwrite each other's files, and nobody can
//! tell which of them changed what.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::PathBuf,
};

use cuegate_journal::RunId;
use cuegate_runner::StateDir;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::Failure;

/// The lock of a working tree. The kernel releases it when the process dies.
#[derive(Debug)]
pub(crate) struct TreeLock(#[expect(dead_code, reason = "the lock lasts as long as the file is open")] File);

impl TreeLock {
    /// Locks the working tree of the project for a run.
    ///
    /// # Errors
    /// When another run works there, or the lock file cannot be written.
    pub(crate) fn take(home: &StateDir, id: &RunId) -> Result<TreeLock, Failure> {
        let (path, mut file) = open(home)?;
        if !lock(&file, &path)? {
            let other = name(&mut file);
            return Err(Failure::usage(
                format!("run {other} works in this working tree"),
                "`--worktree` gives a new run its own tree; `--wait` starts it when the other one has ended"
                    .to_owned(),
            ));
        }
        let written = file.set_len(0).and_then(|()| file.write_all(id.as_str().as_bytes()));
        written.map_err(|error| failed("write", &path, &error))?;
        Ok(TreeLock(file))
    }

    /// The run that works in the working tree of the project.
    ///
    /// # Errors
    /// When the lock file cannot be opened.
    pub(crate) fn holder(home: &StateDir) -> Result<Option<String>, Failure> {
        let (path, mut file) = open(home)?;
        Ok(if lock(&file, &path)? { None } else { Some(name(&mut file)) })
    }
}

fn open(home: &StateDir) -> Result<(PathBuf, File), Failure> {
    let path = home.dir().join("tree.lock");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|error| failed("open", &path, &error))?;
    Ok((path, file))
}

/// Tries to lock; `false` if another process holds the lock.
fn lock(file: &File, path: &std::path::Path) -> Result<bool, Failure> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(failed("lock", path, &error.into())),
    }
}

fn name(file: &mut File) -> String {
    let mut name = String::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(100).read_to_string(&mut name));
    match read {
        Ok(1..) => name,
        // The other process is about to write its name.
        _ => "of another process".to_owned(),
    }
}

fn failed(what: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
    Failure::environment(format!("failed to {what} `{}`: {error}", path.display()))
}
