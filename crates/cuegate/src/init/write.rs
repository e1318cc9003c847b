//! Writes a definition folder: all files or none.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::starter::DefinitionFile;
use crate::Failure;

/// Writes files into a new folder. The folder appears only after all files are written.
///
/// # Errors
/// When the folder exists or a file cannot be written. An existing folder stays unchanged.
pub(crate) fn write_new_folder(folder: &Path, files: &[DefinitionFile]) -> Result<(), Failure> {
    // A broken link counts as existing.
    if fs::symlink_metadata(folder).is_ok() {
        return Err(failure_of_existing_path(folder));
    }
    let parent = folder.parent().unwrap_or(Path::new("."));
    let ours = !parent.exists();
    fs::create_dir_all(parent).map_err(|error| failure_of_file_error("create", parent, &error))?;
    let written = write_beside(folder, parent, files);
    if written.is_err() && ours {
        // Removes the folder only if it is empty: another process may use it.
        let _ = fs::remove_dir(parent);
    }
    written
}

fn write_beside(folder: &Path, parent: &Path, files: &[DefinitionFile]) -> Result<(), Failure> {
    // No agent name starts with a dot. A leftover folder of this name is from a dead process that had our process id.
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let half = TemporaryFolder(parent.join(format!(".{name}.{}", std::process::id())));
    let _ = fs::remove_dir_all(&half.0);
    for file in files {
        let path = half.0.join(&file.path);
        let inside = path.parent().unwrap_or(&half.0);
        fs::create_dir_all(inside).map_err(|error| failure_of_file_error("create", inside, &error))?;
        fs::write(&path, &file.text).map_err(|error| failure_of_file_error("write", &path, &error))?;
    }
    // If another process created the folder first, it is not empty and the rename fails.
    fs::rename(&half.0, folder).map_err(|error| match error.kind() {
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            failure_of_existing_path(folder)
        }
        _ => failure_of_file_error("create", folder, &error),
    })
}

/// A temporary folder, removed on drop unless it was renamed.
struct TemporaryFolder(PathBuf);

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn failure_of_existing_path(folder: &Path) -> Failure {
    Failure::usage(
        format!("`{}` already exists; nothing was overwritten", folder.display()),
        "choose another name with `--name NAME`, or remove it first",
    )
}

pub(super) fn failure_of_file_error(doing: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("failed to {doing} `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{DefinitionFile, write_new_folder};
    use std::{fs, path::Path};

    fn file(path: &str) -> DefinitionFile {
        DefinitionFile::new(path, "text\n")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn writes_all_files() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(".agent/a");
        write_new_folder(&folder, &[file("x.md"), file("in/two/y.md")]).unwrap();
        assert_eq!(fs::read_to_string(folder.join("in/two/y.md")).unwrap(), "text\n");
        assert_eq!(names(&dir.path().join(".agent")), ["a"]);
    }

    #[test]
    fn writes_nothing_on_failure() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(".agent/a");
        // `x` is a file, but `x/y` needs it as a folder.
        let failure = write_new_folder(&folder, &[file("x"), file("x/y")]).unwrap_err();
        assert_eq!(failure.code, crate::exit::ENVIRONMENT);
        assert_eq!(names(dir.path()), [""; 0], "created folders are removed");
        fs::create_dir(dir.path().join(".agent")).unwrap();
        write_new_folder(&folder, &[file("x"), file("x/y")]).unwrap_err();
        assert_eq!(names(&dir.path().join(".agent")), [""; 0]);
        assert_eq!(names(dir.path()), [".agent"], "existing folders stay");
    }

    #[test]
    fn existing_entries_stay_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "mine").unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
        for name in ["file", "folder", "link"] {
            let failure = write_new_folder(&dir.path().join(name), &[file("x")]).unwrap_err();
            assert_eq!(failure.code, crate::exit::USAGE, "{name}: {failure}");
        }
        assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "mine");
        assert!(names(&dir.path().join("folder")).is_empty());
    }
}
