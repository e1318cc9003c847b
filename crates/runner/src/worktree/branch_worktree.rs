//! Creates git worktrees for runs. Unlike snapshots, these belong to the repository: a branch and a registered folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::error::{Error, io_at};
use super::git::Git;

/// A git worktree of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its folder, absolute.
    pub path: PathBuf,
    /// Its branch, without `refs/heads/`.
    pub branch: String,
    /// The commit it was created from.
    pub base: String,
}

/// Creates the branch `branch` from the commit `base` (default: HEAD of `repo`) and a worktree of it in the folder
/// `at`, which must be missing or empty. Uncommitted changes in `repo` are not copied, see [`is_dirty`].
///
/// # Errors
/// [`Error::Branch`], [`Error::PathTaken`], [`Error::NoCommit`] before anything is created; [`Error::Git`] when git
/// fails for another reason. Each has a [`Error::hint`].
pub fn add(repo: &Path, at: &Path, branch: &str, base: Option<&str>) -> Result<Worktree, Error> {
    let git = Git::new(repo);
    let path = std::path::absolute(at).map_err(io_at("find", at))?;
    let branch_ref = format!("refs/heads/{branch}");
    let fail = |why| Err(Error::Branch { branch: branch.to_owned(), why });
    if branch.starts_with('-') || !git.succeeds(&["check-ref-format", &branch_ref])? {
        return fail("not a valid branch name");
    }
    if git.succeeds(&["show-ref", "--verify", "--quiet", &branch_ref])? {
        return fail("it already exists");
    }
    if path.symlink_metadata().is_ok() && path.read_dir().map_or(true, |mut entries| entries.next().is_some())
    {
        return Err(Error::PathTaken { path });
    }
    let base = commit(&git, base.unwrap_or("HEAD"))?;
    // Pass the commit, not its name: for the name of a remote branch git would set up tracking.
    let args = ["worktree", "add", "--quiet", "-b", branch, "--"].map(OsStr::new);
    git.run(&[&args[..], &[path.as_os_str(), OsStr::new(&base)]].concat())?;
    Ok(Worktree { path, branch: branch.to_owned(), base })
}

/// Whether the working tree of `work` has uncommitted changes: changed, staged or untracked files. Ignored files and
/// `.cuegate` do not count.
///
/// # Errors
/// `work` is in no working tree, or git fails.
pub fn is_dirty(work: &Path) -> Result<bool, Error> {
    let args = [
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=normal",
        "--ignore-submodules=none",
    ];
    let paths = ["--", ":/", ":(top,exclude,literal).cuegate"];
    Ok(!Git::new(work).run(&[&args[..], &paths].concat())?.is_empty())
}

fn commit(git: &Git, base: &str) -> Result<String, Error> {
    let commit = format!("{base}^{{commit}}");
    match git.word(&["rev-parse", "--quiet", "--verify", "--end-of-options", &commit]) {
        // Git before 2.30 also prints the option.
        Ok(found) => Ok(found.lines().last().unwrap_or_default().to_owned()),
        Err(Error::Git { .. }) => Err(Error::NoCommit { base: base.to_owned() }),
        Err(error) => Err(error),
    }
}
