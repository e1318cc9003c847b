//! One shim at a time in a folder: waiting for the former one, and ending it when it does not go.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process_group};

use super::error::{Error, io_at};
use super::processes;
use super::spool::{Spool, read_json};
use super::wire::{Group, Process, Spec};

/// How long a former shim may take to end by itself: its grace is 300 ms, its last sync may be slow.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long processes may take to vanish after SIGKILL.
const KILLED_WITHIN: Duration = Duration::from_secs(2);
const POLL_EVERY: Duration = Duration::from_millis(5);

/// Opens the lock file, which is never removed: a lock on a removed file excludes nobody.
pub(super) fn open(spool: &Spool) -> Result<File, Error> {
    let path = spool.lock();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(&path).map_err(io_at("open", &path))
}

/// Returns the held lock of a folder in which nothing runs any more.
pub(super) async fn claim(spool: &Spool, patience: Duration) -> Result<File, Error> {
    let lock = open(spool)?;
    let failed = || io_at("lock", &spool.dir);
    if !try_for(&lock, patience).await.map_err(failed())? {
        kill_recorded(spool);
        if !try_for(&lock, KILLED_WITHIN).await.map_err(failed())? {
            return Err(Error::Busy { dir: spool.dir.clone() });
        }
    }
    sweep(spool).await;
    Ok(lock)
}

/// Takes the lock within `patience`; false when somebody else kept it.
pub(super) async fn try_for(lock: &File, patience: Duration) -> io::Result<bool> {
    let until = Instant::now() + patience;
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
pub(super) fn try_for_blocking(lock: &File, patience: Duration) -> io::Result<bool> {
    let until = Instant::now() + patience;
    while !try_now(lock)? {
        if Instant::now() >= until {
            return Ok(false);
        }
        std::thread::sleep(POLL_EVERY);
    }
    Ok(true)
}

/// Kills what a shim left that was itself killed: those of its start that still carry its mark. A shim that could
/// complete the spool has left nobody.
pub(super) async fn sweep(spool: &Spool) {
    if spool.finished(None).is_some() {
        return;
    }
    let Some(spec) = read_json::<Spec>(&spool.spec()) else { return };
    let until = Instant::now() + KILLED_WITHIN;
    while processes::kill_marked(&spec.start) > 0 && Instant::now() < until {
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// Kills a shim that hangs, and its child's group. Process ids are reused: only those whose start time is still the
/// recorded one are meant.
fn kill_recorded(spool: &Spool) {
    let Some(group) = read_json::<Group>(&spool.group()) else { return };
    let same = |recorded: &Process| {
        recorded.started.is_some() && processes::started(recorded.pid) == recorded.started
    };
    if same(&group.leader)
        && let Some(leader) = Pid::from_raw(group.leader.pid)
    {
        // It may have gone by now; then there is nothing to do.
        let _ = kill_process_group(leader, Signal::KILL);
    }
    if same(&group.shim) {
        processes::kill(group.shim.pid);
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

    use super::*;
    use crate::process::spool::to_json;
    use crate::process::wire::VERSION;

    /// A stand-in for a shim that holds the lock and hangs, and for its child.
    fn hang(spool: &Spool) -> [Child; 2] {
        let lock = open(spool).unwrap();
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
            Process { pid, started: started(pid) }
        };
        let group = Group { version: VERSION, shim: process(shim), leader: process(leader) };
        std::fs::write(spool.group(), to_json(&group)).unwrap();
    }

    fn end(hung: [Child; 2]) {
        for mut child in hung {
            // The group's leader may be reaped and its sleeper still there, or nobody.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            child.wait().unwrap();
        }
    }

    #[tokio::test]
    async fn a_shim_that_hangs_is_killed_with_its_child() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::at(dir.path()).unwrap();
        let mut hung = hang(&spool);
        record(&spool, &hung, processes::started);
        claim(&spool, Duration::from_millis(20)).await.unwrap();
        assert!(!hung[1].wait().unwrap().success());
        end(hung);
    }

    #[tokio::test]
    async fn a_process_that_only_has_the_recorded_id_is_spared() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::at(dir.path()).unwrap();
        let mut hung = hang(&spool);
        record(&spool, &hung, |_| Some("another time".to_owned()));
        let claimed = claim(&spool, Duration::from_millis(20)).await;
        assert!(matches!(claimed, Err(Error::Busy { .. })), "{claimed:?}");
        assert!(hung.iter_mut().all(|child| child.try_wait().unwrap().is_none()));
        end(hung);
    }
}
