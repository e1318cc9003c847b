//! Worktrees for runs. Unlike snapshots these are the repository's own: a branch, and a folder that git knows.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::error::{Error, io_at};
use super::git::Git;

/// A working tree of its own for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its folder, absolute.
    pub path: PathBuf,
    /// Its branch, without `refs/heads/`.
    pub branch: String,
    /// The commit that it started from.
    pub base: String,
}

/// Creates the branch `branch` from the commit `base` (default: HEAD of `repo`) and a worktree of it in the folder `at`,
/// which must be missing or empty. What is uncommitted in `repo` does not come along, see [`is_dirty`].
///
/// # Errors
/// [`Error::Branch`], [`Error::PathTaken`], [`Error::NoCommit`] before anything is made; [`Error::Git`] when git refuses
/// for another reason. Each has a [`Error::hint`].
pub fn add(repo: &Path, at: &Path, branch: &str, base: Option<&str>) -> Result<Worktree, Error> {
    let git = Git::at(repo);
    let path = std::path::absolute(at).map_err(io_at("find", at))?;
    let branch_ref = format!("refs/heads/{branch}");
    let fail = |why| Err(Error::Branch { branch: branch.to_owned(), why });
    if branch.starts_with('-') || !git.says(&["check-ref-format", &branch_ref])? {
        return fail("not a name for a branch");
    }
    if git.says(&["show-ref", "--verify", "--quiet", &branch_ref])? {
        return fail("it exists");
    }
    if path.symlink_metadata().is_ok() && path.read_dir().map_or(true, |mut entries| entries.next().is_some())
    {
        return Err(Error::PathTaken { path });
    }
    let base = commit(&git, base.unwrap_or("HEAD"))?;
    // The commit, not its name: from the name of a remote's branch git would make one that follows it.
    let args = ["worktree", "add", "--quiet", "-b", branch, "--"].map(OsStr::new);
    git.run(&[&args[..], &[path.as_os_str(), OsStr::new(&base)]].concat())?;
    Ok(Worktree { path, branch: branch.to_owned(), base })
}

/// Whether anything in the working tree of `work` is not committed: changed, staged or untracked, ignored files and
/// `.cuegate` apart.
///
/// # Errors
/// `work` is in no working tree, or git refuses.
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
    Ok(!Git::at(work).run(&[&args[..], &paths].concat())?.is_empty())
}

fn commit(git: &Git, base: &str) -> Result<String, Error> {
    let commit = format!("{base}^{{commit}}");
    match git.word(&["rev-parse", "--quiet", "--verify", "--end-of-options", &commit]) {
        // Before 2.30 git printed the option too.
        Ok(found) => Ok(found.lines().last().unwrap_or_default().to_owned()),
        Err(Error::Git { .. }) => Err(Error::NoCommit { base: base.to_owned() }),
        Err(error) => Err(error),
    }
}
