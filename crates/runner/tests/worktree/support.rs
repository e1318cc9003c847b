//! Test repositories.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cuegate_runner::worktree::{Change, ChangeKind, Trees};

/// A repository and a state dir next to it.
pub(crate) struct Repo {
    pub(crate) place: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

/// Runs git without any user settings.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.envs([
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_OPTIONAL_LOCKS", "0"),
    ]);
    command.envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.org")]);
    command.envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.org")]);
    let output = command.args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Repo {
    pub(crate) fn empty() -> Repo {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("repo");
        fs::create_dir(&root).unwrap();
        git(&root, &["init", "--quiet", "--initial-branch=main"]);
        // These override the settings of the user who runs the tests.
        for setting in ["core.autocrlf=false", "core.fileMode=true", "core.excludesFile=/dev/null"] {
            let (name, value) = setting.split_once('=').unwrap();
            git(&root, &["config", name, value]);
        }
        Repo { place, root }
    }

    /// A repository with two committed files and an ignored one.
    pub(crate) fn new() -> Repo {
        let repo = Repo::empty();
        repo.write("a.txt", "one\ntwo\n");
        repo.write("dir/b.txt", "b\n");
        repo.write(".gitignore", "*.log\n");
        repo.write("noise.log", "noise");
        repo.commit();
        repo
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.root.join(path)).unwrap();
    }

    pub(crate) fn commit(&self) {
        git(&self.root, &["add", "--all"]);
        git(&self.root, &["commit", "--quiet", "--message", "x"]);
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.place.path().join("state")
    }

    pub(crate) fn trees(&self) -> Trees {
        Trees::open(&self.root, &self.state()).unwrap().unwrap()
    }

    pub(crate) fn tree(&self) -> String {
        self.trees().snapshot().unwrap().tree
    }

    /// `A path` for each file of the present tree.
    pub(crate) fn all(&self) -> Vec<String> {
        let empty = git(&self.root, &["hash-object", "-t", "tree", "/dev/null"]);
        lines(&self.trees().changes(empty.trim(), &self.tree()).unwrap())
    }

    /// The changes that `body` makes, as `M path`.
    pub(crate) fn changed_by(&self, body: impl FnOnce()) -> Vec<String> {
        let before = self.tree();
        body();
        lines(&self.trees().changes(&before, &self.tree()).unwrap())
    }

    /// The state of the repository: status, stash, refs, the index and every file of `.git`.
    pub(crate) fn seen(&self) -> (Vec<String>, BTreeMap<PathBuf, Vec<u8>>) {
        let seen = [&["status", "--porcelain"][..], &["stash", "list"], &["for-each-ref"], &["reflog"]];
        (seen.iter().map(|args| git(&self.root, args)).collect(), files(&self.root.join(".git")))
    }
}

pub(crate) fn lines(changes: &[Change]) -> Vec<String> {
    let letter = |kind| match kind {
        ChangeKind::Added => 'A',
        ChangeKind::Modified => 'M',
        ChangeKind::Deleted => 'D',
        ChangeKind::TypeChanged => 'T',
    };
    changes.iter().map(|change| format!("{} {}", letter(change.kind), change.path)).collect()
}

/// All files below a folder with their contents; symbolic links with their targets.
pub(crate) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            found.extend(files(&path));
        } else if kind.is_symlink() {
            found.insert(path.clone(), fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec());
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}
