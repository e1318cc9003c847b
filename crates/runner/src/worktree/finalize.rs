//! Commits, merges and pushes the work of a run that completed in a worktree of its own. Each step looks first whether
//! it is done, so it may be started again after a crash. Hooks of the repository do not run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::branch_worktree::is_dirty;
use super::error::Error;
use super::git::Git;

/// The time limit of a push.
const PUSH_MAX: Duration = Duration::from_secs(10 * 60);

/// What a step did, or why it cannot be done.
pub type Outcome = Result<String, String>;

/// The branches of a run.
#[derive(Debug, Clone)]
pub struct Branches<'b> {
    /// The worktree of the run.
    pub work: &'b Path,
    /// Its branch.
    pub branch: &'b str,
    /// The branch from which that started.
    pub base: Option<&'b str>,
}

/// Commits everything in the worktree that git does not ignore.
///
/// # Errors
/// When git cannot be started.
pub fn commit(at: &Branches<'_>, message: &str) -> Result<Outcome, Error> {
    let git = Git::new(at.work);
    let head = git.run(&["symbolic-ref", "--quiet", "--short", "HEAD"]).map(trimmed).unwrap_or_default();
    if head != at.branch {
        let is = if head.is_empty() { "no branch".to_owned() } else { format!("`{head}`") };
        return Ok(Err(format!("the worktree is on {is}, not on `{}`", at.branch)));
    }
    if let Err(why) = tried(git.run(&["add", "--all"]))? {
        return Ok(Err(why));
    }
    if git.succeeds(&["diff", "--cached", "--quiet"])? {
        return Ok(Ok("nothing was left to commit".to_owned()));
    }
    let mut git = git;
    if !Git::new(at.work).succeeds(&["config", "user.email"])? {
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
            git = git.with(name, "Cuegate");
        }
        for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            git = git.with(name, "cuegate@localhost");
        }
    }
    let done = tried(git.run(&["commit", "--quiet", "--no-verify", "--message", message]))?;
    Ok(done.map(|()| format!("committed on `{}`", at.branch)))
}

/// Merges the branch of the run into its base. The base moves only by a fast-forward, and where it is checked out only if
/// that working tree has no uncommitted changes; otherwise the merge stays on the branch of the run.
///
/// # Errors
/// When git cannot be started.
pub fn merge(repo: &Path, at: &Branches<'_>, message: &str) -> Result<Outcome, Error> {
    let Some(base) = at.base else {
        return Ok(Err(format!("the run started at no branch; merge `{}` by hand", at.branch)));
    };
    let git = Git::new(repo);
    let (own, onto) = (format!("refs/heads/{}", at.branch), format!("refs/heads/{base}"));
    if !git.succeeds(&["show-ref", "--verify", "--quiet", &onto])? {
        return Ok(Err(format!("the branch `{base}` is gone; merge `{}` by hand", at.branch)));
    }
    if git.succeeds(&["merge-base", "--is-ancestor", &own, &onto])? {
        return Ok(Ok(format!("`{base}` has it already")));
    }
    if !git.succeeds(&["merge-base", "--is-ancestor", &onto, &own])? {
        // The base went on meanwhile. The merge is made on the branch of the run, without touching any other tree.
        let worktree = Git::new(at.work);
        let merged = worktree.output(&["merge", "--quiet", "--no-ff", "--no-verify", "-m", message, &onto], b"")?;
        if !merged.status.success() {
            let files = worktree.run(&["diff", "--name-only", "--diff-filter=U"]).map(trimmed).unwrap_or_default();
            let _ = worktree.run(&["merge", "--abort"]);
            let files: Vec<&str> = files.lines().collect();
            return Ok(Err(match files.is_empty() {
                true => format!("git cannot merge `{base}` into `{}`", at.branch),
                false => format!("it conflicts with `{base}` in {}", files.join(", ")),
            }));
        }
    }
    if let Some(checkout) = checkout_of(&git, &onto)? {
        if is_dirty(&checkout)? {
            return Ok(Ok(format!(
                "`{base}` is checked out with uncommitted changes and was not moved: `git merge --ff-only {}`",
                at.branch
            )));
        }
        let moved = tried(Git::new(&checkout).run(&["merge", "--quiet", "--ff-only", &own]))?;
        return Ok(moved.map(|()| format!("merged into `{base}`")));
    }
    let moved = tried(git.run(&["fetch", "--quiet", ".", &format!("{own}:{onto}")]))?;
    Ok(moved.map(|()| format!("merged into `{base}`")))
}

/// Pushes the base if it has the work, else the branch of the run. A remote branch that has other commits is never
/// overwritten.
///
/// # Errors
/// When git cannot be started.
pub fn push(repo: &Path, at: &Branches<'_>, remote: &str) -> Result<Outcome, Error> {
    let git = Git::new(repo).within(PUSH_MAX).with("GIT_TERMINAL_PROMPT", "0");
    let own = format!("refs/heads/{}", at.branch);
    let mut branch = at.branch;
    if let Some(base) = at.base {
        if git.succeeds(&["merge-base", "--is-ancestor", &own, &format!("refs/heads/{base}")])? {
            branch = base;
        }
    }
    if !git.succeeds(&["remote", "get-url", remote])? {
        return Ok(Err(format!("there is no remote `{remote}`; `git remote add {remote} URL` adds it")));
    }
    let pushed = tried(git.run(&["push", "--quiet", "--no-verify", remote, &format!("refs/heads/{branch}:refs/heads/{branch}")]))?;
    Ok(pushed.map(|()| format!("pushed `{branch}` to `{remote}`")).map_err(|why| {
        format!("`{remote}` refused `{branch}`: {why}; when that is settled: `git push {remote} {branch}`")
    }))
}

/// The working tree in which a branch is checked out.
fn checkout_of(git: &Git, branch_ref: &str) -> Result<Option<PathBuf>, Error> {
    let listed = git.run(&["worktree", "list", "--porcelain"])?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let line = format!("branch {branch_ref}");
    let entry = listed.split("\n\n").find(|entry| entry.lines().any(|known| known == line));
    let path = entry.and_then(|entry| entry.lines().next()?.strip_prefix("worktree "));
    Ok(path.map(PathBuf::from).filter(|path| path.is_dir()))
}

/// A failure of git as a text; other errors stay errors.
fn tried(ran: Result<Vec<u8>, Error>) -> Result<Result<(), String>, Error> {
    match ran {
        Ok(_) => Ok(Ok(())),
        Err(Error::Git { stderr, .. }) => Ok(Err(stderr.trim().replace('\n', "; "))),
        Err(error) => Err(error),
    }
}

fn trimmed(output: Vec<u8>) -> String {
    String::from_utf8_lossy(&output).trim().to_owned()
}
