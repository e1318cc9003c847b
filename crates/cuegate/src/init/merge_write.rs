//! Writing a piece beside others: what is there stays, what is missing comes.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::{
    starter::File,
    write::{failed, taken},
};
use crate::Failure;

/// What came of files that may have been there.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Paths of the files that were written.
    pub(crate) written: Vec<String>,
    /// Paths of the files that were there with the very text.
    pub(crate) same: Vec<String>,
    /// Paths of the files that were there with another text, and are as they were.
    pub(crate) kept: Vec<String>,
}

/// Writes a definition's own files, which must not be there, and those of the shared ones that are not there.
///
/// `folder` is a folder of `root`; paths of files are relative to it. All of it is written or nothing.
///
/// # Errors
/// When one of its own files is there already, a folder on the way leads out of `root`, or a file cannot be written.
pub(crate) fn beside(root: &Path, folder: &str, own: &[File], shared: &[File]) -> Result<Left, Failure> {
    let top = root.join(folder);
    // A link that leads nowhere is something as well.
    if let Some(there) = own.iter().map(|file| top.join(&file.path)).find(|path| is_there(path)) {
        return Err(taken(&there));
    }
    let mut made = Made::default();
    let mut left = Left::default();
    // The piece itself comes last: who finds it finds all that it names.
    for file in shared.iter().chain(own.iter().rev()) {
        let path = top.join(&file.path);
        made.folders(root, path.parent().unwrap_or(&top))?;
        let place = match made.file(&path, &file.text) {
            Ok(()) => &mut left.written,
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("write", &path, &error));
            }
            Err(_) if own.iter().any(|own| own.path == file.path) => return Err(taken(&path)),
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

/// What was made so far; it goes when not all of it could be.
#[derive(Default)]
struct Made {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Made {
    /// Makes a folder and those above it, all of them really below `root`.
    fn folders(&mut self, root: &Path, folder: &Path) -> Result<(), Failure> {
        let real = |path: &Path| fs::canonicalize(path).map_err(|error| failed("open", path, &error));
        let there = folder.ancestors().find(|folder| is_there(folder)).unwrap_or(root);
        if !real(there)?.starts_with(real(root)?) {
            return Err(Failure::usage(
                format!("`{}` leads out of the project", there.display()),
                "make it a folder of the project, not a link",
            ));
        }
        let mut missing: Vec<&Path> = folder.ancestors().take_while(|folder| *folder != there).collect();
        while let Some(next) = missing.pop() {
            match fs::create_dir(next) {
                Ok(()) => self.folders.push(next.to_owned()),
                // Somebody was quicker.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("make", next, &error)),
            }
        }
        Ok(())
    }

    /// Writes a new file. Nothing is ever written into one that is there.
    fn file(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        self.files.push(path.to_owned());
        file.write_all(text.as_bytes())
    }

    fn keep(mut self) {
        self.files.clear();
        self.folders.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for folder in self.folders.iter().rev() {
            // It goes only when it is empty: somebody else may have begun to use it.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{File, beside};
    use std::{fs, path::Path};

    fn files(paths: &[&str]) -> Vec<File> {
        paths.iter().map(|path| File::new(*path, format!("ours: {path}\n"))).collect()
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
    fn what_is_there_stays_and_what_is_missing_comes() {
        let dir = tempfile::tempdir().unwrap();
        let shared = files(&["personas/a.md", "personas/b.md", "policies/c.md"]);
        let first = beside(dir.path(), ".takt", &files(&["pieces/one.yaml"]), &shared[..2]).unwrap();
        assert_eq!(first.written, [".takt/personas/a.md", ".takt/personas/b.md", ".takt/pieces/one.yaml"]);
        fs::write(dir.path().join(".takt/personas/b.md"), "mine").unwrap();
        let second = beside(dir.path(), ".takt", &files(&["pieces/two.yaml"]), &shared).unwrap();
        assert_eq!(second.written, [".takt/policies/c.md", ".takt/pieces/two.yaml"]);
        assert_eq!(
            (second.same, second.kept),
            (vec![".takt/personas/a.md".to_owned()], vec![".takt/personas/b.md".to_owned()])
        );
        assert_eq!(fs::read_to_string(dir.path().join(".takt/personas/b.md")).unwrap(), "mine");
    }

    #[test]
    fn its_own_files_are_new_or_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let pieces = dir.path().join(".takt/pieces");
        fs::create_dir_all(&pieces).unwrap();
        fs::write(pieces.join("file.yaml"), "mine").unwrap();
        std::os::unix::fs::symlink("nowhere", pieces.join("link.yaml")).unwrap();
        let before = all(dir.path());
        for own in ["pieces/file.yaml", "pieces/link.yaml"] {
            let failure =
                beside(dir.path(), ".takt", &files(&[own]), &files(&["personas/a.md"])).unwrap_err();
            assert_eq!(failure.code, crate::exit::USAGE, "{own}: {failure}");
        }
        assert_eq!(all(dir.path()), before);
        assert_eq!(fs::read_to_string(pieces.join("file.yaml")).unwrap(), "mine");
    }

    #[test]
    fn all_of_it_or_nothing() {
        let dir = tempfile::tempdir().unwrap();
        // A file where a folder has to be.
        let failure =
            beside(dir.path(), ".takt", &files(&["pieces/one.yaml"]), &files(&["a", "a/b"])).unwrap_err();
        assert_eq!(failure.code, crate::exit::ENVIRONMENT, "{failure}");
        assert_eq!(all(dir.path()), [""; 0]);
    }

    #[test]
    fn nothing_is_written_through_a_link_that_leads_out() {
        let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(out.path(), dir.path().join(".takt")).unwrap();
        let failure = beside(dir.path(), ".takt", &files(&["pieces/one.yaml"]), &[]).unwrap_err();
        assert_eq!(failure.code, crate::exit::USAGE, "{failure}");
        assert!(failure.message.ends_with("leads out of the project"), "{failure}");
        assert_eq!(all(out.path()), [""; 0]);
    }
}
