//! Writes a workflow beside others: existing shared files stay, missing ones are created.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::{
    starter::DefinitionFile,
    write::{failure_of_existing_path, failure_of_file_error},
};
use crate::Failure;

/// The result for each file.
#[derive(Debug, Default)]
pub(crate) struct WriteSummary {
    /// Files that were written.
    pub(crate) written: Vec<String>,
    /// Files that existed with the same content.
    pub(crate) same: Vec<String>,
    /// Files that existed with other content and stay unchanged.
    pub(crate) kept: Vec<String>,
}

/// Writes a definition's own files, which must not exist, and the missing ones of its shared files: all or none.
///
/// `folder` is a folder in `root`; file paths are relative to `folder`.
///
/// # Errors
/// When one of its own files exists, a folder links out of `root`, or a file cannot be written.
pub(crate) fn merge_into_folder(
    root: &Path,
    folder: &str,
    own: &[DefinitionFile],
    shared: &[DefinitionFile],
) -> Result<WriteSummary, Failure> {
    let top = root.join(folder);
    // A broken link counts as existing.
    if let Some(there) = own.iter().map(|file| top.join(&file.path)).find(|path| is_there(path)) {
        return Err(failure_of_existing_path(&there));
    }
    let mut made = CreatedPaths::default();
    let mut left = WriteSummary::default();
    // Write the workflow last, so that all files it references exist before it does.
    for file in shared.iter().chain(own.iter().rev()) {
        let path = top.join(&file.path);
        made.folders(root, path.parent().unwrap_or(&top))?;
        let place = match made.create_file(&path, &file.text) {
            Ok(()) => &mut left.written,
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failure_of_file_error("write", &path, &error));
            }
            Err(_) if own.iter().any(|own| own.path == file.path) => {
                return Err(failure_of_existing_path(&path));
            }
            Err(_) if fs::read(&path).is_ok_and(|there| there == file.text.as_bytes()) => &mut left.same,
            Err(_) => &mut left.kept,
        };
        place.push(format!("{folder}/{}", file.path));
    }
    made.keep();
    Ok(left)
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// The files and folders created so far, removed on drop unless kept.
#[derive(Default)]
struct CreatedPaths {
    files: Vec<PathBuf>,
    create_folders: Vec<PathBuf>,
}

impl CreatedPaths {
    /// Creates a folder and its parents, all inside `root` after resolving links.
    fn folders(&mut self, root: &Path, folder: &Path) -> Result<(), Failure> {
        let real =
            |path: &Path| fs::canonicalize(path).map_err(|error| failure_of_file_error("open", path, &error));
        let there = folder.ancestors().find(|folder| is_there(folder)).unwrap_or(root);
        if !real(there)?.starts_with(real(root)?) {
            return Err(Failure::usage(
                format!("`{}` leads out of the project", there.display()),
                "replace the link with a folder of the project",
            ));
        }
        let mut missing: Vec<&Path> = folder.ancestors().take_while(|folder| *folder != there).collect();
        while let Some(next) = missing.pop() {
            match fs::create_dir(next) {
                Ok(()) => self.create_folders.push(next.to_owned()),
                // Another process created it first.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failure_of_file_error("create", next, &error)),
            }
        }
        Ok(())
    }

    /// Writes a new file; never overwrites an existing one.
    fn create_file(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        self.files.push(path.to_owned());
        file.write_all(text.as_bytes())
    }

    fn keep(mut self) {
        self.files.clear();
        self.create_folders.clear();
    }
}

impl Drop for CreatedPaths {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for folder in self.create_folders.iter().rev() {
            // Removes the folder only if it is empty: another process may use it.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DefinitionFile, merge_into_folder};
    use std::{fs, path::Path};

    fn files(paths: &[&str]) -> Vec<DefinitionFile> {
        paths.iter().map(|path| DefinitionFile::new(*path, format!("ours: {path}\n"))).collect()
    }

    fn all(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            found.push(entry.path().display().to_string());
            if entry.file_type().unwrap().is_dir() {
                found.extend(all(&entry.path()));
            }
        }
        found
    }

    #[test]
    fn existing_shared_files_stay_and_missing_ones_are_created() {
        let dir = tempfile::tempdir().unwrap();
        let shared = files(&["personas/a.md", "personas/b.md", "policies/c.md"]);
        let first =
            merge_into_folder(dir.path(), ".takt", &files(&["pieces/one.yaml"]), &shared[..2]).unwrap();
        assert_eq!(first.written, [".takt/personas/a.md", ".takt/personas/b.md", ".takt/pieces/one.yaml"]);
        fs::write(dir.path().join(".takt/personas/b.md"), "mine").unwrap();
        let second = merge_into_folder(dir.path(), ".takt", &files(&["pieces/two.yaml"]), &shared).unwrap();
        assert_eq!(second.written, [".takt/policies/c.md", ".takt/pieces/two.yaml"]);
        assert_eq!(
            (second.same, second.kept),
            (vec![".takt/personas/a.md".to_owned()], vec![".takt/personas/b.md".to_owned()])
        );
        assert_eq!(fs::read_to_string(dir.path().join(".takt/personas/b.md")).unwrap(), "mine");
    }

    #[test]
    fn an_existing_own_file_prevents_all_writes() {
        let dir = tempfile::tempdir().unwrap();
        let workflows = dir.path().join(".takt/pieces");
        fs::create_dir_all(&workflows).unwrap();
        fs::write(workflows.join("file.yaml"), "mine").unwrap();
        std::os::unix::fs::symlink("nowhere", workflows.join("link.yaml")).unwrap();
        let before = all(dir.path());
        for own in ["pieces/file.yaml", "pieces/link.yaml"] {
            let failure = merge_into_folder(dir.path(), ".takt", &files(&[own]), &files(&["personas/a.md"]))
                .unwrap_err();
            assert_eq!(failure.code, crate::exit::USAGE, "{own}: {failure}");
        }
        assert_eq!(all(dir.path()), before);
        assert_eq!(fs::read_to_string(workflows.join("file.yaml")).unwrap(), "mine");
    }

    #[test]
    fn a_failure_removes_everything_written() {
        let dir = tempfile::tempdir().unwrap();
        // `a` is a file, but `a/b` needs it as a folder.
        let failure =
            merge_into_folder(dir.path(), ".takt", &files(&["pieces/one.yaml"]), &files(&["a", "a/b"]))
                .unwrap_err();
        assert_eq!(failure.code, crate::exit::ENVIRONMENT, "{failure}");
        assert_eq!(all(dir.path()), [""; 0]);
    }

    #[test]
    fn nothing_is_written_through_a_link_out_of_the_project() {
        let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(out.path(), dir.path().join(".takt")).unwrap();
        let failure = merge_into_folder(dir.path(), ".takt", &files(&["pieces/one.yaml"]), &[]).unwrap_err();
        assert_eq!(failure.code, crate::exit::USAGE, "{failure}");
        assert!(failure.message.ends_with("leads out of the project"), "{failure}");
        assert_eq!(all(out.path()), [""; 0]);
    }
}
