//! Keeps the files of a worktree that git ignores, which are in no snapshot, as a commit.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::beneath::FolderHandle;
use crate::worktree::error::{WorktreeError, io_at};
use crate::worktree::git::Git;

/// The most bytes that are kept. They are read into memory.
const KEPT_MAX: u64 = 64 << 20;

/// Folders of caches and installed packages, which can be made again.
const REBUILT: [&str; 8] = [
    "node_modules",
    "__pycache__",
    ".tox",
    ".gradle",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".parcel-cache",
];

/// A folder with one of these files can be made again as well: build tools mark their output, Python its environments.
const MARKS: [&str; 2] = ["CACHEDIR.TAG", "pyvenv.cfg"];

/// Whether a folder holds what can be built or installed again.
pub(in crate::worktree) fn can_be_rebuilt(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default();
    REBUILT.iter().any(|known| name == *known) || MARKS.iter().any(|mark| folder.join(mark).exists())
}

/// What a worktree holds that git ignores.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IgnoredFiles {
    /// The files and links, relative to the worktree.
    pub files: Vec<PathBuf>,
    /// Their size in bytes.
    pub bytes: u64,
    /// Folders that can be built or installed again; their content is in no list.
    pub rebuilt: Vec<PathBuf>,
}

impl IgnoredFiles {
    /// Finds what git ignores.
    ///
    /// # Errors
    /// When git fails, or a folder cannot be read.
    pub fn find(work: &Path) -> Result<IgnoredFiles, WorktreeError> {
        let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let listed = Git::new(work).run(&args)?;
        let mut found = IgnoredFiles::default();
        for name in listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            found.add(work, Path::new(OsStr::from_bytes(name)))?;
        }
        found.files.sort();
        found.rebuilt.sort();
        Ok(found)
    }

    fn add(&mut self, work: &Path, path: &Path) -> Result<(), WorktreeError> {
        let at = work.join(path);
        let data = match at.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            data => data.map_err(io_at("read", &at))?,
        };
        if data.is_dir() {
            // The same path without the `/` that git prints.
            let path: PathBuf = path.components().collect();
            if can_be_rebuilt(&at) {
                self.rebuilt.push(path);
                return Ok(());
            }
            let tree = FolderHandle::open(work).map_err(io_at("open", work))?;
            for (name, _) in tree.list(&path).map_err(io_at("read", &at))? {
                self.add(work, &path.join(name))?;
            }
        } else if data.is_file() || data.is_symlink() {
            self.bytes += data.len();
            self.files.push(path.to_owned());
        }
        Ok(())
    }

    /// Whether there is more than [`IgnoredFiles::keep`] takes.
    pub fn is_too_much(&self) -> bool {
        self.bytes > KEPT_MAX
    }

    /// Keeps the files as a commit of the repository, reachable by `name`. Folders named `.git` are called `dot-git`
    /// there, because git accepts no such path.
    ///
    /// # Errors
    /// When a file cannot be read, or git fails.
    pub fn keep(&self, repo: &Path, work: &Path, name: &str) -> Result<(), WorktreeError> {
        let message = "Files that git ignores";
        let mut stream = format!(
            "commit {name}\ncommitter Cuegate <cuegate@localhost> 0 +0000\ndata {}\n{message}\n",
            message.len()
        )
        .into_bytes();
        let tree = FolderHandle::open(work).map_err(io_at("open", work))?;
        for file in &self.files {
            let at = work.join(file);
            let (mode, content) = if let Ok(target) = tree.read_link(file) {
                ("120000", target.into_os_string().into_encoded_bytes())
            } else {
                let state = tree.state_of(file).map_err(io_at("read", &at))?;
                let is_program = state.is_some_and(|state| state.mode & 0o100 != 0);
                let content = tree.read(file, KEPT_MAX).map_err(io_at("read", &at))?;
                (if is_program { "100755" } else { "100644" }, content)
            };
            stream.extend(
                format!("M {mode} inline {}\ndata {}\n", quote_import_path(file), content.len()).bytes(),
            );
            stream.extend(content);
            stream.push(b'\n');
        }
        Git::new(repo).run_with(&["fast-import", "--quiet", "--force"], &stream)?;
        Ok(())
    }
}

/// A path in the notation of `git fast-import`.
fn quote_import_path(path: &Path) -> String {
    let parts: Vec<&OsStr> =
        path.iter().map(|part| if part == ".git" { OsStr::new("dot-git") } else { part }).collect();
    let mut text = "\"".to_owned();
    for byte in parts.join(OsStr::new("/")).as_bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            0x20..=0x7e => text.push(char::from(*byte)),
            byte => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn ignored_files_are_kept_as_they_are_and_built_ones_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let git = Git::new(root);
        git.run(&["init", "--quiet"]).unwrap();
        let write = |path: &str, content: &[u8]| {
            let at = root.join(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, content).unwrap();
        };
        write(".git/info/exclude", b"*.log\nout/\nnode_modules/\ncache/\n");
        write("kept.txt", b"no");
        write("a\n\"b\\.log", b"\0\xff\r\n");
        write("out/deep/ä b", b"x");
        write("out/clone/.git/config", b"y");
        write("out/empty", b"");
        write("out/run.sh", b"#!/bin/sh\n");
        fs::set_permissions(root.join("out/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("no/where", root.join("out/link")).unwrap();
        write("node_modules/a/b.js", b"z");
        write("cache/CACHEDIR.TAG", b"");
        let found = IgnoredFiles::find(root).unwrap();
        assert_eq!(found.rebuilt, [PathBuf::from("cache"), "node_modules".into()]);
        found.keep(root, root, "refs/cuegate/x-ignored").unwrap();
        let listed =
            git.run(&["ls-tree", "-r", "refs/cuegate/x-ignored", "--format=%(objectmode) %(path)"]).unwrap();
        let listed = String::from_utf8(listed).unwrap();
        let mut lines: Vec<&str> = listed.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                r#"100644 "a\n\"b\\.log""#,
                "100644 out/clone/dot-git/config",
                "100644 out/deep/ä b",
                "100644 out/empty",
                "100755 out/run.sh",
                "120000 out/link"
            ]
        );
        let content = git.run(&["cat-file", "blob", "refs/cuegate/x-ignored:a\n\"b\\.log"]).unwrap();
        assert_eq!(content, b"\0\xff\r\n");
        git.run(&["fsck", "--strict"]).unwrap();
    }
}
