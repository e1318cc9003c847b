//! Files that did not exist when a command started, and that Cuegate would trust: a command that creates one does not get it
//! obeyed. While the command works, a mark in the state dir names them, which no command in a full sandbox reaches. So other
//! processes ignore them meanwhile, and a kill of this one leaves the mark, with which the next one puts them aside.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::beneath::FolderHandle;

/// The folder of the marks in the state dir.
const FOLDER: &str = "kept-out";

/// How many names are tried for a file that is put aside.
const NAMES_MAX: u32 = 10_000;

/// The settings in a project that Cuegate obeys.
pub const SETTINGS_FILES: [&str; 3] = ["cuegate.toml", ".takt/config.yaml", ".takt/runtime.yaml"];

/// Whether a path in the working tree is one of settings.
pub(in crate::sandbox) fn is_settings_file(path: &Path) -> bool {
    SETTINGS_FILES.iter().any(|name| path == Path::new(name))
}

/// A file of settings that a command may not create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KeptOutFile {
    /// The working tree.
    work: PathBuf,
    /// The path in it.
    file: PathBuf,
    /// The link of the user on the way to it, and where that leads.
    link: Option<(PathBuf, PathBuf)>,
}

impl KeptOutFile {
    /// `None` for one that exists: it is read-only while a command works. A link is not: a file can take its place.
    fn find(work: &Path, file: &Path) -> Option<KeptOutFile> {
        let link = find_link(work, file);
        let exists = link.is_none() && work.join(file).symlink_metadata().is_ok();
        (!exists).then(|| KeptOutFile { work: work.to_owned(), file: file.to_owned(), link })
    }

    /// What has been created on the way to it, which is to be put aside. No link is followed: it may lead anywhere.
    fn find_created(&self) -> Option<PathBuf> {
        match find_link(&self.work, &self.file) {
            link @ Some(_) if link == self.link => None,
            Some((at, _)) => Some(at),
            None => {
                let path = self.work.join(&self.file);
                path.symlink_metadata().is_ok().then_some(path)
            }
        }
    }
}

/// The first link on the way from a folder to a path in it, and where it leads. The path itself may be one.
pub fn find_link(folder: &Path, path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut at = folder.to_owned();
    path.components().find_map(|part| {
        at.push(part);
        Some((at.clone(), fs::read_link(&at).ok()?))
    })
}

/// The mark of one command. It is removed with it, after the files were put aside.
#[derive(Debug)]
pub(super) struct KeptOutMark {
    mark: PathBuf,
    files: Vec<KeptOutFile>,
    /// Locked as long as this process lives.
    _file: File,
}

impl KeptOutMark {
    /// Marks those of the files that are missing in a working tree. `None` if all are there.
    ///
    /// # Errors
    /// When the mark cannot be written.
    pub(super) fn mark<'f>(
        state: &Path,
        work: &Path,
        files: impl IntoIterator<Item = &'f Path>,
    ) -> io::Result<Option<KeptOutMark>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let files: Vec<KeptOutFile> =
            files.into_iter().filter_map(|file| KeptOutFile::find(work, file)).collect();
        if files.is_empty() {
            return Ok(None);
        }
        let folder = state.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let mark = folder.join(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let mut file = File::create(&mark)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(&serde_json::to_vec(&files)?)?;
        file.sync_all()?;
        Ok(Some(KeptOutMark { mark, files, _file: file }))
    }

    /// Puts aside what was created since. Returns what was done, in words.
    pub(super) fn put_aside(&self) -> Vec<String> {
        let notes = put_aside(&self.files);
        let _ = fs::remove_file(&self.mark);
        notes
    }
}

/// The files that must not be obeyed now, because a command that works, or was killed, created them.
pub fn kept_out_files(state: &Path) -> Vec<PathBuf> {
    let marks = fs::read_dir(state.join(FOLDER)).into_iter().flatten().flatten();
    let files = marks.flat_map(|mark| read_mark(&mark.path()));
    files.filter(|file| file.find_created().is_some()).map(|file| file.work.join(file.file)).collect()
}

/// Puts aside the files that killed commands created. Returns what was done, in words.
pub fn put_aside_kept_out(state: &Path) -> Vec<String> {
    let mut notes = Vec::new();
    for mark in fs::read_dir(state.join(FOLDER)).into_iter().flatten().flatten() {
        let Ok(file) = File::open(mark.path()) else { continue };
        // Held by a command that works.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        notes.extend(put_aside(&read_mark(&mark.path())));
        let _ = fs::remove_file(mark.path());
    }
    notes
}

fn read_mark(mark: &Path) -> Vec<KeptOutFile> {
    fs::read(mark).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

fn put_aside(files: &[KeptOutFile]) -> Vec<String> {
    files.iter().filter_map(|file| rename_created(&file.work, &file.find_created()?)).collect()
}

/// Renames a file below a folder to a free name.
fn rename_created(work: &Path, path: &Path) -> Option<String> {
    let below = path.strip_prefix(work).ok()?;
    let named = |number: u32| {
        let mut name = below.file_name().unwrap_or_default().to_owned();
        name.push(if number == 0 { ".by-agent".to_owned() } else { format!(".by-agent-{number}") });
        name
    };
    let renamed = FolderHandle::open(work).and_then(|folder| {
        let mut names = (0..NAMES_MAX).map(named);
        loop {
            let name = names.next().ok_or(io::ErrorKind::AlreadyExists)?;
            match folder.rename(below, &name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                renamed => return renamed.map(|()| path.with_file_name(name)),
            }
        }
    });
    Some(match renamed {
        Ok(aside) => format!(
            "`{}` was created in the sandbox and is now `{}`, because it would be trusted: rename it if you do",
            path.display(),
            aside.display()
        ),
        Err(error) => format!("`{}` was created in the sandbox; do not trust it ({error})", path.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(folder: &Path, files: &[&str]) -> Option<KeptOutMark> {
        KeptOutMark::mark(folder, folder, files.iter().map(Path::new)).unwrap()
    }

    #[test]
    fn no_link_is_followed_and_one_of_the_user_stays() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| dir.path().join(name);
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, at(name)).unwrap();
        fs::write(outside.path().join("runtime.yaml"), "of the user").unwrap();
        fs::create_dir(at("conf")).unwrap();
        fs::write(at("conf/c.toml"), "of the user").unwrap();
        link(Path::new("conf/c.toml"), "linked.toml");
        link(Path::new("conf/c.toml"), "kept.toml");
        let kept = mark(dir.path(), &[".takt/runtime.yaml", "linked.toml", "kept.toml"]).unwrap();
        // A folder becomes a link out of the tree, and a link becomes a file.
        link(outside.path(), ".takt");
        fs::remove_file(at("linked.toml")).unwrap();
        fs::write(at("linked.toml"), "evil").unwrap();
        assert_eq!(kept_out_files(dir.path()), [at(".takt/runtime.yaml"), at("linked.toml")]);
        assert_eq!(kept.put_aside().len(), 2);
        assert!(outside.path().join("runtime.yaml").exists());
        assert!(at(".takt.by-agent").is_symlink() && at("linked.toml.by-agent").is_file());
        assert!(at("kept.toml").is_symlink());
    }

    #[test]
    fn a_created_file_is_put_aside_whatever_is_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("there.toml"), "mine").unwrap();
        let kept = mark(dir.path(), &["there.toml", "new.toml"]).unwrap();
        assert!(kept_out_files(dir.path()).is_empty());
        fs::create_dir_all(at("new.toml.by-agent/x")).unwrap();
        fs::write(at("new.toml"), "evil").unwrap();
        assert_eq!(kept_out_files(dir.path()), [at("new.toml")]);
        assert!(put_aside_kept_out(dir.path()).is_empty(), "its command works");
        assert_eq!(kept.put_aside().len(), 1);
        assert!(!at("new.toml").exists() && at("new.toml.by-agent-1").is_file());
        assert!(kept_out_files(dir.path()).is_empty());
        assert!(mark(dir.path(), &["there.toml"]).is_none());
    }

    #[test]
    fn the_mark_of_a_killed_process_is_worked_off() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cuegate.toml");
        let kept = mark(dir.path(), &["cuegate.toml"]);
        // As a kill leaves it.
        drop(kept);
        fs::write(&file, "evil").unwrap();
        assert_eq!(kept_out_files(dir.path()), std::slice::from_ref(&file));
        assert_eq!(put_aside_kept_out(dir.path()).len(), 1);
        assert!(!file.exists());
        assert!(kept_out_files(dir.path()).is_empty());
    }
}
