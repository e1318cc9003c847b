//! Writing a definition: all of it or nothing.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::starter::File;
use crate::Failure;

/// Writes files into a new folder. The folder exists only when all of them were written.
///
/// # Errors
/// When the folder exists, which is left as it is, or a file cannot be written.
pub(crate) fn write(folder: &Path, files: &[File]) -> Result<(), Failure> {
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

fn write_beside(folder: &Path, parent: &Path, files: &[File]) -> Result<(), Failure> {
    // Names that begin with a dot are names of no agent. Whoever wrote under this one is dead: it is our own id.
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let half = Half(parent.join(format!(".{name}.{}", std::process::id())));
    let _ = fs::remove_dir_all(&half.0);
    for file in files {
        let path = half.0.join(&file.path);
        let inside = path.parent().unwrap_or(&half.0);
        fs::create_dir_all(inside).map_err(|error| failed("make", inside, &error))?;
        fs::write(&path, &file.text).map_err(|error| failed("write", &path, &error))?;
    }
    // Where somebody was quicker there is a folder with files in it now, which nothing is renamed over.
    fs::rename(&half.0, folder).map_err(|error| match error.kind() {
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            taken(folder)
        }
        _ => failed("make", folder, &error),
    })
}

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
    use super::{File, write};
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
