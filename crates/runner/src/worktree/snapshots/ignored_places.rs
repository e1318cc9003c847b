//! The places in a working tree that git ignores, where tests and build tools write even in a step that changes nothing.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::beneath::FolderHandle;
use crate::worktree::error::{WorktreeError, io_at};
use crate::worktree::git::Git;

/// The most places that are returned; each is a mount of the sandbox.
const PLACES_MAX: usize = 200;

/// The limit of the size of a `.gitignore`, in bytes.
const RULES_MAX: u64 = 4 << 20;

/// Files beside which build tools make their folders.
const MANIFESTS: [&str; 8] = [
    "Cargo.toml",
    "package.json",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "pyproject.toml",
    "setup.py",
    "CMakeLists.txt",
];

/// Finds what git ignores in a working tree: files and folders that exist, and folders that a plain line of `.gitignore`
/// names, which are created if `creates` is set. Returns absolute paths, without `.git` and `.cuegate`, and those that were
/// created.
///
/// # Errors
/// When git fails.
pub(crate) fn ignored_places(
    work: &Path,
    creates: bool,
) -> Result<(Vec<PathBuf>, Vec<PathBuf>), WorktreeError> {
    let git = Git::new(work);
    let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
    let listed = git.run(&args)?;
    let named = |name: &[u8]| work.join(OsStr::from_bytes(name.strip_suffix(b"/").unwrap_or(name)));
    let is_own = |path: &Path| path.file_name().is_some_and(|name| name == ".cuegate" || name == ".git");
    let is_real = |path: &Path| path.symlink_metadata().is_ok_and(|about| about.is_dir() || about.is_file());
    let mut places: Vec<PathBuf> =
        listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(named).collect();
    places.retain(|path| !is_own(path) && is_real(path));
    let mut created = Vec::new();
    if creates {
        let tree = FolderHandle::open(work).map_err(io_at("open", work))?;
        for folder in missing_folders(work, &git)? {
            let below = folder.strip_prefix(work).unwrap_or(&folder);
            let is_new = tree.state_of(below).is_ok_and(|state| state.is_none());
            if places.len() < PLACES_MAX && is_new && tree.create_folder(below).is_ok() {
                created.push(folder.clone());
                places.push(folder);
            }
        }
    }
    places.truncate(PLACES_MAX);
    Ok((places, created))
}

/// The folders that lines of the top `.gitignore` name and that do not exist: at the top, and beside the manifests of
/// packages if a line holds for every folder.
fn missing_folders(work: &Path, git: &Git) -> Result<BTreeSet<PathBuf>, WorktreeError> {
    let tree = FolderHandle::open(work).map_err(io_at("open", work))?;
    let text = tree.read_text(Path::new(".gitignore"), RULES_MAX).unwrap_or_default();
    let mut folders = BTreeSet::new();
    let mut packages: Option<BTreeSet<PathBuf>> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '!'])) {
        let name = line.trim_start_matches('/').trim_end_matches('/');
        let is_folder = line.ends_with('/') || !name.contains('.');
        let is_plain = !name.is_empty()
            && !name.contains(['*', '?', '[', '\\'])
            && !name.split('/').any(|part| part == "..");
        if !is_folder || !is_plain {
            continue;
        }
        folders.insert(work.join(name));
        if !line.starts_with('/') && !name.contains('/') {
            if packages.is_none() {
                packages = Some(package_folders(work, git)?);
            }
            folders.extend(packages.iter().flatten().map(|package| package.join(name)));
        }
    }
    folders.retain(|folder| {
        let is_free = folder.symlink_metadata().is_err();
        is_free && folder.parent().is_some_and(|parent| parent.is_dir() && !parent.is_symlink())
    });
    Ok(folders)
}

/// The folders below the top with the manifest of a package.
fn package_folders(work: &Path, git: &Git) -> Result<BTreeSet<PathBuf>, WorktreeError> {
    let specs: Vec<String> = MANIFESTS.iter().map(|name| format!(":(glob)*/**/{name}")).collect();
    let specs = specs.iter().map(String::as_str);
    let args: Vec<&str> = ["ls-files", "-z", "--"].into_iter().chain(specs).collect();
    let listed = git.run(&args)?;
    let files = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(files.filter_map(|name| Some(work.join(OsStr::from_bytes(name)).parent()?.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_tools_write_is_found_before_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let git = Git::new(&root);
        git.run(&["init", "--quiet"]).unwrap();
        for (path, text) in [
            (".gitignore", "/target\n*.log\n.pytest_cache/\n!kept/\n# x\ndist/\nconfig.local\na/b/\n"),
            ("web/package.json", "{}"),
            ("x.log", ""),
            ("target", "a file"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        git.run(&["add", "web"]).unwrap();
        let (mut places, created) = ignored_places(&root, true).unwrap();
        places.sort();
        let at = |paths: &[&str]| paths.iter().map(|path| root.join(path)).collect::<Vec<_>>();
        assert_eq!(
            places,
            at(&[".pytest_cache", "dist", "target", "web/.pytest_cache", "web/dist", "x.log"])
        );
        assert_eq!(created, at(&[".pytest_cache", "dist", "web/.pytest_cache", "web/dist"]));
        assert_eq!(git.run(&["status", "--porcelain", "--", "web"]).unwrap(), b"A  web/package.json\n");
    }
}
