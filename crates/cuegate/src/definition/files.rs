//! Where the files of a definition come from: the disk, or a run that kept them.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use cuegate_dialect::{FILE_BYTES_MAX, Files, ReadError};
use cuegate_flow::BlobRef;
use cuegate_journal::Journal;

/// Files below a folder. Nothing outside is read, also not through a symbolic link.
#[derive(Debug, Clone)]
pub struct DiskFiles {
    root: PathBuf,
}

impl DiskFiles {
    /// The files below `root`.
    ///
    /// # Errors
    /// When `root` is no readable folder.
    pub fn new(root: &Path) -> io::Result<DiskFiles> {
        Ok(DiskFiles { root: fs::canonicalize(root)? })
    }
}

impl Files for DiskFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let read = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ReadError::NotFound,
            _ => ReadError::Other(error.to_string()),
        };
        let real = fs::canonicalize(self.root.join(path)).map_err(read)?;
        if !real.starts_with(&self.root) {
            return Err(ReadError::Escapes);
        }
        let about = fs::metadata(&real).map_err(read)?;
        if about.is_dir() {
            return Err(ReadError::NotFound);
        }
        // A pipe or a device would never end.
        if !about.is_file() {
            return Err(ReadError::Other("it is no ordinary file".to_owned()));
        }
        if about.len() > FILE_BYTES_MAX as u64 {
            return Err(ReadError::TooLarge);
        }
        fs::read(&real).map_err(read)
    }
}

/// What tells a file from what it was before: when it was written, how long it is, and which file it is; `None` where
/// there is none.
pub type Stamp = Option<(Option<SystemTime>, u64, u64)>;

/// The stamp of a file as it is now.
pub fn stamp(path: &Path) -> Stamp {
    let about = fs::metadata(path).ok()?;
    Some((about.modified().ok(), about.len(), about.ino()))
}

/// Remembers what was looked for, whether it is there or not, and how it was just before it was read: a change of it
/// could change what is read.
pub struct Watched<'f> {
    files: &'f DiskFiles,
    stamps: RefCell<BTreeMap<PathBuf, Stamp>>,
}

impl<'f> Watched<'f> {
    /// Remembers what is looked for among these.
    pub fn new(files: &'f DiskFiles) -> Watched<'f> {
        Watched { files, stamps: RefCell::default() }
    }

    /// What was looked for.
    pub fn into_stamps(self) -> BTreeMap<PathBuf, Stamp> {
        self.stamps.into_inner()
    }
}

impl Files for Watched<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let place = self.files.root.join(path);
        self.stamps.borrow_mut().entry(place).or_insert_with_key(|place| stamp(place));
        self.files.read(path)
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
    seen: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl<'f> Recorded<'f> {
    /// Keeps what is read from these.
    pub fn new(files: &'f dyn Files) -> Recorded<'f> {
        Recorded { files, seen: RefCell::default() }
    }

    /// What was read, by path.
    pub fn into_files(self) -> BTreeMap<String, Vec<u8>> {
        self.seen.into_inner()
    }
}

impl Files for Recorded<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let bytes = self.files.read(path)?;
        self.seen.borrow_mut().insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }
}
