//! Commits, merges and pushes the work of a run that completed in a worktree of its own. Each step looks first whether
//! it is done, so it may be started again after a crash. Nothing is forced and nothing is deleted.

use std::fs;
use std::path::Path;
use std::time::Duration;

use cuegate_engine::Claim;

use super::branch_worktree::checkout_of;
use super::claim;
use super::error::{Error, io_at};
use super::git::Git;

/// The time limit of a push and of hooks.
const PUSH_MAX: Duration = Duration::from_secs(10 * 60);

/// How often a push to a locked branch is repeated, and the pause before.
const PUSH_AGAIN: (u32, Duration) = (3, Duration::from_secs(1));

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
    /// Whether hooks of the repository run.
    pub hooks: bool,
    /// The claim on the remote that its work replaces.
    pub claim: Option<&'b Claim>,
}

impl Branches<'_> {
    fn own(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// The name of its branch on the remote.
    pub fn on_remote(&self) -> &str {
        self.claim.map_or(self.branch, |claim| &claim.branch)
    }

    /// Git in a folder, with the hooks of the repository if they are wanted.
    fn git(&self, dir: &Path) -> Git {
        if self.hooks { Git::new(dir).with_hooks() } else { Git::new(dir) }
    }
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
    let args = ["commit", "--quiet", "--no-gpg-sign", "--message", message];
    let done = tried(named(at.git(at.work), at.work)?.run(&args))?;
    Ok(done.map(|()| format!("committed on `{}`", at.branch)))
}

/// Merges the branch of the run into its base. The merge is computed without touching any working tree. The base moves
/// only by a fast-forward, and where it is checked out only if no tracked file of that working tree is changed; otherwise
/// the merge stays on the branch of the run. `begun` is a file that notes that a working tree is being moved.
///
/// # Errors
/// When git cannot be started. `git merge-tree --write-tree` needs git 2.38.
pub fn merge(repo: &Path, at: &Branches<'_>, message: &str, begun: &Path) -> Result<Outcome, Error> {
    let Some(base) = at.base else {
        return Ok(Err(format!("the run started at no branch; merge `{}` by hand", at.branch)));
    };
    let git = Git::new(repo);
    let (own, onto) = (at.own(), format!("refs/heads/{base}"));
    if !git.succeeds(&["show-ref", "--verify", "--quiet", &onto])? {
        return Ok(Err(format!("the branch `{base}` is gone; merge `{}` by hand", at.branch)));
    }
    if git.succeeds(&["merge-base", "--is-ancestor", &own, &onto])? {
        return Ok(Ok(format!("`{base}` has it")));
    }
    if !git.succeeds(&["merge-base", "--is-ancestor", &onto, &own])? {
        // The base went on meanwhile.
        let tree = match merged_tree(&git, &onto, &own)? {
            Ok(tree) => tree,
            Err(files) => {
                let files = files.join(", ");
                return Ok(Err(format!(
                    "conflict with `{base}` in {files}; merge `{base}` in the worktree, then `cuegate retry`"
                )));
            }
        };
        let commit = ["commit-tree", "--no-gpg-sign", "-p", &onto, "-p", &own, "-m", message, &tree];
        let commit = named(git.clone(), repo)?.word(&commit)?;
        if let Err(why) = tried(Git::new(at.work).run(&["merge", "--quiet", "--ff-only", &commit]))? {
            return Ok(Err(why));
        }
    }
    let Some(checkout) = checkout_of(repo, &onto)?.filter(|path| path.is_dir()) else {
        // Compares with the old value, so that nothing that came meanwhile is lost.
        let moved = tried(git.run(&["fetch", "--quiet", ".", &format!("{own}:{onto}")]))?;
        return Ok(moved.map(|()| format!("merged into `{base}`")));
    };
    let tree = Git::new(&checkout);
    if begun.exists() {
        undo_half_move(&tree, &checkout, &own)?;
    }
    if !tree.run(&["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
        return Ok(Ok(format!(
            "`{base}` is checked out with uncommitted changes and was not moved: `git merge --ff-only {}`",
            at.branch
        )));
    }
    if let Some(folder) = begun.parent() {
        fs::create_dir_all(folder).map_err(io_at("create", folder))?;
    }
    fs::write(begun, own.as_bytes()).map_err(io_at("write", begun))?;
    let moved = tried(tree.run(&["merge", "--quiet", "--ff-only", &own]))?;
    let _ = fs::remove_file(begun);
    Ok(moved.map(|()| format!("merged into `{base}`")))
}

/// The tree of a merge, or the files that conflict.
fn merged_tree(git: &Git, onto: &str, own: &str) -> Result<Result<String, Vec<String>>, Error> {
    let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", onto, own];
    let output = git.output(&args, b"")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut parts = text.split('\0').filter(|part| !part.is_empty());
    match (output.status.code(), parts.next()) {
        (Some(0), Some(tree)) => Ok(Ok(tree.to_owned())),
        (Some(1), Some(_)) => Ok(Err(parts.map(str::to_owned).collect())),
        _ => Err(super::git::refused(&args, &output)),
    }
}

/// Takes back what a killed `git merge --ff-only` left in a working tree: files that already are, or begin to be, as in
/// the commit `to`, which holds their content. If anybody else changed a tracked file, everything stays.
fn undo_half_move(tree: &Git, top: &Path, to: &str) -> Result<(), Error> {
    let paths = |args: &[&str]| -> Result<Vec<String>, Error> {
        let options = ["diff", "--name-only", "-z", "--no-renames"];
        let listed = tree.run(&[&options, args, &["--"]].concat())?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        Ok(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
    };
    let moved = paths(&["HEAD", to])?;
    let is_ours = |path: &String| {
        let wanted = tree.run(&["cat-file", "blob", &format!("{to}:{path}")]).unwrap_or_default();
        match content(&top.join(path)) {
            Ok(is) => wanted.starts_with(&is),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    };
    let changed = paths(&["HEAD"])?;
    if !changed.iter().all(|path| moved.contains(path) && is_ours(path)) {
        return Ok(());
    }
    for path in paths(&["--diff-filter=A", "HEAD", to])?.iter().filter(|path| is_ours(path)) {
        match fs::remove_file(top.join(path)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io_at("remove", &top.join(path))(error));
            }
            _ => {}
        }
    }
    if !changed.is_empty() {
        // The index may already have files that HEAD lacks: without `--no-overlay` these are an error.
        let args = [
            "checkout",
            "--quiet",
            "--force",
            "--no-overlay",
            "HEAD",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
        ];
        let specs: String = changed.iter().map(|path| format!(":(top,literal){path}\0")).collect();
        tree.run_with(&args, specs.as_bytes())?;
    }
    Ok(())
}

/// The content of a file as git stores it: of a link, its target.
fn content(path: &Path) -> std::io::Result<Vec<u8>> {
    match fs::symlink_metadata(path)?.is_symlink() {
        true => Ok(fs::read_link(path)?.into_os_string().into_encoded_bytes()),
        false => fs::read(path),
    }
}

/// Pushes the base if it has the work, else the branch of the run. A remote branch that has other commits is never
/// overwritten.
///
/// # Errors
/// When git cannot be started.
pub fn push(repo: &Path, at: &Branches<'_>, remote: &str) -> Result<Outcome, Error> {
    let mut pushed = push_once(repo, at, remote)?;
    for _ in 0..PUSH_AGAIN.0 {
        // Another push holds the branch: that of a run which was killed goes on at the remote for a moment.
        let is_locked = pushed.as_ref().is_err_and(|why| why.contains("cannot lock ref"));
        if !is_locked {
            break;
        }
        std::thread::sleep(PUSH_AGAIN.1);
        pushed = push_once(repo, at, remote)?;
    }
    Ok(pushed)
}

fn push_once(repo: &Path, at: &Branches<'_>, remote: &str) -> Result<Outcome, Error> {
    let git = at.git(repo).within(PUSH_MAX);
    let mut branch = at.branch;
    if let Some(base) = at.base
        && git.succeeds(&["merge-base", "--is-ancestor", &at.own(), &format!("refs/heads/{base}")])?
    {
        branch = base;
    }
    if !git.succeeds(&["remote", "get-url", remote])? {
        return Ok(Err(format!("there is no remote `{remote}`; `git remote add {remote} URL` adds it")));
    }
    let to = if branch == at.branch { at.on_remote() } else { branch };
    let refs = format!("refs/heads/{branch}:refs/heads/{to}");
    let mut args = vec!["push".to_owned(), "--quiet".to_owned()];
    if let Some(claim) = at.claim.filter(|claim| to == claim.branch) {
        // Replaces the claim itself, never the work of somebody else.
        let is = match claim::on_remote(repo, remote, to)? {
            Ok(found) => found,
            Err(why) => return Ok(Err(format!("`{remote}` cannot be read: {why}"))),
        };
        if is.as_deref() == Some(&*claim.commit) {
            args.push(format!("--force-with-lease=refs/heads/{to}:{}", claim.commit));
        }
    }
    args.extend([remote.to_owned(), refs]);
    let pushed = tried(git.run(&args))?;
    let (own, as_typed) = match branch == to {
        true => (format!("`{to}`"), branch.to_owned()),
        false => (format!("`{branch}` as `{to}`"), format!("{branch}:{to}")),
    };
    Ok(pushed.map(|()| format!("pushed {own} to `{remote}`")).map_err(|why| {
        format!("`{remote}` refused {own}: {why}; when that is settled: `git push {remote} {as_typed}`")
    }))
}

/// Whether the branch of the run has commits that `into` lacks, on `remote` if that is known.
///
/// # Errors
/// When git cannot be started.
pub fn has_changes(repo: &Path, at: &Branches<'_>, into: &str, remote: &str) -> Result<bool, Error> {
    let git = Git::new(repo);
    for onto in [format!("refs/remotes/{remote}/{into}"), format!("refs/heads/{into}")] {
        if git.succeeds(&["show-ref", "--verify", "--quiet", &onto])? {
            return Ok(!git.succeeds(&["merge-base", "--is-ancestor", &at.own(), &onto])?);
        }
    }
    Ok(true)
}

/// The address of a remote; `None` if there is no such remote.
///
/// # Errors
/// When git cannot be started.
pub fn remote_url(repo: &Path, remote: &str) -> Result<Option<String>, Error> {
    match Git::new(repo).run(&["remote", "get-url", remote]) {
        Ok(url) => Ok(Some(trimmed(url)).filter(|url| !url.is_empty())),
        Err(Error::Git { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives git a name for commits if the user has configured none.
pub(super) fn named(mut git: Git, dir: &Path) -> Result<Git, Error> {
    if !Git::new(dir).succeeds(&["config", "user.email"])? {
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
            git = git.with(name, "Cuegate");
        }
        for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            git = git.with(name, "cuegate@localhost");
        }
    }
    Ok(git)
}

/// A failure of git as a text; other errors stay errors.
pub(super) fn tried(ran: Result<Vec<u8>, Error>) -> Result<Result<(), String>, Error> {
    match ran {
        Ok(_) => Ok(Ok(())),
        Err(Error::Git { stderr, .. }) => Ok(Err(stderr.trim().replace('\n', "; "))),
        Err(error) => Err(error),
    }
}

pub(super) fn trimmed(output: Vec<u8>) -> String {
    String::from_utf8_lossy(&output).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a kill may leave: a file changed in part, one deleted, a new one begun, nothing in the index; or everything
    /// and the index, but not HEAD.
    #[test]
    fn a_merge_that_was_killed_is_completed() {
        for (changed_by_user, has_index) in [(false, false), (true, false), (false, true)] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path();
            let git = Git::new(root);
            let run = |args: &[&str]| git.run(args).unwrap();
            run(&["init", "--quiet", "--initial-branch", "main"]);
            run(&["config", "user.name", "A"]);
            run(&["config", "user.email", "a@localhost"]);
            let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
            write("kept.txt", "kept\n");
            write("changed.txt", "old\n");
            write("gone.txt", "gone\n");
            run(&["add", "--all"]);
            run(&["commit", "--quiet", "--message", "base"]);
            run(&["checkout", "--quiet", "-b", "work"]);
            write("changed.txt", "new content\n");
            write("added.txt", "added content\n");
            fs::remove_file(root.join("gone.txt")).unwrap();
            run(&["add", "--all"]);
            run(&["commit", "--quiet", "--message", "work"]);
            run(&["checkout", "--quiet", "main"]);
            write("changed.txt", "new con");
            write("added.txt", "added");
            fs::remove_file(root.join("gone.txt")).unwrap();
            if changed_by_user {
                write("kept.txt", "mine\n");
            }
            if has_index {
                run(&["read-tree", "--reset", "-u", "work"]);
            }
            let begun = root.join(".git/begun");
            write(".git/begun", "");
            let at = Branches { work: root, branch: "work", base: Some("main"), hooks: false, claim: None };
            let merged = merge(root, &at, "merge", &begun).unwrap().unwrap();
            let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
            if changed_by_user {
                assert!(merged.contains("was not moved"), "{merged}");
                assert_eq!((read("kept.txt"), read("added.txt")), ("mine\n".into(), "added".into()));
                continue;
            }
            assert_eq!(merged, "merged into `main`");
            assert_eq!(run(&["status", "--porcelain"]), b"");
            assert_eq!(
                (read("changed.txt"), read("added.txt"), root.join("gone.txt").exists()),
                ("new content\n".into(), "added content\n".into(), false)
            );
        }
    }

    #[test]
    fn a_push_to_a_branch_that_is_locked_for_a_moment_is_repeated() {
        let (dir, bare) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let git = Git::new(dir.path());
        let run = |args: &[&str]| git.run(args).unwrap();
        run(&["init", "--quiet", "--bare", bare.path().to_str().unwrap()]);
        run(&["init", "--quiet", "--initial-branch", "work"]);
        let identity = ["-c", "user.name=A", "-c", "user.email=a@localhost"];
        run(&[&identity[..], &["commit", "--quiet", "--allow-empty", "--message", "work"]].concat());
        run(&["remote", "add", "origin", bare.path().to_str().unwrap()]);
        let lock = bare.path().join("refs/heads/work.lock");
        fs::write(&lock, "").unwrap();
        let unlocked = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            fs::remove_file(lock).unwrap();
        });
        let at = Branches { work: dir.path(), branch: "work", base: None, hooks: false, claim: None };
        assert_eq!(push(dir.path(), &at, "origin").unwrap().unwrap(), "pushed `work` to `origin`");
        unlocked.join().unwrap();
    }
}
