//! File operations in folders that agents write.
//!
//! A program of a run may replace any folder on the way to a file by a link, at any time, also between a check and the use
//! of a path. So whatever lies below such a folder is opened below a handle of it: no link is followed, no path leads out,
//! only regular files are read and never more than a limit, and a new file gets a random name that nobody can prepare.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read as _, Write as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{self, AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat},
    io::Errno,
};

/// The mode of new files, before the umask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// The mode of new folders, before the umask.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);
/// How often a random name is tried.
const NAME_TRIES: u32 = 16;
/// The flags of a handle of a folder: it can be searched and not read.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A handle of a folder below which agents may write.
#[derive(Debug)]
pub struct FolderHandle {
    handle: OwnedFd,
    /// Its path when it was opened, for messages.
    path: PathBuf,
}

/// What is at a path, by `lstat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryState {
    pub kind: FileType,
    /// In bytes.
    pub size: u64,
    /// The last change of its content, in seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    pub inode: u64,
    /// The permission bits.
    pub mode: u32,
}

impl EntryState {
    fn of(about: &Stat) -> EntryState {
        EntryState {
            kind: FileType::from_raw_mode(about.st_mode),
            size: u64::try_from(about.st_size).unwrap_or_default(),
            modified: (about.st_mtime, about.st_mtime_nsec as i64),
            inode: about.st_ino,
            mode: about.st_mode & 0o7777,
        }
    }

    pub fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    pub fn is_folder(&self) -> bool {
        self.kind == FileType::Directory
    }
}

impl FolderHandle {
    /// Opens a folder. No agent may write in the folders above it: their links are followed.
    ///
    /// # Errors
    /// When it is missing, no folder, or a link itself.
    pub fn open(path: &Path) -> io::Result<FolderHandle> {
        let handle = fs::open(path, HANDLE, Mode::empty())?;
        Ok(FolderHandle { handle, path: path.to_owned() })
    }

    /// The path when it was opened, for messages and for programs that agents cannot race with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder below this one.
    ///
    /// # Errors
    /// When it is missing, or a part of its path is no folder.
    pub fn folder(&self, below: &Path) -> io::Result<FolderHandle> {
        let names = names_of(below)?;
        let path = self.path.join(below);
        if names.is_empty() {
            return Ok(FolderHandle { handle: self.handle.try_clone()?, path });
        }
        Ok(FolderHandle { handle: open_below(&self.handle, &names)?, path })
    }

    /// A folder below this one, which is created with those above it if it is missing.
    ///
    /// # Errors
    /// When a part of its path is no folder, or cannot be created.
    pub fn create_folder(&self, below: &Path) -> io::Result<FolderHandle> {
        self.make_folder(below, false)
    }

    /// As [`FolderHandle::create_folder`]. A link or a file in the place of one of the folders is removed.
    ///
    /// # Errors
    /// When a folder cannot be created.
    pub fn force_folder(&self, below: &Path) -> io::Result<FolderHandle> {
        self.make_folder(below, true)
    }

    fn make_folder(&self, below: &Path, replaces: bool) -> io::Result<FolderHandle> {
        let mut handle = self.handle.try_clone()?;
        for name in names_of(below)? {
            handle = match fs::openat(&handle, name, HANDLE, Mode::empty()) {
                Ok(folder) => folder,
                Err(error @ (Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) => {
                    if error != Errno::NOENT {
                        if !replaces {
                            return Err(error.into());
                        }
                        fs::unlinkat(&handle, name, AtFlags::empty())?;
                    }
                    match fs::mkdirat(&handle, name, FOLDER_MODE) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    fs::openat(&handle, name, HANDLE, Mode::empty())?
                }
                Err(error) => return Err(error.into()),
            };
        }
        Ok(FolderHandle { handle, path: self.path.join(below) })
    }

    /// What is at a path; `None` if nothing is, or if a folder above it is missing or none.
    ///
    /// # Errors
    /// When a folder above it may not be searched.
    pub fn state_of(&self, below: &Path) -> io::Result<Option<EntryState>> {
        let state = self.with_parent(below, |folder, name| {
            Ok(EntryState::of(&fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
        });
        match state {
            Ok(state) => Ok(Some(state)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a regular file to read it.
    ///
    /// # Errors
    /// When it is missing or none, or a folder above it is a link.
    pub fn open_file(&self, below: &Path) -> io::Result<File> {
        // A FIFO is opened without waiting for a writer, and then refused.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = self.with_parent(below, |folder, name| {
            // Opening a device may have an effect, so it is looked at first.
            let about = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
                return Err(no_regular_file());
            }
            Ok(File::from(fs::openat(folder, name, flags, Mode::empty())?))
        })?;
        if !file.metadata()?.is_file() {
            return Err(no_regular_file());
        }
        Ok(file)
    }

    /// Opens an entry that is no link, to mount it or to allow it: it is neither read nor written. `is_inherited`: by programs that
    /// this process executes.
    ///
    /// # Errors
    /// When it is missing or a link, or a folder above it is one.
    pub fn open_entry(&self, below: &Path, is_inherited: bool) -> io::Result<OwnedFd> {
        let mut flags = OFlags::PATH | OFlags::NOFOLLOW;
        if !is_inherited {
            flags |= OFlags::CLOEXEC;
        }
        let entry =
            self.with_parent(below, |folder, name| Ok(fs::openat(folder, name, flags, Mode::empty())?))?;
        // Such a handle is of the link itself.
        if FileType::from_raw_mode(fs::fstat(&entry)?.st_mode) == FileType::Symlink {
            return Err(Errno::LOOP.into());
        }
        Ok(entry)
    }

    /// Reads a regular file of at most `max` bytes.
    ///
    /// # Errors
    /// As [`FolderHandle::open_file`], and when it is larger.
    pub fn read(&self, below: &Path, max: u64) -> io::Result<Vec<u8>> {
        let file = self.open_file(below)?;
        let mut bytes = Vec::new();
        file.take(max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {max} bytes")));
        }
        Ok(bytes)
    }

    /// As [`FolderHandle::read`], for text.
    ///
    /// # Errors
    /// As [`FolderHandle::read`], and when it is not UTF-8.
    pub fn read_text(&self, below: &Path, max: u64) -> io::Result<String> {
        String::from_utf8(self.read(below, max)?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Creates a file with a random name beside `below` and gives it that name when `write` is done, in place of a file or
    /// a link there.
    ///
    /// # Errors
    /// When a folder above it is missing or a link, or `write` fails.
    pub fn write_with(
        &self,
        below: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let (folder, name) = self.parent_of(below)?;
        let (mut file, partial) = create_unnamed(&folder, name)?;
        let written = write(&mut file).and_then(|()| Ok(fs::renameat(&folder, &partial, &folder, name)?));
        if written.is_err() {
            let _ = fs::unlinkat(&folder, &partial, AtFlags::empty());
        }
        written
    }

    /// Replaces a file, or a link, as a whole.
    ///
    /// # Errors
    /// As [`FolderHandle::write_with`].
    pub fn write(&self, below: &Path, bytes: &[u8]) -> io::Result<()> {
        self.write_with(below, |file| file.write_all(bytes))
    }

    /// Replaces a file if its bytes are others, or if it is none.
    ///
    /// # Errors
    /// As [`FolderHandle::write`].
    pub fn write_if_other(&self, below: &Path, bytes: &[u8]) -> io::Result<()> {
        match self.read(below, bytes.len() as u64) {
            Ok(present) if present == bytes => Ok(()),
            _ => self.write(below, bytes),
        }
    }

    /// Creates a link, or replaces a file or a link by it. Its target is not looked at.
    ///
    /// # Errors
    /// When a folder above it is missing or a link.
    pub fn write_link(&self, target: &Path, below: &Path) -> io::Result<()> {
        let (folder, name) = self.parent_of(below)?;
        let partial = random_name(name);
        fs::symlinkat(target, &folder, &partial)?;
        let renamed = fs::renameat(&folder, &partial, &folder, name);
        if renamed.is_err() {
            let _ = fs::unlinkat(&folder, &partial, AtFlags::empty());
        }
        Ok(renamed?)
    }

    /// The target of a link.
    ///
    /// # Errors
    /// When it is none.
    pub fn read_link(&self, below: &Path) -> io::Result<PathBuf> {
        self.with_parent(below, |folder, name| {
            let target = fs::readlinkat(folder, name, Vec::new())?;
            Ok(PathBuf::from(OsStr::from_bytes(target.to_bytes())))
        })
    }

    /// Renames an entry of any kind; `to` is in the same folder, and nothing is replaced.
    ///
    /// # Errors
    /// When something has the name `to`, or the folder cannot be changed.
    pub fn rename(&self, below: &Path, to: &OsStr) -> io::Result<()> {
        self.with_parent(below, |folder, name| {
            match fs::renameat_with(folder, name, folder, to, RenameFlags::NOREPLACE) {
                // A file system that does not know the flag. A file of this name would be replaced, and no other one.
                Err(Errno::INVAL | Errno::NOSYS) => match fs::statat(folder, to, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(Errno::EXIST.into()),
                    Err(_) => Ok(fs::renameat(folder, name, folder, to)?),
                },
                renamed => Ok(renamed?),
            }
        })
    }

    /// Removes a file or a link, which may be missing.
    ///
    /// # Errors
    /// When it is a folder, or cannot be removed.
    pub fn remove(&self, below: &Path) -> io::Result<()> {
        let removed =
            self.with_parent(below, |folder, name| Ok(fs::unlinkat(folder, name, AtFlags::empty())?));
        match removed {
            Err(error) if !is_missing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes an entry of any kind with all that is in it. It may be missing.
    ///
    /// # Errors
    /// When something in it cannot be removed.
    pub fn remove_all(&self, below: &Path) -> io::Result<()> {
        match self.with_parent(below, remove_entry) {
            Err(error) if !is_missing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes a folder if it is empty.
    ///
    /// # Errors
    /// When it is not, or is missing.
    pub fn remove_empty(&self, below: &Path) -> io::Result<()> {
        self.with_parent(below, |folder, name| Ok(fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?))
    }

    /// Lets the owner enter and change a folder whose permissions an agent took away.
    ///
    /// # Errors
    /// When it belongs to somebody else.
    pub fn open_up(&self) -> io::Result<()> {
        use std::os::fd::AsRawFd as _;
        // The mode of a handle that cannot be read is changed through `/proc` only.
        let path = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        Ok(fs::chmod(path, Mode::RWXU)?)
    }

    /// Takes from a regular file all permissions but `mask`.
    ///
    /// # Errors
    /// As [`FolderHandle::open_file`], and when it belongs to somebody else.
    pub fn restrict_mode(&self, below: &Path, mask: u32) -> io::Result<()> {
        let file = self.open_file(below)?;
        let mode = Mode::from_raw_mode(fs::fstat(&file)?.st_mode & 0o7777);
        let less = mode & Mode::from_raw_mode(mask);
        if less != mode {
            fs::fchmod(&file, less)?;
        }
        Ok(())
    }

    /// The entries of a folder with their kinds, in no order. There are none if it is missing or no folder.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn list(&self, below: &Path) -> io::Result<Vec<(OsString, FileType)>> {
        let folder = match self.folder(below) {
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            folder => folder?,
        };
        list_entries(&folder.handle)
    }

    fn parent_of<'p>(&self, below: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let mut names = names_of(below)?;
        let name = names.pop().ok_or(Errno::INVAL)?;
        let folder =
            if names.is_empty() { self.handle.try_clone()? } else { open_below(&self.handle, &names)? };
        Ok((folder, name))
    }

    fn with_parent<T>(
        &self,
        below: &Path,
        work: impl FnOnce(&OwnedFd, &OsStr) -> io::Result<T>,
    ) -> io::Result<T> {
        let (folder, name) = self.parent_of(below)?;
        work(&folder, name)
    }
}

/// Whether an error says that nothing is at a path: also if a folder above it is a file or a link.
pub fn is_missing(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// The names of a relative path without `..`, which would lead out.
fn names_of(below: &Path) -> io::Result<Vec<&OsStr>> {
    let names = below.components().filter(|part| *part != Component::CurDir).map(|part| match part {
        Component::Normal(name) => Ok(name),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{}` leads out of its folder", below.display()),
        )),
    });
    names.collect()
}

/// Opens a folder below a handle without following links.
#[cfg(target_os = "linux")]
fn open_below(handle: &OwnedFd, names: &[&OsStr]) -> io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let path: PathBuf = names.iter().collect();
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(handle, &path, HANDLE, Mode::empty(), resolve) {
        // A filter of a container refuses the call, or a folder was renamed meanwhile.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => walk_below(handle, names),
        opened => Ok(opened?),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_below(handle: &OwnedFd, names: &[&OsStr]) -> io::Result<OwnedFd> {
    walk_below(handle, names)
}

/// As `openat2` does it in the kernel: folder by folder, each below the handle of the one before.
fn walk_below(handle: &OwnedFd, names: &[&OsStr]) -> io::Result<OwnedFd> {
    let mut folder = handle.try_clone()?;
    for name in names {
        folder = fs::openat(&folder, *name, HANDLE, Mode::empty())?;
    }
    Ok(folder)
}

fn no_regular_file() -> io::Error {
    io::Error::other("it is not a regular file")
}

fn random_name(beside: &OsStr) -> OsString {
    let mut name = OsString::from(".");
    // A name has at most 255 bytes.
    name.push(OsStr::from_bytes(beside.as_bytes().get(..64).unwrap_or(beside.as_bytes())));
    name.push(format!(".{:016x}", random_number()));
    name
}

/// A number that no other process can predict.
fn random_number() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    // Each state has keys of its own, from the system's random numbers.
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// Creates a file that did not exist.
fn create_unnamed(folder: &OwnedFd, beside: &OsStr) -> io::Result<(File, OsString)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut tries = NAME_TRIES;
    loop {
        let name = random_name(beside);
        tries -= 1;
        match fs::openat(folder, &name, flags, FILE_MODE) {
            Ok(file) => return Ok((File::from(file), name)),
            Err(Errno::EXIST) if tries > 0 => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn list_entries(folder: &OwnedFd) -> io::Result<Vec<(OsString, FileType)>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // A handle cannot be read itself.
    let readable = fs::openat(folder, ".", flags, Mode::empty())?;
    let mut entries = Vec::new();
    for entry in Dir::new(readable)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |about| FileType::from_raw_mode(about.st_mode)),
            kind => kind,
        };
        entries.push((name.to_owned(), kind));
    }
    Ok(entries)
}

/// Removes an entry with all that is in it. The folders are held open on the way down, so that a deep tree ends at the
/// limit of open files rather than of the stack.
fn remove_entry(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match fs::unlinkat(folder, name, AtFlags::empty()) {
        // Linux and others say differently that it is a folder.
        Err(Errno::ISDIR | Errno::PERM) => {}
        removed => return Ok(removed?),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = match fs::openat(folder, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let closed = FolderHandle {
                handle: fs::openat(folder, name, HANDLE, Mode::empty())?,
                path: PathBuf::from(name),
            };
            closed.open_up()?;
            fs::openat(folder, name, flags, Mode::empty())?
        }
        inner => inner?,
    };
    for (name, _) in list_entries(&inner)? {
        match remove_entry(&inner, &name) {
            Err(error) if error.raw_os_error().map(Errno::from_raw_os_error) == Some(Errno::ACCESS) => {
                fs::fchmod(&inner, Mode::RWXU)?;
                remove_entry(&inner, &name)?;
            }
            removed => removed?,
        }
    }
    Ok(fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder of agents, and one outside with a file.
    fn scene() -> (tempfile::TempDir, FolderHandle) {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["agents/a/b", "outside"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("outside/canary"), "mine").unwrap();
        let agents = FolderHandle::open(&dir.path().join("agents")).unwrap();
        (dir, agents)
    }

    #[test]
    fn nothing_leads_out() {
        let (dir, agents) = scene();
        let outside = dir.path().join("outside");
        symlink(&outside, agents.path().join("link")).unwrap();
        symlink("../outside/canary", agents.path().join("file")).unwrap();
        symlink("../../../outside", agents.path().join("a/b/up")).unwrap();
        for path in ["link/canary", "file", "a/b/up/canary", "../outside/canary"] {
            let path = Path::new(path);
            assert!(agents.read(path, 100).is_err(), "{path:?}");
            assert!(agents.open_file(path).is_err(), "{path:?}");
        }
        for path in ["link/new", "a/b/up/new", "../outside/new", "/tmp/new"] {
            let path = Path::new(path);
            assert!(agents.write(path, b"x").is_err(), "{path:?}");
            assert!(agents.create_folder(path).is_err(), "{path:?}");
            assert!(agents.write_link(Path::new("x"), path).is_err(), "{path:?}");
        }
        // A link is replaced, and not written through.
        agents.write(Path::new("file"), b"new").unwrap();
        assert_eq!(agents.read(Path::new("file"), 3).unwrap(), b"new");
        agents.force_folder(Path::new("link/deep")).unwrap();
        assert!(agents.path().join("link/deep").is_dir());
        agents.remove_all(Path::new("a")).unwrap();
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(outside.join("canary")).unwrap(), "mine");
    }

    #[test]
    fn only_regular_files_are_read_and_no_more_than_the_limit() {
        let (_dir, agents) = scene();
        fs::mknodat(&agents.handle, "fifo", FileType::Fifo, Mode::RUSR, 0).unwrap();
        std::fs::write(agents.path().join("large"), [0; 20]).unwrap();
        assert!(agents.read(Path::new("fifo"), 10).is_err());
        assert!(agents.read(Path::new("a"), 10).is_err());
        assert_eq!(agents.read(Path::new("large"), 19).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(agents.read(Path::new("large"), 20).unwrap().len(), 20);
        assert_eq!(agents.state_of(Path::new("fifo")).unwrap().unwrap().kind, FileType::Fifo);
        assert_eq!(agents.state_of(Path::new("large/x")).unwrap(), None);
        assert_eq!(agents.list(Path::new("nowhere")).unwrap(), []);
    }

    #[test]
    fn renaming_replaces_nothing_and_removing_takes_all() {
        let (_dir, agents) = scene();
        for name in ["one", "two"] {
            std::fs::write(agents.path().join(name), name).unwrap();
        }
        assert_eq!(
            agents.rename(Path::new("one"), OsStr::new("two")).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        agents.rename(Path::new("one"), OsStr::new("three")).unwrap();
        let locked = agents.path().join("a/b/locked");
        std::fs::create_dir(&locked).unwrap();
        std::fs::write(locked.join("x"), "").unwrap();
        std::fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        agents.remove_all(Path::new("a")).unwrap();
        let mut names: Vec<OsString> =
            agents.list(Path::new("")).unwrap().into_iter().map(|entry| entry.0).collect();
        names.sort();
        assert_eq!(names, ["three", "two"]);
    }

    #[test]
    fn the_walk_without_openat2_leads_nowhere_else() {
        let (dir, agents) = scene();
        symlink(dir.path().join("outside"), agents.path().join("a/link")).unwrap();
        let walk = |path: &str| walk_below(&agents.handle, &names_of(Path::new(path)).unwrap());
        assert!(walk("a/b").is_ok());
        assert!(walk("a/link").is_err());
    }
}
