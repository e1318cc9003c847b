#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{ProcessError, io_at};
use super::lock;
use super::wire::{EndRecord, Spec, VERSION};

/// How a command ended, and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedCommand {
    /// How the program itself ended, also after a kill.
    pub exit: Exit,
    /// The time limit was reached.
    pub timed_out: bool,
    /// Stdout or stderr exceeded `output_max`; the first `output_max` bytes are here.
    pub capped: bool,
    /// The lifeline ended first: the runner died or cancelled.
    pub cut: bool,
    /// The number of processes that could not be ended within 5 s: another user's (`sudo`) or stuck in the kernel.
    /// Normally 0; always 0 without subreapers (macOS), where they cannot be counted.
    pub left: u32,
    /// Milliseconds from the start of the program to its end. Time asleep does not count.
    pub elapsed_ms: u64,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code (0–255).
    Code(i32),
    /// A signal of this number ended it.
    Signal(i32),
    /// The program or its interpreter does not exist; holds the system's message.
    NotFound(String),
    /// It could not be started for another reason (not executable, missing folder); holds the system's message.
    NotStarted(String),
}

/// Returns the result of the command in `dir` if it ended by itself and its spool is complete; else `None`, and the
/// command has to be started again. For resume. Ends by time or output limit count as well.
///
/// Waits up to 10 s for a shim that is still ending: it may be about to complete the spool, and a finished ask must not
/// be paid for twice. A damaged or foreign spool is ignored.
///
/// # Errors
/// [`ProcessError::Io`] when the lock cannot be read, [`ProcessError::Busy`] when a shim still holds it after 10 s.
pub async fn adopt_finished_command(dir: &Path) -> Result<Option<FinishedCommand>, ProcessError> {
    let spool = Spool::open(dir)?;
    if !spool.spec().exists() {
        return Ok(None);
    }
    let lock = lock::open_lock_file(&spool)?;
    if !lock::try_for(&lock, lock::SHIM_TIMEOUT).await.map_err(io_at("lock", &spool.lock()))? {
        return Err(ProcessError::Busy { dir: spool.dir });
    }
    Ok(spool.finished(None).filter(|finished| !finished.cut))
}

/// The result of a former start of a command.
#[derive(Debug)]
pub enum FormerStart {
    /// It was never started.
    None,
    /// It ended by itself.
    Whole(FinishedCommand),
    /// It was cut off.
    Cut {
        /// Its stdout so far.
        stdout: Vec<u8>,
    },
}

/// Returns the result of a former start of the command in `dir`. A shim that is still running gets 10 s to end and is
/// then killed with its descendants.
///
/// # Errors
/// [`ProcessError::Busy`] when the shim could not be ended, [`ProcessError::Io`] when the folder cannot be read.
pub async fn end_former_start(dir: &Path) -> Result<FormerStart, ProcessError> {
    let spool = Spool::open(dir)?;
    if !spool.spec().exists() {
        return Ok(FormerStart::None);
    }
    let _held = lock::acquire_folder_lock(&spool, lock::SHIM_TIMEOUT).await?;
    Ok(match spool.finished(None).filter(|finished| !finished.cut) {
        Some(finished) => FormerStart::Whole(finished),
        None => FormerStart::Cut { stdout: fs::read(spool.out()).unwrap_or_default() },
    })
}

/// When the command of this folder had ended, if it was cut off and its shim has noted that; `None` if it finished, or
/// nobody noted its end.
pub fn cut_off_at(dir: &Path) -> Option<SystemTime> {
    let spool = Spool::open(dir).ok()?;
    let cut = spool.finished(None)?.cut;
    fs::metadata(spool.exit()).and_then(|about| about.modified()).ok().filter(|_| cut)
}

/// The output of a command of this folder that was started and did not end by itself; `None` if it was not started, or
/// finished. Waits for the end of its shim.
///
/// # Errors
/// When the former shim cannot be ended.
pub async fn output_before_cut(dir: &Path) -> Result<Option<(Vec<u8>, Vec<u8>)>, ProcessError> {
    let spool = Spool::open(dir)?;
    if !matches!(end_former_start(dir).await?, FormerStart::Cut { .. }) || !spool.group().exists() {
        return Ok(None);
    }
    Ok(Some((fs::read(spool.out()).unwrap_or_default(), fs::read(spool.err()).unwrap_or_default())))
}

/// The folder of one command.
#[derive(Debug, Clone)]
pub(super) struct Spool {
    pub dir: PathBuf,
}

impl Spool {
    /// `dir` made absolute: the shim must not depend on the runner's working folder.
    pub fn open(dir: &Path) -> Result<Spool, ProcessError> {
        Ok(Spool { dir: std::path::absolute(dir).map_err(io_at("find", dir))? })
    }
    pub fn spec(&self) -> PathBuf {
        self.dir.join("spec.json")
    }
    pub fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }
    pub fn stdin(&self) -> PathBuf {
        self.dir.join("stdin")
    }
    pub fn out(&self) -> PathBuf {
        self.dir.join("out")
    }
    pub fn err(&self) -> PathBuf {
        self.dir.join("err")
    }
    pub fn group(&self) -> PathBuf {
        self.dir.join("group.json")
    }
    pub fn refused(&self) -> PathBuf {
        self.dir.join("refused")
    }
    pub fn log(&self) -> PathBuf {
        self.dir.join("shim.log")
    }
    pub fn exit(&self) -> PathBuf {
        self.dir.join("exit.json")
    }

    /// Removes the files of a former start. `exit.json` goes first, so that a crash in between never leaves a spool
    /// that looks complete.
    pub fn clear(&self) -> Result<(), ProcessError> {
        for path in
            [self.exit(), self.out(), self.err(), self.group(), self.refused(), self.stdin(), self.log()]
        {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(io_at("remove", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The content of the spool if it is complete and, if `start` is given, belongs to that start.
    pub fn finished(&self, start: Option<&str>) -> Option<FinishedCommand> {
        let ended: EndRecord = read_json(&self.exit())?;
        let spec: Spec = read_json(&self.spec())?;
        let ours = ended.version == VERSION
            && ended.start == spec.start
            && start.is_none_or(|start| start == ended.start);
        if !ours {
            return None;
        }
        let stdout = fs::read(self.out()).ok().filter(|out| out.len() as u64 == ended.out_bytes)?;
        let stderr = fs::read(self.err()).ok().filter(|err| err.len() as u64 == ended.err_bytes)?;
        let EndRecord { exit, timed_out, capped, cut, left, elapsed_ms, .. } = ended;
        Some(FinishedCommand { exit: exit.into(), timed_out, capped, cut, left, elapsed_ms, stdout, stderr })
    }
}

/// Milliseconds, saturating.
pub(super) fn as_ms(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

/// Creates or truncates a file that only its owner may read, because prompts and answers are private.
pub(super) fn create_private_file(path: &Path) -> Result<File, ProcessError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).map_err(io_at("create", path))
}

/// Writes `path` atomically and syncs it to disk.
pub(super) fn write_json_synced(path: &Path, value: &impl Serialize) -> Result<(), ProcessError> {
    let partial = path.with_extension("partial");
    let mut file = create_private_file(&partial)?;
    file.write_all(&to_json(value)).map_err(io_at("write", &partial))?;
    file.sync_all().map_err(io_at("sync", &partial))?;
    fs::rename(&partial, path).map_err(io_at("rename to", path))?;
    let dir = path.parent().expect("a file of a spool has a folder");
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io_at("sync", dir))
}

pub(super) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("the wire types have only string keys and cannot fail to serialise")
}

/// `None` if the file is missing, unreadable or damaged; the spool treats these alike.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
