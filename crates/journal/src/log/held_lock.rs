//! The lock that a process holds on a run as long as it has its lease. The kernel releases it with any death of the process,
//! and shows it across containers, where process ids say nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock, futimens};
use rustix::io::Errno;

use super::file_io::{io_error, open_or_create_file};
use crate::{Error, Liveness, Owner};

/// The file that is locked, in the folder of a run.
const HELD_FILE: &str = "held";
/// How often a holder says that it lives, for machines to which its lock is not visible.
const BEAT: Duration = Duration::from_secs(5);
/// How long it may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long another one is waited for: whoever looks locks the file for a moment, and a killed holder's lock ends with the
/// last program that it was just starting.
const WAIT_MAX: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// The device and the number of a file.
type FileId = (u64, u64);

/// The locks of this process.
static HELD: Mutex<BTreeMap<FileId, File>> = Mutex::new(BTreeMap::new());
static BEATS: Once = Once::new();

fn held_files() -> MutexGuard<'static, BTreeMap<FileId, File>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a run for this process, if it has not done so. A file system that has no such locks is none's fault: process ids say what they can there.
///
/// # Errors
/// [`Error::Busy`] when another process keeps it locked; [`Error::Io`].
pub(super) fn lock_run(folder: &Path) -> Result<(), Error> {
    let path = folder.join(HELD_FILE);
    let file = open_or_create_file(&path)?;
    let about = file.metadata().map_err(io_error(&path, "look at"))?;
    if held_files().contains_key(&(about.dev(), about.ino())) {
        return Ok(());
    }
    let mut waited = Duration::ZERO;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::WOULDBLOCK | Errno::INTR) if waited < WAIT_MAX => {
                std::thread::sleep(PAUSE);
                waited += PAUSE;
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                return Err(Error::Busy { path, doing: "acquire a lease" });
            }
            Err(_) => return Ok(()),
        }
    }
    touch_file(&file);
    held_files().insert((about.dev(), about.ino()), file);
    BEATS.call_once(|| {
        // Without it, other machines take the run for dead only later than they could.
        let _ = std::thread::Builder::new().name("lease".to_owned()).spawn(|| {
            loop {
                std::thread::sleep(BEAT);
                held_files().values().for_each(touch_file);
            }
        });
    });
    Ok(())
}

/// Sets the time of the file to now, by the clock of its server.
fn touch_file(file: &File) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let _ = futimens(file, &Timestamps { last_access: omitted, last_modification: now });
}

/// Unlocks a run, if this process locked it.
pub(super) fn unlock_run(folder: &Path) {
    if let Ok(about) = fs::metadata(folder.join(HELD_FILE)) {
        held_files().remove(&(about.dev(), about.ino()));
    }
}

/// Whether the holder of a run lives, as far as its lock says; `None` if that says nothing.
pub(super) fn see_holder(folder: &Path, owner: &Owner, may_write: bool) -> Option<Liveness> {
    let file = File::open(folder.join(HELD_FILE)).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => return Some(Liveness::Alive),
        Err(_) => return None,
        Ok(()) => drop(flock(&file, FlockOperation::Unlock)),
    }
    let here = Owner::current();
    if !owner.boot.is_empty() && owner.boot == here.boot {
        return Some(Liveness::Dead);
    }
    // A server may show the locks of one machine only.
    (may_write && is_silent(folder, &file)?).then_some(Liveness::Dead)
}

/// Whether a holder has said nothing for long; `None` if nobody can say: the time is compared with that of a new file, of the
/// same clock.
fn is_silent(folder: &Path, held: &File) -> Option<bool> {
    let last = held.metadata().ok()?.modified().ok()?;
    let now = time_of_new_file(folder)?;
    Some(now.duration_since(last).is_ok_and(|silent| silent > SILENCE_MAX))
}

fn time_of_new_file(folder: &Path) -> Option<std::time::SystemTime> {
    let path = folder.join(format!("{HELD_FILE}.{}", std::process::id()));
    let made = File::create(&path).and_then(|file| file.metadata()).and_then(|about| about.modified());
    let _ = fs::remove_file(&path);
    made.ok()
}
