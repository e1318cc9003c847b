//! Pushes the work of a run.

use std::path::Path;
use std::time::Duration;

use super::super::error::WorktreeError;
use super::super::git::Git;
use super::super::remote_branches::retry_taken_push;
use super::super::remote_heads::RemoteHeads;
use super::contents::RunWork;
use super::{Branches, Outcome, Prove, check_branch, merged_tree, separate_git_failure, set_fallback_author};

/// The time limit of a push and of hooks.
const PUSH_MAX: Duration = Duration::from_secs(10 * 60);

/// Pushes the base if this run merged its work into it, else the branch of the run. Nothing is pushed if the run changed
/// nothing, and no commit that the remote lacks and the run did not make is pushed with its branch. A remote branch that has
/// other commits is never overwritten. A tree that no gate of the run has seen is pushed only after `prove`.
///
/// # Errors
/// When git cannot be started.
pub fn push_run_work(
    repo: &Path,
    at: &Branches<'_>,
    work: &RunWork<'_>,
    remote: &str,
    message: &str,
    prove: Prove<'_>,
) -> Result<Outcome, WorktreeError> {
    if let Err(why) = check_branch(repo, at, work)? {
        return Ok(Err(why));
    }
    if !has_work(repo, at, work)? {
        return Ok(Ok("nothing to push: the run changed nothing".to_owned()));
    }
    retry_taken_push(
        || push_once(repo, at, work, remote, message, &mut *prove),
        |pushed| pushed.as_ref().err(),
    )
}

/// Whether the branch of the run changes anything of the commit that it started from.
///
/// # Errors
/// When git cannot be started.
pub fn has_work(repo: &Path, at: &Branches<'_>, work: &RunWork<'_>) -> Result<bool, WorktreeError> {
    let git = Git::new(repo);
    Ok(tree_of(&git, &at.own())? != tree_of(&git, work.base)?)
}

fn tree_of(git: &Git, commit: &str) -> Result<String, WorktreeError> {
    git.word(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")])
}

fn push_once(
    repo: &Path,
    at: &Branches<'_>,
    work: &RunWork<'_>,
    remote: &str,
    message: &str,
    prove: Prove<'_>,
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
    let wanted: Vec<&str> = at.target().into_iter().chain([to]).collect();
    let heads = match RemoteHeads::ask(repo, remote, &wanted)? {
        Ok(heads) => heads,
        Err(why) => return Ok(Err(format!("`{remote}` cannot be read: {why}"))),
    };
    let on_remote = heads.list().get(&format!("refs/heads/{to}"));
    let claimed = at.claim.filter(|claim| to == claim.branch && on_remote == Some(&claim.commit));
    let mut args = vec!["push".to_owned(), "--quiet".to_owned()];
    if let Some(claim) = claimed {
        // Replaces the claim itself, never the work of somebody else.
        args.push(format!("--force-with-lease=refs/heads/{to}:{}", claim.commit));
    }
    let former = on_remote.filter(|_| claimed.is_none()).cloned();
    let content = match choose_push_content(repo, at, work, heads, former.as_deref(), message)? {
        Ok(content) => content,
        Err(why) => return Ok(Err(why)),
    };
    let mut proof = String::new();
    let is_other = tree_of(&git, &content.commit)? != tree_of(&git, &at.own())?;
    if Some(&content.commit) != former.as_ref() && (is_other || at.is_edited) {
        match prove(&tree_of(&git, &content.commit)?, &content.remark)? {
            Ok(proved) => proof = proved,
            Err(why) => return Ok(Err(format!("{why}; nothing was pushed"))),
        }
    }
    args.extend([remote.to_owned(), format!("{}:refs/heads/{to}", content.commit)]);
    let pushed = separate_git_failure(git.run(&args))?;
    if pushed.is_ok() && !content.is_branch {
        // What was pushed can be added to, and is recognised as work of this run.
        git.run(&["update-ref", &pushed_ref(at.branch), &content.commit])?;
    }
    let (own, as_typed) = match at.branch == to {
        true => (format!("`{to}`"), at.branch.to_owned()),
        false => (format!("`{}` as `{to}`", at.branch), format!("{}:{to}", at.branch)),
    };
    Ok(pushed.map(|()| format!("pushed {own} to `{remote}`{}{proof}", content.remark)).map_err(|why| {
        let command = match content.is_branch {
            true => format!("git push {remote} {as_typed}"),
            // The branch has other commits than what was to be pushed.
            false => "cuegate retry".to_owned(),
        };
        format!("`{remote}` refused {own}: {why}; when that is settled: `{command}`")
    }))
}

/// The reference to the commit that was pushed for a branch that has another one here.
pub(in crate::worktree) fn pushed_ref(branch: &str) -> String {
    format!("refs/cuegate/pushed/{branch}")
}

/// What is pushed to the branch of the run.
struct PushContent {
    commit: String,
    /// Whether it is the branch as it is.
    is_branch: bool,
    /// How it differs from the branch, or the branch from its base on the remote; empty if it does not.
    remark: String,
}

/// What of the branch may be pushed. If the run started from commits that the remote lacks, its work is put on the newest
/// commit below them that the remote has, or on `former`, what was pushed before. If the base has moved on there and that is
/// wanted, it is merged.
fn choose_push_content(
    repo: &Path,
    at: &Branches<'_>,
    work: &RunWork<'_>,
    mut heads: RemoteHeads<'_>,
    former: Option<&str>,
    message: &str,
) -> Result<Result<PushContent, String>, WorktreeError> {
    let git = set_fallback_author(Git::new(repo), repo)?;
    let own = git.word(&["rev-parse", "--verify", "--quiet", &at.own()])?;
    let branch = |remark: String| PushContent { commit: own.clone(), is_branch: true, remark };
    // To an empty remote everything is new, and nothing is put on anything.
    if heads.list().is_empty() {
        return Ok(Ok(branch(String::new())));
    }
    let contains = |commit: &str, inner: &str| git.succeeds(&["merge-base", "--is-ancestor", inner, commit]);
    let without = heads.count_unpublished(work.base)?;
    let mut content = match without {
        0 => branch(String::new()),
        _ => match separate_work(&git, at, work, &heads, former, message, without)? {
            Ok(commit) => {
                let commits = if without == 1 { "a commit".to_owned() } else { format!("{without} commits") };
                let remark = format!(", without {commits} of yours that `{}` does not have", heads.remote());
                PushContent { commit, is_branch: false, remark }
            }
            Err(why) => return Ok(Err(why)),
        },
    };
    // What this run pushed and its branch does not have: merges with the base.
    let pushed = git.word(&["rev-parse", "--verify", "--quiet", &pushed_ref(at.branch)]).ok();
    let mut others: Vec<(String, String)> = Vec::new();
    if let Some(former) = former.filter(|former| pushed.as_deref() == Some(*former)) {
        if contains(former, &content.commit)? {
            content = PushContent { commit: former.to_owned(), is_branch: false, ..content };
        } else {
            others.push((former.to_owned(), "what was pushed before".to_owned()));
        }
    }
    let target = at.target().and_then(|target| Some((target, heads.find(target)?.to_owned())));
    if let Some((target, head)) = target
        && !contains(&content.commit, &head)?
    {
        let count = heads.count_missing(target, &content.commit)?;
        let commits = if count == 1 { "a commit".to_owned() } else { format!("{count} commits") };
        let name = format!("`{target}` of `{}`", heads.remote());
        match at.updates {
            true => {
                content.remark = format!("{}, with {commits} of {name} merged into it", content.remark);
                others.push((head, name));
            }
            // A person or a merge queue decides about that, as about any branch that is not the newest.
            false => content.remark = format!("{}; {name} went on by {commits} meanwhile", content.remark),
        }
    }
    for (head, name) in &others {
        if contains(&content.commit, head)? {
            continue;
        }
        let tree = match merged_tree(&git, head, &content.commit)? {
            Ok(tree) => tree,
            Err(files) => {
                let files = files.join(", ");
                return Ok(Err(format!(
                    "conflict with {name} in {files}; merge it in the worktree, then `cuegate retry`"
                )));
            }
        };
        let parents = ["-p", &content.commit, "-p", head];
        let args = [&["commit-tree", "--no-gpg-sign", "-m", message][..], &parents, &[&tree]].concat();
        content.commit = git.word(&args)?;
        content.is_branch = false;
    }
    Ok(Ok(content))
}

/// A commit with the work alone, without the commits of the user below it.
fn separate_work(
    git: &Git,
    at: &Branches<'_>,
    work: &RunWork<'_>,
    heads: &RemoteHeads<'_>,
    former: Option<&str>,
    message: &str,
    without: usize,
) -> Result<Result<String, String>, WorktreeError> {
    let inseparable = |why: &str| {
        let start = at.base.unwrap_or("HEAD");
        let commits = if without == 1 { "commit" } else { "commits" };
        Ok(Err(format!(
            "the work builds on {without} {commits} of `{start}` that `{}` lacks, and {why}; push `{start}` first",
            heads.remote()
        )))
    };
    let Some(onto) = heads.find_published_base(work.base)? else {
        return inseparable("they are not built on one commit that it has");
    };
    // The three-way merge needs the commit from which the run started as the common one.
    let [theirs, ours] = [at.own(), onto.clone()].map(|commit| {
        let tree = tree_of(git, &commit)?;
        git.word(&["commit-tree", "--no-gpg-sign", "-m", "side", "-p", work.base, &tree])
    });
    let tree = match merged_tree(git, &ours?, &theirs?)? {
        Ok(tree) => tree,
        Err(files) => {
            return inseparable(&format!("conflicts with what the remote has in {}", files.join(", ")));
        }
    };
    let former = match former {
        Some(former) if git.succeeds(&["merge-base", "--is-ancestor", &onto, former])? => former,
        _ => &onto,
    };
    if tree_of(git, former)? == tree {
        return Ok(Ok(former.to_owned()));
    }
    git.word(&["commit-tree", "--no-gpg-sign", "-p", former, "-m", message, &tree]).map(Ok)
}

/// Whether the branch of the run has commits that the branch `into` of a remote lacks.
///
/// # Errors
/// When git cannot be started; with the words of the remote when it cannot be asked.
pub fn has_changes(
    repo: &Path,
    at: &Branches<'_>,
    into: &str,
    remote: &str,
) -> Result<Result<bool, String>, WorktreeError> {
    let heads = match RemoteHeads::ask(repo, remote, &[into])? {
        Ok(heads) => heads,
        Err(why) => return Ok(Err(why)),
    };
    let Some(onto) = heads.find(into) else { return Ok(Ok(true)) };
    Ok(Ok(!Git::new(repo).succeeds(&["merge-base", "--is-ancestor", &at.own(), onto])?))
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
            into: None,
            merges: false,
            updates: false,
            is_edited: false,
            allowed: &[],
            claim: None,
        };
        assert_eq!(
            push_run_work(dir.path(), &at, &work, "origin", "work", &mut |_, _| panic!()).unwrap().unwrap(),
            "pushed `work` to `origin`"
        );
        unlocked.join().unwrap();
    }
}
