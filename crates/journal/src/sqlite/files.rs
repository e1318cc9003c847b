//! Creates the files of a journal, and checks them before SQLite opens them.
//!
//! Nothing here opens an existing file. Merely closing a file that SQLite has open elsewhere in this process drops its
//! locks (POSIX; "How To Corrupt An SQLite Database File", 2.2).

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// SQLite's page size, in bytes. It is the default, but set explicitly: a file whose size is not a multiple of it is
/// truncated.
pub(super) const PAGE_SIZE: u64 = 4096;

/// The file metadata of a journal at rest, which has no write-ahead log. Any write changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RestMetadata {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl RestMetadata {
    /// Reads the metadata of the journal at `path`, with links resolved. `None` when it has a log: it is in use, or its
    /// last writer was killed.
    pub(super) fn of(path: &Path) -> Result<Option<Self>, Error> {
        // Read the file first: a writer that starts in between is detected by its log.
        let file = metadata_of(path)?;
        let rest = Self { inode: file.ino(), size: file.size(), modified: (file.mtime(), file.mtime_nsec()) };
        Ok(if log_size(path)?.is_none() { Some(rest) } else { None })
    }
}

/// Creates the file and its folders, if missing. Only the owner can read the file, because records hold prompts; SQLite
/// gives the files next to it the same mode.
pub(super) fn create_journal_file(path: &Path) -> Result<(), Error> {
    let named = |path: &Path, source| Error::Io { path: path.to_owned(), doing: "create", source };
    if let Some(folder) = path.parent() {
        create_folder(folder).map_err(|source| named(folder, source))?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(source) if source.kind() != ErrorKind::AlreadyExists => Err(named(path, source)),
        _ => Ok(()),
    }
}

/// Resolves symbolic links, as SQLite does before it names the files next to the journal.
pub(super) fn resolve_links(path: &Path) -> Result<PathBuf, Error> {
    fs::canonicalize(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => Error::Missing { path: path.to_owned() },
        _ => Error::Io { path: path.to_owned(), doing: "find", source },
    })
}

/// Refuses damage that SQLite ignores: a truncated last page, which it fills with zeros, and an emptied file whose log
/// still holds records, which it deletes.
///
/// Also refuses a folder, a FIFO or a device in place of a file, which SQLite would wait for or misread.
pub(super) fn refuse_cut(path: &Path) -> Result<(), Error> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        if let Ok(found) = fs::metadata(&file)
            && let Some(kind) = other_kind(&found)
        {
            return Err(Error::NoFile { path: file.into(), kind });
        }
    }
    let damaged = |what: &str| Error::Damaged { path: path.to_owned(), what: what.to_owned(), source: None };
    // Check the log first: a new journal gets its first page before its log.
    if log_size(path)?.is_some_and(|size| size > 0) {
        return match metadata_of(path)?.size() {
            0 => Err(damaged("the file is empty but its write-ahead log is not")),
            _ => Ok(()),
        };
    }
    // With a log the file may end anywhere: its last pages may still be in the log.
    match RestMetadata::of(path)? {
        Some(rest) if rest.size % PAGE_SIZE != 0 && RestMetadata::of(path)? == Some(rest) => {
            Err(damaged("it is not a database, or the end of the file is missing"))
        }
        _ => Ok(()),
    }
}

/// Creates a folder and its parents, and syncs them: SQLite only syncs the folder of the file.
fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(Path::new(""));
    create_folder(above)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => File::open(if above.as_os_str().is_empty() { Path::new(".") } else { above })?.sync_all(),
    }
}

/// The kind of a thing that is no regular file.
fn other_kind(found: &Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    if kind.is_file() {
        return None;
    }
    Some(match kind {
        kind if kind.is_dir() => "folder",
        kind if kind.is_fifo() => "FIFO",
        kind if kind.is_socket() => "socket",
        _ => "device",
    })
}

fn log_size(path: &Path) -> Result<Option<u64>, Error> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    match fs::metadata(&log) {
        Ok(log) => Ok(Some(log.size())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { path: log.into(), doing: "look at", source }),
    }
}

fn metadata_of(path: &Path) -> Result<Metadata, Error> {
    fs::metadata(path).map_err(|source| Error::Io { path: path.to_owned(), doing: "look at", source })
}
