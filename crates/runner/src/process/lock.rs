//! The lock of a command folder, which allows one shim at a time. Waits for a former shim and kills it if it hangs.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::error::{ProcessError, io_at};
use super::kill;
use super::spool::{Spool, read_json};
use super::wire::Spec;

/// Time limit for a former shim to end by itself: its grace period is 300 ms, its last sync may be slow.
pub(super) const SHIM_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for processes to end after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_EVERY: Duration = Duration::from_millis(5);

/// Opens the lock file. It is never removed: a lock on a removed file excludes no other process.
pub(super) fn open_lock_file(spool: &Spool) -> Result<File, ProcessError> {
    let path = spool.lock();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(&path).map_err(io_at("open", &path))
}

/// Ends the former command of a folder and returns the held lock.
pub(super) async fn acquire_folder_lock(spool: &Spool, timeout: Duration) -> Result<File, ProcessError> {
    let lock = open_lock_file(spool)?;
    let failed = || io_at("lock", &spool.dir);
    if !try_for(&lock, timeout).await.map_err(failed())? {
        kill::kill_recorded(spool);
        if !try_for(&lock, KILL_TIMEOUT).await.map_err(failed())? {
            return Err(ProcessError::Busy { dir: spool.dir.clone() });
        }
    }
    kill_remaining_processes(spool).await;
    Ok(lock)
}

/// Whether a shim runs in the folder of a command, as far as it can be determined; else true.
pub fn is_running(dir: &std::path::Path) -> bool {
    let Ok(spool) = Spool::open(dir) else { return true };
    match File::open(spool.lock()) {
        Ok(lock) => !try_now(&lock).unwrap_or(false),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Takes the lock within `timeout`; false when another process still holds it.
pub(super) async fn try_for(lock: &File, timeout: Duration) -> io::Result<bool> {
    let until = Instant::now() + timeout;
    loop {
        if try_now(lock)? {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// As [`try_for`], for the shim, which has no runtime.
pub(super) fn try_for_blocking(lock: &File, timeout: Duration) -> io::Result<bool> {
    let until = Instant::now() + timeout;
    while !try_now(lock)? {
        if Instant::now() >= until {
            return Ok(false);
        }
        std::thread::sleep(POLL_EVERY);
    }
    Ok(true)
}

/// Kills the remaining processes of a killed shim, which carry the mark of its start. A shim that completed its spool
/// left no processes.
pub(super) async fn kill_remaining_processes(spool: &Spool) {
    if spool.finished(None).is_some() {
        return;
    }
    let Some(spec) = read_json::<Spec>(&spool.spec()) else { return };
    let until = Instant::now() + KILL_TIMEOUT;
    while kill::kill_marked(&spec.start) > 0 && Instant::now() < until {
        tokio::time::sleep(POLL_EVERY).await;
    }
}

fn try_now(lock: &File) -> io::Result<bool> {
    match flock(lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use rustix::process::{Pid, Signal, kill_process_group};

    use super::*;
    use crate::process::spool::to_json;
    use crate::process::wire::{Group, ProcessIdentity, VERSION};

    /// Starts a fake shim that holds the lock and hangs, and a fake child.
    fn hang(spool: &Spool) -> [Child; 2] {
        let lock = open_lock_file(spool).unwrap();
        let mut shim = Command::new("flock");
        // `-o`: the sleeper does not keep the lock when `flock` is killed.
        let shim =
            shim.args(["-o"]).arg(spool.lock()).args(["sleep", "100"]).process_group(0).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while try_now(&lock).unwrap() {
            flock(&lock, FlockOperation::Unlock).unwrap();
            assert!(Instant::now() < until, "`flock` does not get its lock");
            std::thread::sleep(Duration::from_millis(2));
        }
        [shim, Command::new("sleep").arg("100").process_group(0).spawn().unwrap()]
    }

    fn record(spool: &Spool, [shim, leader]: &[Child; 2], started: impl Fn(i32) -> Option<String>) {
        let process = |child: &Child| {
            let pid = child.id().cast_signed();
            ProcessIdentity { pid, started: started(pid) }
        };
        let group = Group { version: VERSION, shim: process(shim), leader: process(leader) };
        std::fs::write(spool.group(), to_json(&group)).unwrap();
    }

    fn end(hung: [Child; 2]) {
        for mut child in hung {
            // Fails if the whole group has ended already.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            child.wait().unwrap();
        }
    }

    #[tokio::test]
    async fn a_shim_that_hangs_is_killed_with_its_child() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::open(dir.path()).unwrap();
        let mut hung = hang(&spool);
        record(&spool, &hung, kill::start_time_of_process);
        acquire_folder_lock(&spool, Duration::from_millis(20)).await.unwrap();
        assert!(!hung[1].wait().unwrap().success());
        end(hung);
    }

    #[tokio::test]
    async fn a_process_that_only_has_the_recorded_id_is_spared() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::open(dir.path()).unwrap();
        let mut hung = hang(&spool);
        record(&spool, &hung, |_| Some("another time".to_owned()));
        let claimed = acquire_folder_lock(&spool, Duration::from_millis(20)).await;
        assert!(matches!(claimed, Err(ProcessError::Busy { .. })), "{claimed:?}");
        assert!(hung.iter_mut().all(|child| child.try_wait().unwrap().is_none()));
        end(hung);
    }
}
