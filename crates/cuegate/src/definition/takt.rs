//! Finds the definitions that an installed TAKT brings: workflows, fragments and texts that other workflows name.

use std::path::{Path, PathBuf};

use cuegate_formats::read_takt_language;

use super::files::DiskFiles;

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

/// The virtual folders of the user's files and of those of an installed TAKT.
pub(super) const USER: &str = "~/.takt";
const PREFIX: &str = "<takt>";

/// The workflow of this name in an installed TAKT, in the language that is configured: its virtual folder, and its file.
pub(super) fn find_installed(builtins: &Path, project: &Path, name: &str) -> Option<(String, String)> {
    if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
        return None;
    }
    workflow_folders(builtins, project).into_iter().find_map(|(base, folder)| {
        let files = ["yaml", "yml"].map(|ending| format!("{name}.{ending}"));
        files.into_iter().find(|file| folder.join(file).is_file()).map(|file| (base, file))
    })
}

/// The names of the workflows of an installed TAKT that can be started, in order.
pub fn list_installed(builtins: &Path, project: &Path) -> Vec<String> {
    let Some((_, folder)) = workflow_folders(builtins, project).into_iter().next() else { return Vec::new() };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    // Those that others call are not for persons.
    let can_start = |path: &PathBuf| {
        let text = crate::text_file::read_text(path).unwrap_or_default();
        !text.lines().any(|line| line.trim_end() == "subworkflow:")
    };
    let files =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "yaml")).filter(can_start);
    let mut names: Vec<String> =
        files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort_unstable();
    names
}

/// The configured language, if an installed TAKT brings no workflows in it.
pub(super) fn find_missing_language(builtins: &Path, project: &Path) -> Option<String> {
    workflow_folders(builtins, project).is_empty().then(|| configured_language(project))
}

/// The names of the workflows of installed packages, `@owner/repo/name`, in order.
pub fn list_packages() -> Vec<String> {
    let Some(home) = std::env::var_os("HOME").map(PathBuf::from) else { return Vec::new() };
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.collect::<Vec<_>>()
    };
    let name_of = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
    let mut names = Vec::new();
    for owner in entries(&home.join(".takt/repertoire")) {
        for repository in entries(&owner) {
            for file in entries(&repository.join("workflows")) {
                let is_workflow = file.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
                let parts =
                    (name_of(&owner), name_of(&repository), file.file_stem().and_then(|stem| stem.to_str()));
                if let (Some(owner), Some(repository), Some(name)) = parts
                    && is_workflow
                    && owner.starts_with('@')
                {
                    names.push(format!("{owner}/{repository}/{name}"));
                }
            }
        }
    }
    names.sort_unstable();
    names
}

/// The language that TAKT is configured to use, in the project or by the user.
fn configured_language(project: &Path) -> String {
    let language = DiskFiles::new(project).ok().and_then(|files| read_takt_language(&files.with_takt(None)));
    language.unwrap_or_else(|| "en".to_owned())
}

/// The folders with workflows of an installed TAKT, with their virtual ones: in the configured language first.
fn workflow_folders(builtins: &Path, project: &Path) -> Vec<(String, PathBuf)> {
    let language = format!("{PREFIX}/{}", configured_language(project));
    let mut tops = list_language_folders(builtins);
    tops.retain(|(base, _)| *base == language || base == PREFIX);
    tops.sort_by_key(|(base, _)| *base != language);
    let folders = tops.into_iter().flat_map(|(base, top)| {
        ["workflows", "pieces"].map(|kind| (format!("{base}/{kind}"), top.join(kind)))
    });
    folders.filter(|(_, folder)| folder.is_dir()).collect()
}

/// The virtual folders of a folder with builtins, with the folders that they are: one for each language.
pub(super) fn list_language_folders(builtins: &Path) -> Vec<(String, PathBuf)> {
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
