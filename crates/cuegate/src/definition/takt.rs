//! Finds the definitions that an installed TAKT brings: workflows, fragments and texts that other workflows name.

use std::path::{Path, PathBuf};

/// The folder with the definitions of an installed TAKT: in the project's packages, else beside the `takt` of the
/// `PATH`.
pub fn find_builtins(project: &Path) -> Option<PathBuf> {
    let own = project.join("node_modules/takt/builtins");
    if own.is_dir() {
        return Some(own);
    }
    let path = std::env::var_os("PATH")?;
    let program =
        std::env::split_paths(&path).map(|folder| folder.join("takt")).find(|file| file.is_file())?;
    // The program is a link into the package.
    let real = std::fs::canonicalize(program).ok()?;
    real.ancestors().skip(1).take(4).map(|folder| folder.join("builtins")).find(|folder| folder.is_dir())
}

/// The virtual folders of a folder with builtins, with the folders that they are: one for each language.
pub(super) fn list_language_folders(builtins: &Path) -> Vec<(String, PathBuf)> {
    const PREFIX: &str = "<takt>";
    let builtins = match builtins.join("builtins") {
        // The folder of the package is fine as well.
        inner if inner.is_dir() => inner,
        _ => builtins.to_owned(),
    };
    if builtins.join("facets").is_dir() {
        // The folder of one language.
        return ["en", "ja"]
            .into_iter()
            .map(|language| (format!("{PREFIX}/{language}"), builtins.clone()))
            .collect();
    }
    let entries = std::fs::read_dir(&builtins).into_iter().flatten().flatten();
    let mut all: Vec<(String, PathBuf)> = entries
        .map(|entry| entry.path())
        .filter(|path| path.join("facets").is_dir())
        .filter_map(|path| Some((format!("{PREFIX}/{}", path.file_name()?.to_str()?), path)))
        .collect();
    all.push((PREFIX.to_owned(), builtins));
    all
}
