//! Pushes the work of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::super::claim;
use super::super::error::WorktreeError;
use super::super::git::Git;
use super::super::remote_branches::retry_taken_push;
use super::contents::RunWork;
use super::{Branches, Outcome, check_branch, merged_tree, separate_git_failure, set_fallback_author};

/// The time limit of a push and of hooks.
const PUSH_MAX: Duration = Duration::from_secs(10 * 60);

/// Pushes the base if this run merged its work into it, else the branch of the run. Nothing is pushed if the run changed
/// nothing, and no commit that the remote lacks and the run did not make is pushed with its branch. A remote branch that has
/// other commits is never overwritten.
///
/// # Errors
/// When git cannot be started.
pub fn push_run_work(
    repo: &Path,
    at: &Branches<'_>,
    work: &RunWork<'_>,
    remote: &str,
    message: &str,
) -> Result<Outcome, WorktreeError> {
    if let Err(why) = check_branch(repo, at, work)? {
        return Ok(Err(why));
    }
    if !has_work(repo, at, work)? {
        return Ok(Ok("nothing to push: the run changed nothing".to_owned()));
    }
    retry_taken_push(|| push_once(repo, at, work, remote, message), |pushed| pushed.as_ref().err())
}

/// Whether the branch of the run changes anything of the commit that it started from.
///
/// # Errors
/// When git cannot be started.
pub fn has_work(repo: &Path, at: &Branches<'_>, work: &RunWork<'_>) -> Result<bool, WorktreeError> {
    let git = Git::new(repo);
    let tree = |commit: &str| git.word(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")]);
    Ok(tree(&at.own())? != tree(work.base)?)
}

fn push_once(
    repo: &Path,
    at: &Branches<'_>,
    work: &RunWork<'_>,
    remote: &str,
    message: &str,
) -> Result<Outcome, WorktreeError> {
    let git = at.git(repo).within(PUSH_MAX);
    if !git.succeeds(&["remote", "get-url", remote])? {
        return Ok(Err(format!("there is no remote `{remote}`; `git remote add {remote} URL` adds it")));
    }
    if let Some(base) = at.base.filter(|_| at.merges)
        && git.succeeds(&["merge-base", "--is-ancestor", &at.own(), &format!("refs/heads/{base}")])?
    {
        let pushed = separate_git_failure(git.run(&[
            "push",
            "--quiet",
            remote,
            &format!("refs/heads/{base}:refs/heads/{base}"),
        ]))?;
        return Ok(pushed.map(|()| format!("pushed `{base}` to `{remote}`")).map_err(|why| {
            format!("`{remote}` refused `{base}`: {why}; when that is settled: `git push {remote} {base}`")
        }));
    }
    let to = at.on_remote();
    let heads = match claim::heads_of(repo, remote)? {
        Ok(heads) => heads,
        Err(why) => return Ok(Err(format!("`{remote}` cannot be read: {why}"))),
    };
    let on_remote = heads.get(&format!("refs/heads/{to}"));
    let claimed = at.claim.filter(|claim| to == claim.branch && on_remote == Some(&claim.commit));
    let mut args = vec!["push".to_owned(), "--quiet".to_owned()];
    if let Some(claim) = claimed {
        // Replaces the claim itself, never the work of somebody else.
        args.push(format!("--force-with-lease=refs/heads/{to}:{}", claim.commit));
    }
    let former = on_remote.filter(|_| claimed.is_none());
    let (source, without) =
        match choose_push_content(repo, at, work, &heads, former.map(String::as_str), message)? {
            Ok(PushContent::Branch) => (at.own(), 0),
            Ok(PushContent::Commit { commit, without }) => (commit, without),
            Err(why) => return Ok(Err(why)),
        };
    let refs = format!("{source}:refs/heads/{to}");
    args.extend([remote.to_owned(), refs]);
    let pushed = separate_git_failure(git.run(&args))?;
    let (own, as_typed) = match at.branch == to {
        true => (format!("`{to}`"), at.branch.to_owned()),
        false => (format!("`{}` as `{to}`", at.branch), format!("{}:{to}", at.branch)),
    };
    let apart = match without {
        0 => String::new(),
        1 => format!(", without a commit of yours that `{remote}` does not have"),
        count => format!(", without {count} commits of yours that `{remote}` does not have"),
    };
    Ok(pushed.map(|()| format!("pushed {own} to `{remote}`{apart}")).map_err(|why| {
        format!("`{remote}` refused {own}: {why}; when that is settled: `git push {remote} {as_typed}`")
    }))
}

/// What is pushed to the branch of the run.
enum PushContent {
    /// The branch as it is.
    Branch,
    /// A commit with the work alone.
    Commit { commit: String, without: usize },
}

/// What of the branch may be pushed. If the run started from commits that the remote lacks, its work is put on the newest
/// commit that the remote has, or on `former`, what was pushed before.
fn choose_push_content(
    repo: &Path,
    at: &Branches<'_>,
    work: &RunWork<'_>,
    heads: &BTreeMap<String, String>,
    former: Option<&str>,
    message: &str,
) -> Result<Result<PushContent, String>, WorktreeError> {
    let git = Git::new(repo);
    // To an empty remote everything is new, and nothing is put on anything.
    if heads.is_empty() {
        return Ok(Ok(PushContent::Branch));
    }
    let known = known_commits(&git, heads)?;
    let without = unpublished_commits(repo, work.base, heads)?;
    if without == 0 {
        return Ok(Ok(PushContent::Branch));
    }
    let inseparable = |why: &str| {
        let start = at.base.unwrap_or("HEAD");
        let commits = if without == 1 { "commit" } else { "commits" };
        Ok(Err(format!(
            "the work builds on {without} {commits} of `{start}` that the remote lacks, and {why}; push `{start}` first"
        )))
    };
    let target = at.base.and_then(|base| heads.get(&format!("refs/heads/{base}"))).map(String::as_str);
    let is_known = |commit: &&str| known.iter().any(|known| known == commit);
    let target = target.filter(is_known).or(known.first().map(String::as_str));
    let Some(onto) = target.and_then(|target| git.word(&["merge-base", work.base, target]).ok()) else {
        return inseparable("none of them is known here");
    };
    // The three-way merge needs the commit from which the run started as the common one.
    let [theirs, ours] = [at.own(), onto.clone()].map(|commit| {
        let tree = git.word(&["rev-parse", &format!("{commit}^{{tree}}")])?;
        set_fallback_author(git.clone(), repo)?.word(&[
            "commit-tree",
            "--no-gpg-sign",
            "-m",
            "side",
            "-p",
            work.base,
            &tree,
        ])
    });
    let tree = match merged_tree(&git, &ours?, &theirs?)? {
        Ok(tree) => tree,
        Err(files) => {
            return inseparable(&format!("conflicts with what the remote has in {}", files.join(", ")));
        }
    };
    let former = match former {
        Some(former) if git.succeeds(&["merge-base", "--is-ancestor", &onto, former])? => former,
        _ => &onto,
    };
    let commit = match git.word(&["rev-parse", &format!("{former}^{{tree}}")])? == tree {
        true => former.to_owned(),
        false => set_fallback_author(git.clone(), repo)?.word(&[
            "commit-tree",
            "--no-gpg-sign",
            "-p",
            former,
            "-m",
            message,
            &tree,
        ])?,
    };
    Ok(Ok(PushContent::Commit { commit, without }))
}

/// The commits of the branches of a remote that are in the repository.
fn known_commits(git: &Git, heads: &BTreeMap<String, String>) -> Result<Vec<String>, WorktreeError> {
    let asked: String = heads.values().map(|commit| format!("{commit}\n")).collect();
    let found = git.run_with(&["cat-file", "--batch-check=%(objecttype) %(objectname)"], asked.as_bytes())?;
    let found = String::from_utf8_lossy(&found).into_owned();
    Ok(found.lines().filter_map(|line| line.strip_prefix("commit ")).map(str::to_owned).collect())
}

/// How many commits `of` has that no branch of a remote has, as far as these are known here. `heads` are its branches.
///
/// # Errors
/// When git fails.
pub fn unpublished_commits(
    repo: &Path,
    of: &str,
    heads: &BTreeMap<String, String>,
) -> Result<usize, WorktreeError> {
    let git = Git::new(repo);
    let known = known_commits(&git, heads)?;
    let revisions: String = known.iter().map(|commit| format!("^{commit}\n")).collect();
    let count = git.run_with(&["rev-list", "--count", "--stdin", of], revisions.as_bytes())?;
    Ok(String::from_utf8_lossy(&count).trim().parse().unwrap_or(0))
}

/// Whether the branch of the run has commits that `into` lacks, on `remote` if that is known.
///
/// # Errors
/// When git cannot be started.
pub fn has_changes(repo: &Path, at: &Branches<'_>, into: &str, remote: &str) -> Result<bool, WorktreeError> {
    let git = Git::new(repo);
    for onto in [format!("refs/remotes/{remote}/{into}"), format!("refs/heads/{into}")] {
        if git.succeeds(&["show-ref", "--verify", "--quiet", &onto])? {
            return Ok(!git.succeeds(&["merge-base", "--is-ancestor", &at.own(), &onto])?);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::super::snapshots::snapshot::Trees;
    use super::*;

    #[test]
    fn a_push_to_a_branch_that_is_locked_for_a_moment_is_repeated() {
        let (dir, bare) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let git = Git::new(dir.path());
        let run = |args: &[&str]| git.run(args).unwrap();
        run(&["init", "--quiet", "--bare", bare.path().to_str().unwrap()]);
        run(&["init", "--quiet", "--initial-branch", "work"]);
        let identity = ["-c", "user.name=A", "-c", "user.email=a@localhost"];
        run(&[&identity[..], &["commit", "--quiet", "--allow-empty", "--message", "base"]].concat());
        let base = git.word(&["rev-parse", "HEAD"]).unwrap();
        let start = git.word(&["rev-parse", "HEAD^{tree}"]).unwrap();
        fs::write(dir.path().join("a"), "a").unwrap();
        run(&["add", "a"]);
        run(&[&identity[..], &["commit", "--quiet", "--message", "work"]].concat());
        let end = git.word(&["rev-parse", "HEAD^{tree}"]).unwrap();
        let state = tempfile::tempdir().unwrap();
        let trees = Trees::open(dir.path(), state.path()).unwrap().unwrap();
        let work = RunWork { trees: &trees, base: &base, start: &start, end: &end };
        run(&["remote", "add", "origin", bare.path().to_str().unwrap()]);
        let lock = bare.path().join("refs/heads/work.lock");
        fs::write(&lock, "").unwrap();
        let unlocked = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            fs::remove_file(lock).unwrap();
        });
        let at = Branches {
            work: dir.path(),
            branch: "work",
            base: None,
            hooks: false,
            merges: false,
            allowed: &[],
            claim: None,
        };
        assert_eq!(
            push_run_work(dir.path(), &at, &work, "origin", "work").unwrap().unwrap(),
            "pushed `work` to `origin`"
        );
        unlocked.join().unwrap();
    }
}
