//! Opens, locks and creates the files of a journal.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::Error;

/// How long an operation waits for other processes, which hold the lock of a run while they write one record.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);
/// How often it looks again.
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// The device and number of a file.
pub(super) type FileIdentity = (u64, u64);

/// The identity of a file; `None` if it cannot be read.
///
/// Its times are not asked for: once they were, Linux notes the exact time of the next write, and a record then waits for
/// the disk once more.
pub(super) fn file_identity(path: &Path) -> Option<FileIdentity> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
        if let Ok(about) = statx(CWD, path, AtFlags::empty(), StatxFlags::INO)
            && about.stx_mask & StatxFlags::INO.bits() != 0
        {
            return Some((makedev(about.stx_dev_major, about.stx_dev_minor), about.stx_ino));
        }
    }
    // Old kernels and some filters of system calls refuse it.
    let about = path.metadata().ok()?;
    Some((about.dev(), about.ino()))
}

/// Opens a file; `None` if there is none. Refuses a folder, FIFO or device in its place, which would be waited for or
/// misread.
pub(super) fn open_file(path: &Path, is_writable: bool) -> Result<Option<File>, Error> {
    let kind = match fs::metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(source) => return Err(io_error(path, "look at")(source)),
    };
    if !kind.is_file() {
        let kind = match kind {
            kind if kind.is_dir() => "folder",
            kind if kind.is_fifo() => "FIFO",
            kind if kind.is_socket() => "socket",
            _ => "device",
        };
        return Err(Error::NoFile { path: path.to_owned(), kind });
    }
    match OpenOptions::new().read(true).write(is_writable).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(io_error(path, "open")(source)),
    }
}

/// Opens a file for writing and creates a missing one. Only the user can read it, because records hold prompts.
pub(super) fn open_or_create_file(path: &Path) -> Result<File, Error> {
    if let Some(file) = open_file(path, true)? {
        return Ok(file);
    }
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map_err(io_error(path, "create"))
}

/// Creates a folder and its parents, each of which is durable afterwards.
pub(super) fn create_folder(folder: &Path) -> Result<(), Error> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(Path::new(""));
    create_folder(above)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(source) => Err(io_error(folder, "create")(source)),
        Ok(()) => sync_folder(above),
    }
}

/// Reads a part of a file, all of it.
pub(super) fn read_range(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// Removes what an interrupted removal left.
pub(super) fn remove_folder_if_there(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error(folder, "remove")(error)),
        _ => Ok(()),
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), Error> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(io_error(folder, "sync"))
}

/// A lock that other processes respect. It is released when this is dropped, and when the process ends.
pub(super) struct FileLock<'f>(&'f File);

impl<'f> FileLock<'f> {
    /// Waits for the lock.
    pub(super) fn take(file: &'f File, path: &Path, doing: &'static str) -> Result<Self, Error> {
        let deadline = Instant::now() + LOCK_WAIT_MAX;
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(FileLock(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                    thread::sleep(LOCK_PAUSE)
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    return Err(Error::Busy { path: path.to_owned(), doing });
                }
                Err(error) => return Err(io_error(path, "lock")(error.into())),
            }
        }
    }
}

impl Drop for FileLock<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// Makes an error of the system one of the journal.
pub(super) fn io_error(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, doing, source }
}
