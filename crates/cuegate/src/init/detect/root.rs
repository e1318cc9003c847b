//! Reads files in the top folder of a project.

use std::{
    cell::OnceCell,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

/// The most bytes read of a file; a test script is declared before that.
const BYTES_MAX: u64 = 1024 * 1024;
/// The depth and the number of entries of a search for tests: enough to find one, and always fast.
const DEPTH_MAX: u32 = 3;
const ENTRIES_MAX: usize = 2_000;

/// A folder. Unreadable files count as missing.
pub(super) struct DetectionFolder {
    folder: PathBuf,
    /// The top folder of the project, which may be above.
    top: PathBuf,
    names: OnceCell<Vec<String>>,
}

impl DetectionFolder {
    pub(super) fn new(folder: &Path, top: &Path) -> DetectionFolder {
        DetectionFolder { folder: folder.to_owned(), top: top.to_owned(), names: OnceCell::new() }
    }

    /// The text of a regular file, without a byte order mark.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let path = self.folder.join(path);
        // Reading a pipe or a device might never end.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        fs::File::open(&path).ok()?.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        Some(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
    }

    /// Whether this is a regular file.
    pub(super) fn file(&self, path: &str) -> bool {
        self.folder.join(path).is_file()
    }

    /// Whether this lock file is here, or above in the project: a workspace has one for all of its packages.
    pub(super) fn lock(&self, name: &str) -> bool {
        let inside = self.folder.ancestors().take_while(|folder| folder.starts_with(&self.top));
        inside.map(|folder| folder.join(name)).any(|path| path.is_file())
    }

    /// Whether this is a folder.
    pub(super) fn folder(&self, path: &str) -> bool {
        self.folder.join(path).is_dir()
    }

    /// The first of these files that exists.
    pub(super) fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.file(name))
    }

    /// The entries of the folder, sorted.
    pub(super) fn names(&self) -> &[String] {
        self.names.get_or_init(|| {
            let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
            let mut names: Vec<String> =
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            names
        })
    }

    /// Whether this folder or a subfolder contains a file whose name fits.
    pub(super) fn holds(&self, folder: &str, fits: impl Fn(&str) -> bool) -> bool {
        let mut left = ENTRIES_MAX;
        has_matching_file(&self.folder.join(folder), DEPTH_MAX, &mut left, &fits)
    }

    /// The folders up to two levels below that may be packages of the project, sorted.
    pub(super) fn packages(&self) -> Vec<PathBuf> {
        let mut left = ENTRIES_MAX;
        let mut found = Vec::new();
        for folder in list_subfolders(&self.folder, &mut left) {
            let below = list_subfolders(&folder, &mut left);
            found.push(folder);
            found.extend(below);
        }
        found
    }

    /// The command that starts a wrapper script of this name.
    pub(super) fn command_of_wrapper_script(&self, name: &str) -> Option<String> {
        use std::os::unix::fs::PermissionsExt;
        let about = fs::metadata(self.folder.join(name)).ok().filter(fs::Metadata::is_file)?;
        let executable = about.permissions().mode() & 0o111 != 0;
        Some(if executable { format!("./{name}") } else { format!("sh {name}") })
    }
}

/// Folders of dependencies, build results and samples, whose tests are not the project's.
const FOREIGN: [&str; 15] = [
    "node_modules",
    "target",
    "vendor",
    "third_party",
    "dist",
    "build",
    "out",
    "bin",
    "obj",
    "venv",
    "env",
    "testdata",
    "fixtures",
    "example",
    "examples",
];

fn list_subfolders(folder: &Path, left: &mut usize) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in entries {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let name = entry.file_name();
        let is_own =
            name.to_str().is_some_and(|name| !name.starts_with(['.', '_']) && !FOREIGN.contains(&name));
        // Links are not followed.
        if is_own && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

fn has_matching_file(folder: &Path, depth: u32, left: &mut usize, fits: &impl Fn(&str) -> bool) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    for entry in entries.flatten() {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        // Do not follow links: they may form a cycle.
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name();
        let met = if kind.is_dir() {
            depth > 1 && has_matching_file(&entry.path(), depth - 1, left, fits)
        } else {
            name.to_str().is_some_and(fits)
        };
        if met {
            return true;
        }
    }
    false
}
