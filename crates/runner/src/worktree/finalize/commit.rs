//! Commits the work of a run on its branch.

use std::path::Path;

use super::super::error::WorktreeError;
use super::super::git::Git;
use super::super::repository::Repository;
use super::super::tree_edit::TreeEdit;
use super::contents::{RunWork, list_names};
use super::{Branches, Outcome, held_back, separate_git_failure, set_fallback_author};

/// Commits the work on the branch of the run. The commit is made of the snapshots, not of the worktree's index, whose
/// flags, sparse patterns and leftovers an agent may have changed. The files of the worktree stay as they are. Returns
/// what was done.
///
/// # Errors
/// When git cannot be started, or fails for a reason that is not the state of the worktree.
pub fn commit_run_work(
    at: &Branches<'_>,
    work: &RunWork<'_>,
    message: &str,
) -> Result<Outcome, WorktreeError> {
    let git = Git::new(at.work);
    if let Some(unfinished) = unfinished_operation(at.work, &git)? {
        return Ok(Err(unfinished));
    }
    let tree = work.tree_to_commit()?;
    let edits = work.edits(&tree)?;
    if let Err(why) = work.check_repositories(at.work, &tree, &edits)? {
        return Ok(Err(why));
    }
    if let Err(why) = held_back::check_held_back_files(work, &edits, at.allowed)? {
        return Ok(Err(why));
    }
    let filtered = work.filtered_files(&edits)?;
    if !filtered.is_empty() {
        return Ok(Err(format!(
            "a run applies no filters of git, and files go through one: {}; commit and merge them by hand",
            list_names(filtered.iter().map(String::as_str))
        )));
    }
    work.trees.store_tree(&tree, work.base)?;
    let own = at.own();
    let branch = git.word(&["rev-parse", "--verify", "--quiet", &format!("{own}^{{commit}}")]);
    let Ok(branch) = branch else {
        return Ok(Err(format!("the branch `{}` is gone", at.branch)));
    };
    // An agent may have left the branch: its commits are kept where they continue the branch.
    let head =
        git.word(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).unwrap_or_else(|_| branch.clone());
    let continues = head != branch && git.succeeds(&["merge-base", "--is-ancestor", &branch, &head])?;
    let mut parent = if continues { head } else { branch.clone() };
    // What was held back once is in no commit that others see.
    let unseen = left_behind(work, &parent, at.allowed)?;
    if unseen.is_some() {
        work.base.clone_into(&mut parent);
    }
    let joined = match &unseen {
        Some(name) => format!("; the agent's commits were joined into one, because they hold `{name}`"),
        None => String::new(),
    };
    let merged = git.word(&["rev-parse", "--verify", "--quiet", "MERGE_HEAD^{commit}"]).ok();
    if parent != branch {
        git.run(&["update-ref", "-m", "cuegate: commits of the agent", &own, &parent, &branch])?;
    }
    // The index and HEAD follow. They are never read to make the commit.
    git.run(&["symbolic-ref", "HEAD", &own])?;
    let is_committed = git.word(&["rev-parse", &format!("{parent}^{{tree}}")])? == tree;
    if is_committed && merged.is_none() {
        git.run(&["reset", "--quiet"])?;
        return Ok(Ok(format!("nothing was left to commit{joined}")));
    }
    if at.hooks {
        git.run(&["read-tree", "--reset", &tree])?;
        let args = ["commit", "--quiet", "--no-gpg-sign", "--message", message];
        if let Err(why) = separate_git_failure(set_fallback_author(at.git(at.work), at.work)?.run(&args))? {
            return Ok(Err(why));
        }
        let made = git.word(&["rev-parse", &format!("{own}^{{tree}}")])?;
        if made == tree {
            return Ok(Ok(format!("committed on `{}`{joined}", at.branch)));
        }
        let changed = git.run(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", &tree, &made])?;
        let changed = String::from_utf8_lossy(&changed).into_owned();
        let names: Vec<&str> = changed.split('\0').filter(|name| !name.is_empty()).collect();
        return Ok(Ok(format!(
            "committed on `{}`; hooks of the repository changed {}",
            at.branch,
            list_names(names.into_iter())
        )));
    }
    let mut args = vec!["commit-tree", "--no-gpg-sign", "-m", message, "-p", &parent];
    args.extend(merged.iter().flat_map(|merged| ["-p", merged]));
    args.push(&tree);
    let made = set_fallback_author(git.clone(), at.work)?.word(&args)?;
    git.run(&["update-ref", "-m", "cuegate: the work of the run", &own, &made, &parent])?;
    git.run(&["reset", "--quiet"])?;
    Ok(Ok(format!("committed on `{}`{joined}", at.branch)))
}

/// A file that the commits from the base to `commit` hold and that would be held back, or is of the state of a run.
fn left_behind(
    work: &RunWork<'_>,
    commit: &str,
    allowed: &[String],
) -> Result<Option<String>, WorktreeError> {
    let edits = work.trees.edits_of_commits(work.base, commit)?;
    let is_state = |edit: &&TreeEdit| edit.path.starts_with(b".cuegate/") && edit.leaves_file();
    if let Some(edit) = edits.iter().find(is_state) {
        return Ok(Some(edit.name()));
    }
    Ok(held_back::find_held_back(work, &edits, allowed)?.into_keys().next())
}

/// The rebase or the conflicts of a merge that an agent left unfinished in the worktree, as text.
fn unfinished_operation(work: &Path, git: &Git) -> Result<Option<String>, WorktreeError> {
    let Some(found) = Repository::find(work)? else { return Ok(None) };
    let is_there = |name: &str| found.git_dir.join(name).symlink_metadata().is_ok();
    if is_there("rebase-merge") || is_there("rebase-apply") {
        return Ok(Some(
            "a rebase is unfinished in the worktree; finish it there, then `cuegate retry`".to_owned(),
        ));
    }
    let unmerged = git.run(&["diff", "--name-only", "--diff-filter=U", "--ignore-submodules=all", "-z"])?;
    let unmerged = String::from_utf8_lossy(&unmerged).into_owned();
    let names: Vec<&str> = unmerged.split('\0').filter(|name| !name.is_empty()).collect();
    Ok((!names.is_empty()).then(|| {
        format!(
            "unfinished conflicts in the worktree: {}; resolve and `git add` them, then `cuegate retry`",
            list_names(names.into_iter())
        )
    }))
}

/// Refuses a branch of the run whose tree is not that of its work: it would be merged or pushed as if it were.
pub(super) fn check_branch(
    repo: &Path,
    at: &Branches<'_>,
    work: &RunWork<'_>,
) -> Result<Result<(), String>, WorktreeError> {
    let (tree, own) = (work.tree_to_commit()?, at.own());
    let git = Git::new(repo);
    // The second parent: the base went on, and a merge of both is on the branch already.
    for commit in [own.clone(), format!("{own}^2")] {
        if git
            .word(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")])
            .is_ok_and(|is| is == tree)
        {
            return Ok(Ok(()));
        }
    }
    let Ok(is) = git.word(&["rev-parse", "--verify", "--quiet", &format!("{own}^{{tree}}")]) else {
        return Ok(Err(format!("the branch `{}` is gone", at.branch)));
    };
    let missing: Vec<String> =
        work.trees.changes(&is, &tree)?.into_iter().map(|change| change.path).collect();
    Ok(Err(format!(
        "the branch `{}` does not have the work of the run: {} differ; `cuegate retry` commits them",
        at.branch,
        list_names(missing.iter().map(String::as_str))
    )))
}
