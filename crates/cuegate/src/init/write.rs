//! Writing a definition: all of it or nothing.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::starter::File;
use crate::Failure;

/// A file to be written.
#[derive(Debug)]
pub(crate) struct Written {
    /// Where in the folder, separated by `/`.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) bytes: Vec<u8>,
    /// Whether it can be started.
    pub(crate) executable: bool,
}

/// Writes files into a new folder, which is there only when all of them are.
///
/// # Errors
/// When something is there already, which is left as it is, or a file cannot be written.
pub(crate) fn write(folder: &Path, files: &[File]) -> Result<(), Failure> {
    let written = |file: &File| Written {
        path: file.path.clone(),
        bytes: file.text.clone().into_bytes(),
        executable: false,
    };
    write_all(folder, &files.iter().map(written).collect::<Vec<_>>())
}

/// The same with files of any kind.
///
/// # Errors
/// As those of [`write`].
pub(crate) fn write_all(folder: &Path, files: &[Written]) -> Result<(), Failure> {
    // A link that leads nowhere is something as well.
    if fs::symlink_metadata(folder).is_ok() {
        return Err(taken(folder));
    }
    let parent = folder.parent().unwrap_or(Path::new("."));
    let ours = !parent.exists();
    fs::create_dir_all(parent).map_err(|error| failed("make", parent, &error))?;
    let written = write_beside(folder, parent, files);
    if written.is_err() && ours {
        // It goes only when it is empty: somebody else may have begun to use it.
        let _ = fs::remove_dir(parent);
    }
    written
}

/// Writes files in place of a folder, which is as it was where that fails.
///
/// # Errors
/// When a file cannot be written, or the folder not be replaced.
pub(crate) fn replace(folder: &Path, files: &[Written]) -> Result<(), Failure> {
    let parent = folder.parent().unwrap_or(Path::new("."));
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let aside = parent.join(format!(".{name}.older.{}", std::process::id()));
    fs::rename(folder, &aside).map_err(|error| failed("replace", folder, &error))?;
    let written = write_beside(folder, parent, files);
    let last = match &written {
        Ok(()) => fs::remove_dir_all(&aside).map_err(|error| failed("remove", &aside, &error)),
        Err(_) => fs::rename(&aside, folder).map_err(|error| failed("put back", &aside, &error)),
    };
    written.and(last)
}

fn write_beside(folder: &Path, parent: &Path, files: &[Written]) -> Result<(), Failure> {
    // Names that begin with a dot are names of no agent. Whoever wrote under this one is dead: it is our own id.
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let half = Half(parent.join(format!(".{name}.{}", std::process::id())));
    let _ = fs::remove_dir_all(&half.0);
    for file in files {
        let path = half.0.join(&file.path);
        let inside = path.parent().unwrap_or(&half.0);
        fs::create_dir_all(inside).map_err(|error| failed("make", inside, &error))?;
        fs::write(&path, &file.bytes).map_err(|error| failed("write", &path, &error))?;
        if file.executable {
            let mode = fs::Permissions::from_mode(EXECUTABLE);
            fs::set_permissions(&path, mode).map_err(|error| failed("write", &path, &error))?;
        }
    }
    // Where somebody was quicker there is a folder with files in it now, which nothing is renamed over.
    fs::rename(&half.0, folder).map_err(|error| match error.kind() {
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            taken(folder)
        }
        _ => failed("make", folder, &error),
    })
}

/// The mode of a program: its owner changes it, everybody may start it.
const EXECUTABLE: u32 = 0o755;

/// A folder that is not finished; it goes when it does not become the real one.
struct Half(PathBuf);

impl Drop for Half {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn taken(folder: &Path) -> Failure {
    Failure::usage(
        format!("`{}` is there already, and nothing is overwritten", folder.display()),
        "choose another name with `--name NAME`, or remove it first",
    )
}

pub(super) fn failed(doing: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("failed to {doing} `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{File, Written, replace, write};
    use std::{fs, path::Path};

    fn file(path: &str) -> File {
        File::new(path, "text\n")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn all_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(".agent/a");
        write(&folder, &[file("x.md"), file("in/two/y.md")]).unwrap();
        assert_eq!(fs::read_to_string(folder.join("in/two/y.md")).unwrap(), "text\n");
        assert_eq!(names(&dir.path().join(".agent")), ["a"]);
    }

    #[test]
    fn or_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(".agent/a");
        // A file where a folder has to be.
        let failure = write(&folder, &[file("x"), file("x/y")]).unwrap_err();
        assert_eq!(failure.code, crate::exit::ENVIRONMENT);
        assert_eq!(names(dir.path()), [""; 0], "also what was made on the way is gone");
        fs::create_dir(dir.path().join(".agent")).unwrap();
        write(&folder, &[file("x"), file("x/y")]).unwrap_err();
        assert_eq!(names(&dir.path().join(".agent")), [""; 0]);
        assert_eq!(names(dir.path()), [".agent"], "what was there stays");
    }

    #[test]
    fn what_is_replaced_stays_where_that_fails() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a");
        write(&folder, &[file("old.md")]).unwrap();
        let written =
            |path: &str| Written { path: path.to_owned(), bytes: b"new".to_vec(), executable: false };
        // A file where a folder has to be.
        replace(&folder, &[written("x"), written("x/y")]).unwrap_err();
        assert_eq!((names(&folder), names(dir.path())), (vec!["old.md".to_owned()], vec!["a".to_owned()]));
        replace(&folder, &[written("new.md")]).unwrap();
        assert_eq!((names(&folder), names(dir.path())), (vec!["new.md".to_owned()], vec!["a".to_owned()]));
    }

    #[test]
    fn what_is_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "mine").unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
        for name in ["file", "folder", "link"] {
            let failure = write(&dir.path().join(name), &[file("x")]).unwrap_err();
            assert_eq!(failure.code, crate::exit::USAGE, "{name}: {failure}");
        }
        assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "mine");
        assert!(names(&dir.path().join("folder")).is_empty());
    }
}
