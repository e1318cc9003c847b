//! Sources of a definition's files: the disk, or the journal of a run.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};
#[cfg(target_os = "linux")]
use std::{os::fd::OwnedFd, sync::Arc};

use cuegate_flow::model::BlobRef;
use cuegate_formats::{FILE_BYTES_MAX, Files, ReadError};
use cuegate_journal::{Digest, Journal, RunId};

/// Files in a folder. Nothing outside is read, not even through a symbolic link, except for the folders that are shared
/// between projects: those of the user, in which links are followed, and of an installed TAKT.
#[derive(Debug, Clone)]
pub struct DiskFiles {
    root: PathBuf,
    /// Whether links may lead out of the root: the user's own folder is often made of links.
    follows_links: bool,
    /// The shared folders by the virtual folders under which they are read, longer ones first.
    shared: Vec<(String, DiskFiles)>,
    /// The opened root: `openat2` resolves paths relative to it without checking each folder.
    #[cfg(target_os = "linux")]
    folder: Option<Arc<OwnedFd>>,
}

impl DiskFiles {
    /// The files in `root`.
    ///
    /// # Errors
    /// When `root` is not a readable folder.
    pub fn new(root: &Path) -> io::Result<DiskFiles> {
        let root = fs::canonicalize(root)?;
        #[cfg(target_os = "linux")]
        let folder = {
            use rustix::fs::{Mode, OFlags, open};
            open(&root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok().map(Arc::new)
        };
        Ok(DiskFiles {
            root,
            follows_links: false,
            shared: Vec::new(),
            #[cfg(target_os = "linux")]
            folder,
        })
    }

    /// Adds the files that definitions of TAKT share: those of the user, and those that TAKT itself brings.
    #[must_use]
    pub fn with_takt(mut self, builtins: Option<&Path>) -> DiskFiles {
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".takt"));
        let home = home.filter(|home| home.is_dir()).map(|home| (super::takt::USER.to_owned(), home));
        let installed = builtins.map(super::takt::list_language_folders).unwrap_or_default();
        for (prefix, folder) in home.into_iter().chain(installed) {
            if let Ok(files) = DiskFiles::new(&folder) {
                // In a project that is the home folder an agent may have made the links.
                let follows_links = prefix == super::takt::USER && !files.root.starts_with(&self.root);
                self.shared.push((prefix, DiskFiles { follows_links, ..files }));
            }
        }
        self.shared.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        self
    }

    /// The shared folder that a path leads into, with the rest of the path.
    fn shared(&self, path: &str) -> Option<(&DiskFiles, String)> {
        self.shared.iter().find_map(|(prefix, files)| {
            Some((files, path.strip_prefix(prefix.as_str())?.strip_prefix('/')?.to_owned()))
        })
    }

    /// The path on disk.
    fn place(&self, path: &str) -> PathBuf {
        match self.shared(path) {
            Some((files, rest)) => files.root.join(rest),
            None => self.root.join(path),
        }
    }

    /// Opens a file with `RESOLVE_BENEATH`; `None` if the kernel does not support it or refuses: a link may leave the
    /// root and lead back into it, which `by_real_path` allows.
    #[cfg(target_os = "linux")]
    fn beneath(&self, path: &str) -> Option<Result<fs::File, ReadError>> {
        use rustix::{
            fs::{Mode, OFlags, ResolveFlags, openat2},
            io::Errno,
        };
        // Non-blocking, so that opening a pipe does not wait for a writer; `refuse` then rejects it.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match openat2(self.folder.as_ref()?, path, flags, Mode::empty(), ResolveFlags::BENEATH) {
            Ok(file) => Some(Ok(file.into())),
            Err(Errno::NOENT | Errno::NOTDIR) => Some(Err(ReadError::NotFound)),
            Err(_) => None,
        }
    }

    /// Other systems resolve every file by its real path.
    #[cfg(not(target_os = "linux"))]
    fn beneath(&self, _path: &str) -> Option<Result<fs::File, ReadError>> {
        None
    }

    /// Opens a file by its real path.
    fn by_real_path(&self, path: &str) -> Result<fs::File, ReadError> {
        let real = fs::canonicalize(self.root.join(path)).map_err(read_error_of)?;
        if !self.follows_links && !real.starts_with(&self.root) {
            return Err(ReadError::Escapes);
        }
        // Check before opening: opening a pipe would wait for a writer.
        check_file_metadata(&fs::metadata(&real).map_err(read_error_of)?)?;
        fs::File::open(&real).map_err(read_error_of)
    }
}

fn read_error_of(error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ReadError::NotFound,
        _ => ReadError::Other(error.to_string()),
    }
}

/// Rejects folders, special files and files that are too large.
fn check_file_metadata(about: &fs::Metadata) -> Result<(), ReadError> {
    if about.is_dir() {
        return Err(ReadError::Folder);
    }
    // Reading a pipe or a device might never end.
    if !about.is_file() {
        return Err(ReadError::Other("it is not a regular file".to_owned()));
    }
    if about.len() > FILE_BYTES_MAX as u64 {
        return Err(ReadError::TooLarge);
    }
    Ok(())
}

impl Files for DiskFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        if let Some((files, rest)) = self.shared(path) {
            return files.read(&rest);
        }
        let mut file = self.beneath(path).unwrap_or_else(|| self.by_real_path(path))?;
        let about = file.metadata().map_err(read_error_of)?;
        check_file_metadata(&about)?;
        let mut bytes = Vec::with_capacity(about.len() as usize + 1);
        // Limit the read as well: the file may grow meanwhile.
        file.by_ref().take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(read_error_of)?;
        Ok(bytes)
    }
}

/// Detects a change of a file: modification time, change time, length and inode; `None` if the file does not exist.
type FileStamp = Option<(Option<SystemTime>, (i64, i64), u64, u64)>;

/// The current stamp of a file.
fn stamp_of_file(path: &Path) -> FileStamp {
    let about = fs::metadata(path).ok()?;
    // A copy may preserve an older modification time; the change time cannot be set.
    Some((about.modified().ok(), (about.ctime(), about.ctime_nsec()), about.len(), about.ino()))
}

/// The state of a file when it was last checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    stamp: FileStamp,
    /// The canonical path, and the digest of the bytes if they were read.
    held: (Option<PathBuf>, Option<Digest>),
}

impl FileState {
    /// The current state of a file.
    pub fn of_path(path: &Path) -> FileState {
        FileState {
            stamp: stamp_of_file(path),
            held: (canonical_path_of(path), read_regular_file(path).map(|bytes| Digest::for_bytes(&bytes))),
        }
    }

    /// Updates the state; returns whether it is another file or has other content. Rewriting the same content is not a
    /// change.
    pub fn changed(&mut self, path: &Path) -> bool {
        let stamp = stamp_of_file(path);
        if stamp == self.stamp {
            return false;
        }
        let now = FileState { stamp, ..FileState::of_path(path) };
        let is_other = (stamp.is_some(), &now.held) != (self.stamp.is_some(), &self.held);
        *self = now;
        is_other
    }
}

fn canonical_path_of(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// The bytes of a regular file.
fn read_regular_file(path: &Path) -> Option<Vec<u8>> {
    // Check before opening: opening a pipe would wait for a writer.
    check_file_metadata(&fs::metadata(path).ok()?).ok()?;
    fs::read(path).ok()
}

/// Records the state of every file that was looked for, also of missing ones: a change could change the definition.
pub struct WatchedFiles<'f> {
    files: &'f DiskFiles,
    sights: Mutex<BTreeMap<PathBuf, FileState>>,
}

impl<'f> WatchedFiles<'f> {
    /// Records what is read from these files.
    pub fn new(files: &'f DiskFiles) -> WatchedFiles<'f> {
        WatchedFiles { files, sights: Mutex::default() }
    }

    /// The recorded states by path.
    pub fn into_sights(self) -> BTreeMap<PathBuf, FileState> {
        self.sights.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files for WatchedFiles<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let place = self.files.place(path);
        // Take the stamp before reading: a change meanwhile is then detected later.
        let (stamp, real) = (stamp_of_file(&place), canonical_path_of(&place));
        let read = self.files.read(path);
        let held = (real, read.as_ref().ok().map(|bytes| Digest::for_bytes(bytes)));
        let mut sights = self.sights.lock().unwrap_or_else(PoisonError::into_inner);
        sights.entry(place).or_insert(FileState { stamp, held });
        read
    }
}

/// The files of a run's definition, from its journal.
pub struct KeptFiles<'j> {
    journal: &'j dyn Journal,
    run: &'j RunId,
    files: BTreeMap<String, BlobRef>,
}

impl<'j> KeptFiles<'j> {
    /// The texts of a run by file path.
    pub fn new(
        journal: &'j dyn Journal,
        run: &'j RunId,
        files: impl IntoIterator<Item = (String, BlobRef)>,
    ) -> KeptFiles<'j> {
        KeptFiles { journal, run, files: files.into_iter().collect() }
    }
}

impl Files for KeptFiles<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let blob = self.files.get(path).ok_or(ReadError::NotFound)?;
        let broken = |why: String| ReadError::Other(format!("failed to read it from the journal: {why}"));
        let digest = blob.digest.parse().map_err(|_| broken("its digest is damaged".to_owned()))?;
        match self.journal.blob(self.run, &digest) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(broken("it is missing".to_owned())),
            Err(error) => Err(broken(error.to_string())),
        }
    }
}

/// Records the content of every file that is read.
pub struct RecordedFiles<'f> {
    files: &'f dyn Files,
    seen: Mutex<Vec<(String, Vec<u8>)>>,
}

impl<'f> RecordedFiles<'f> {
    /// Records what is read from these files.
    pub fn new(files: &'f dyn Files) -> RecordedFiles<'f> {
        RecordedFiles { files, seen: Mutex::default() }
    }

    /// The recorded content by path.
    pub fn into_files(self) -> BTreeMap<String, Vec<u8>> {
        self.seen.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
    }
}

impl Files for RecordedFiles<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let bytes = self.files.read(path)?;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), bytes.clone()));
        Ok(bytes)
    }
}
