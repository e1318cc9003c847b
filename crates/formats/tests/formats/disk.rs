//! Definitions that lie beside the repository.

#![expect(clippy::disallowed_methods, reason = "a test has to get real definitions from somewhere")]

use std::path::{Path, PathBuf};

use crate::support::Project;

/// A folder of the shared material, when it is there; `CUEGATE_SHARED` says where, else it is looked for beside the
/// repository. Says so when the test cannot run.
pub fn shared(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("CUEGATE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let path = root.join(folder);
    if !path.exists() {
        println!("skipped: {} is not there (set CUEGATE_SHARED)", path.display());
        return None;
    }
    Some(path)
}

/// All files below a folder, by their path relative to it.
pub fn files_below(root: &Path) -> Project {
    let mut files = Project::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}
