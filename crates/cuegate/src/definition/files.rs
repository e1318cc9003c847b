//! Where the files of a definition come from: the disk, or a run that kept them.

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
use cuegate_journal::{Digest, Journal};

/// Files below a folder. Nothing outside is read, also not through a symbolic link.
#[derive(Debug, Clone)]
pub struct DiskFiles {
    root: PathBuf,
    /// The root, opened: what is asked of the kernel below it needs no look at each folder on the way.
    #[cfg(target_os = "linux")]
    folder: Option<Arc<OwnedFd>>,
}

impl DiskFiles {
    /// The files below `root`.
    ///
    /// # Errors
    /// When `root` is no readable folder.
    pub fn new(root: &Path) -> io::Result<DiskFiles> {
        let root = fs::canonicalize(root)?;
        #[cfg(target_os = "linux")]
        let folder = {
            use rustix::fs::{Mode, OFlags, open};
            open(&root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok().map(Arc::new)
        };
        Ok(DiskFiles {
            root,
            #[cfg(target_os = "linux")]
            folder,
        })
    }

    /// A file that the kernel finds below the root without leaving it; `None` where it cannot say, or refuses: a link may
    /// leave the root on its way back into it.
    #[cfg(target_os = "linux")]
    fn beneath(&self, path: &str) -> Option<Result<fs::File, ReadError>> {
        use rustix::{
            fs::{Mode, OFlags, ResolveFlags, openat2},
            io::Errno,
        };
        // A pipe is opened without waiting for who writes into it, and then not read.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match openat2(self.folder.as_ref()?, path, flags, Mode::empty(), ResolveFlags::BENEATH) {
            Ok(file) => Some(Ok(file.into())),
            Err(Errno::NOENT | Errno::NOTDIR) => Some(Err(ReadError::NotFound)),
            Err(_) => None,
        }
    }

    /// Elsewhere every file is looked for by its real path.
    #[cfg(not(target_os = "linux"))]
    fn beneath(&self, _path: &str) -> Option<Result<fs::File, ReadError>> {
        None
    }

    /// A file by its real path.
    fn by_real_path(&self, path: &str) -> Result<fs::File, ReadError> {
        let real = fs::canonicalize(self.root.join(path)).map_err(fault)?;
        if !real.starts_with(&self.root) {
            return Err(ReadError::Escapes);
        }
        // A pipe that is opened would wait for who writes into it.
        refuse(&fs::metadata(&real).map_err(fault)?)?;
        fs::File::open(&real).map_err(fault)
    }
}

fn fault(error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ReadError::NotFound,
        _ => ReadError::Other(error.to_string()),
    }
}

/// Refuses what is no file of a definition.
fn refuse(about: &fs::Metadata) -> Result<(), ReadError> {
    if about.is_dir() {
        return Err(ReadError::Folder);
    }
    // A pipe or a device would never end.
    if !about.is_file() {
        return Err(ReadError::Other("it is no ordinary file".to_owned()));
    }
    if about.len() > FILE_BYTES_MAX as u64 {
        return Err(ReadError::TooLarge);
    }
    Ok(())
}

impl Files for DiskFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let mut file = self.beneath(path).unwrap_or_else(|| self.by_real_path(path))?;
        let about = file.metadata().map_err(fault)?;
        refuse(&about)?;
        let mut bytes = Vec::with_capacity(about.len() as usize + 1);
        // One that grows meanwhile is too large all the same.
        file.by_ref().take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(fault)?;
        Ok(bytes)
    }
}

/// What tells a file from what it was before: when it was written and changed, its length, and which it is; `None` where
/// there is none.
type Stamp = Option<(Option<SystemTime>, (i64, i64), u64, u64)>;

/// The stamp of a file as it is now.
fn stamp(path: &Path) -> Stamp {
    let about = fs::metadata(path).ok()?;
    // Copying may set the time of writing to an older one; when its entry changed nobody can set.
    Some((about.modified().ok(), (about.ctime(), about.ctime_nsec()), about.len(), about.ino()))
}

/// How a file was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    stamp: Stamp,
    /// Which file it was, and its bytes where they were read.
    held: (Option<PathBuf>, Option<Digest>),
}

impl Sight {
    /// A file as it is now.
    pub fn of(path: &Path) -> Sight {
        Sight { stamp: stamp(path), held: (real(path), bytes(path).map(|bytes| Digest::of(&bytes))) }
    }

    /// Looks again: whether it is another file, or says something else. What was only written or moved anew does not.
    pub fn changed(&mut self, path: &Path) -> bool {
        let stamp = stamp(path);
        if stamp == self.stamp {
            return false;
        }
        let now = Sight { stamp, ..Sight::of(path) };
        let is_other = (stamp.is_some(), &now.held) != (self.stamp.is_some(), &self.held);
        *self = now;
        is_other
    }
}

fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// What an ordinary file holds.
fn bytes(path: &Path) -> Option<Vec<u8>> {
    // A pipe that is opened would wait for who writes into it.
    refuse(&fs::metadata(path).ok()?).ok()?;
    fs::read(path).ok()
}

/// Remembers what was looked for, whether it is there or not, and how it was when it was read: a change of it could change
/// what is read.
pub struct Watched<'f> {
    files: &'f DiskFiles,
    sights: Mutex<BTreeMap<PathBuf, Sight>>,
}

impl<'f> Watched<'f> {
    /// Remembers what is looked for among these.
    pub fn new(files: &'f DiskFiles) -> Watched<'f> {
        Watched { files, sights: Mutex::default() }
    }

    /// What was looked for.
    pub fn into_sights(self) -> BTreeMap<PathBuf, Sight> {
        self.sights.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files for Watched<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let place = self.files.root.join(path);
        // The stamp comes first: what changes meanwhile is seen to change later.
        let (stamp, real) = (stamp(&place), real(&place));
        let read = self.files.read(path);
        let held = (real, read.as_ref().ok().map(|bytes| Digest::of(bytes)));
        let mut sights = self.sights.lock().unwrap_or_else(PoisonError::into_inner);
        sights.entry(place).or_insert(Sight { stamp, held });
        read
    }
}

/// The files that a run was loaded from, as its journal kept them.
pub struct KeptFiles<'j> {
    journal: &'j dyn Journal,
    files: BTreeMap<String, BlobRef>,
}

impl<'j> KeptFiles<'j> {
    /// Files by path.
    pub fn new(
        journal: &'j dyn Journal,
        files: impl IntoIterator<Item = (String, BlobRef)>,
    ) -> KeptFiles<'j> {
        KeptFiles { journal, files: files.into_iter().collect() }
    }
}

impl Files for KeptFiles<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let blob = self.files.get(path).ok_or(ReadError::NotFound)?;
        let broken = |why: String| ReadError::Other(format!("the journal cannot give it back: {why}"));
        let digest = blob.digest.parse().map_err(|_| broken("its name is damaged".to_owned()))?;
        match self.journal.blob(&digest) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(broken("it is not there".to_owned())),
            Err(error) => Err(broken(error.to_string())),
        }
    }
}

/// Keeps what is read.
pub struct Recorded<'f> {
    files: &'f dyn Files,
    seen: Mutex<Vec<(String, Vec<u8>)>>,
}

impl<'f> Recorded<'f> {
    /// Keeps what is read from these.
    pub fn new(files: &'f dyn Files) -> Recorded<'f> {
        Recorded { files, seen: Mutex::default() }
    }

    /// What was read, by path.
    pub fn into_files(self) -> BTreeMap<String, Vec<u8>> {
        self.seen.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
    }
}

impl Files for Recorded<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let bytes = self.files.read(path)?;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), bytes.clone()));
        Ok(bytes)
    }
}
