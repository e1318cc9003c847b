//! Files that did not exist when a command started, and that Cuegate would trust: a command that creates one does not get it
//! obeyed. While the command works, a mark in the state dir names them, which no command in a full sandbox reaches. So other
//! processes ignore them meanwhile, and a kill of this one leaves the mark, with which the next one puts them aside.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::fs::{FlockOperation, flock};

/// The folder of the marks in the state dir.
const FOLDER: &str = "kept-out";

/// The mark of one command. It is removed with it, after the files were put aside.
#[derive(Debug)]
pub(super) struct KeptOutMark {
    mark: PathBuf,
    paths: Vec<PathBuf>,
    /// Locked as long as this process lives.
    _file: File,
}

impl KeptOutMark {
    /// Marks those of the files that are missing. `None` if all are there.
    ///
    /// # Errors
    /// When the mark cannot be written.
    pub(super) fn mark(
        state: &Path,
        files: impl IntoIterator<Item = PathBuf>,
    ) -> std::io::Result<Option<KeptOutMark>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let paths: Vec<PathBuf> = files.into_iter().filter(|path| path.symlink_metadata().is_err()).collect();
        if paths.is_empty() {
            return Ok(None);
        }
        let folder = state.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let mark = folder.join(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let mut file = File::create(&mark)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        file.write_all(names.join("\n").as_bytes())?;
        file.sync_all()?;
        Ok(Some(KeptOutMark { mark, paths, _file: file }))
    }

    /// Puts aside what was created since. Returns what was done, in words.
    pub(super) fn put_aside(&self) -> Vec<String> {
        let notes = self.paths.iter().filter_map(|path| put_aside(path)).collect();
        let _ = fs::remove_file(&self.mark);
        notes
    }
}

/// The files that must not be obeyed now, because a command that works, or was killed, may have created them.
pub fn kept_out_files(state: &Path) -> Vec<PathBuf> {
    let marks = fs::read_dir(state.join(FOLDER)).into_iter().flatten().flatten();
    marks.flat_map(|mark| read_mark(&mark.path())).collect()
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
        notes.extend(read_mark(&mark.path()).iter().filter_map(|path| put_aside(path)));
        let _ = fs::remove_file(mark.path());
    }
    notes
}

fn read_mark(mark: &Path) -> Vec<PathBuf> {
    fs::read_to_string(mark).unwrap_or_default().lines().map(PathBuf::from).collect()
}

/// Renames a file to a free name.
fn put_aside(path: &Path) -> Option<String> {
    path.symlink_metadata().ok()?;
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 0 { ".by-agent".to_owned() } else { format!(".by-agent-{number}") });
        PathBuf::from(name)
    };
    let free = (0..).map(named).find(|aside| aside.symlink_metadata().is_err())?;
    Some(match fs::rename(path, &free) {
        Ok(()) => format!(
            "`{}` was created in the sandbox and is now `{}`, because it would be trusted: rename it if you do",
            path.display(),
            free.display()
        ),
        Err(error) => format!("`{}` was created in the sandbox; do not trust it ({error})", path.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_created_file_is_put_aside_whatever_is_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("there.toml"), "mine").unwrap();
        let kept = KeptOutMark::mark(dir.path(), ["there.toml", "new.toml"].map(at)).unwrap().unwrap();
        assert_eq!(kept_out_files(dir.path()), [at("new.toml")]);
        fs::create_dir_all(at("new.toml.by-agent/x")).unwrap();
        fs::write(at("new.toml"), "evil").unwrap();
        assert!(put_aside_kept_out(dir.path()).is_empty(), "its command works");
        assert_eq!(kept.put_aside().len(), 1);
        assert!(!at("new.toml").exists() && at("new.toml.by-agent-1").is_file());
        assert!(kept_out_files(dir.path()).is_empty());
        assert!(KeptOutMark::mark(dir.path(), [at("there.toml")]).unwrap().is_none());
    }

    #[test]
    fn the_mark_of_a_killed_process_is_worked_off() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cuegate.toml");
        let kept = KeptOutMark::mark(dir.path(), [file.clone()]).unwrap();
        // As a kill leaves it.
        drop(kept);
        fs::write(&file, "evil").unwrap();
        assert_eq!(kept_out_files(dir.path()), std::slice::from_ref(&file));
        assert_eq!(put_aside_kept_out(dir.path()).len(), 1);
        assert!(!file.exists());
        assert!(kept_out_files(dir.path()).is_empty());
    }
}
