//! What is known of the end of a run before its first call: whether its work can be merged, pushed and proposed.

use std::path::Path;

use cuegate_engine::{FinalizePlan, Place};
use cuegate_flow::diagnostics::find_nearest_name;
use cuegate_runner::worktree::{
    branch_worktree::{current_branch, list_remotes},
    finalize::remote_url,
    hooks_in_tree,
    remote_heads::RemoteHeads,
    worktree_gaps,
};
use cuegate_view::plural;

use crate::{Failure, config::Config};

/// How many names a message lists.
const NAMES_MAX: usize = 5;

/// Checks that git and GitHub will be able to merge, push and propose the work of a run. `base` is the branch that the run
/// starts from. Returns notes for the user.
///
/// # Errors
/// With what stands in the way, and the way out.
fn check_finalize(
    root: &Path,
    finalize: &FinalizePlan,
    base: Option<&str>,
    has_github: bool,
) -> Result<Vec<String>, Failure> {
    let mut notes = Vec::new();
    if finalize.merge && base.is_none() {
        return Err(Failure::usage(
            "the work cannot be merged: HEAD is at no branch",
            "`git switch BRANCH` first; or run without a merge, and take the work with `cuegate apply` or `--push`",
        ));
    }
    let into = finalize.into.as_deref().or(base);
    if finalize.pull_request && into.is_none() {
        return Err(Failure::usage(
            "a pull request needs a branch that it changes, and HEAD is at no branch",
            "name it: `--pull-request BRANCH`, or `prTarget` in the definition",
        ));
    }
    if finalize.pull_request && !has_github {
        return Err(Failure::usage(
            "a pull request cannot be opened with `--no-github`",
            "leave one of them out; `--push` pushes the branch alone",
        ));
    }
    let Some(remote) = &finalize.push else { return Ok(notes) };
    if remote_url(root, remote).map_err(cuegate_runner::Error::from)?.is_none() {
        let known = list_remotes(root).map_err(cuegate_runner::Error::from)?;
        let hint = match find_nearest_name(remote, known.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known.is_empty() => format!("`git remote add {remote} URL` adds it"),
            None => format!("the remotes are {}", known.join(", ")),
        };
        return Err(Failure::usage(format!("there is no remote `{remote}` to push to"), hint));
    }
    let wanted: Vec<&str> = into.into_iter().chain(base).collect();
    let asked = RemoteHeads::ask(root, remote, &wanted).map_err(cuegate_runner::Error::from)?;
    let mut asked = asked.map_err(|why| {
        Failure::usage(
            format!("the remote `{remote}` cannot be read: {why}"),
            "no agent was called; check its address, the network and your rights: `git ls-remote` tries it",
        )
    })?;
    let heads = asked.list();
    if heads.contains_key("refs/heads/cuegate") {
        return Err(Failure::usage(
            format!("`{remote}` has a branch `cuegate`, so no branch `cuegate/RUN` can be pushed"),
            "rename it there",
        ));
    }
    if let Some(into) = into.filter(|_| finalize.pull_request)
        && !heads.contains_key(&format!("refs/heads/{into}"))
    {
        let known: Vec<&str> = heads.keys().filter_map(|name| name.strip_prefix("refs/heads/")).collect();
        let hint = match find_nearest_name(into, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if known.is_empty() => format!("push it first: `git push {remote} {into}`"),
            None => format!(
                "push it first, or name another one: `--pull-request BRANCH` ({})",
                known.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ")
            ),
        };
        return Err(Failure::usage(format!("`{remote}` has no branch `{into}` for the pull request"), hint));
    }
    let is_empty = heads.is_empty();
    let unpublished = asked.count_unpublished("HEAD").map_err(cuegate_runner::Error::from)?;
    if unpublished > 0 && !is_empty {
        let commits = plural(unpublished as u64, "commit");
        let from = base.unwrap_or("HEAD");
        notes.push(match finalize.merge {
            true => format!(
                "`{from}` has {commits} that `{remote}` does not have; pushing `{from}` publishes them too"
            ),
            false => format!(
                "`{from}` has {commits} that `{remote}` does not have; they are not pushed with the work"
            ),
        });
    }
    if let Some(into) = into {
        let missing = asked.count_missing(into, "HEAD").map_err(cuegate_runner::Error::from)?;
        if missing > 0 {
            let commits = plural(missing as u64, "commit");
            notes.push(format!(
                "`{into}` of `{remote}` has {commits} that are not here; `git pull` first lets the run start from them"
            ));
        }
    }
    Ok(notes)
}

/// Checks that the hooks that the user wants to run at commits and pushes can run.
///
/// # Errors
/// When they are in the working tree.
fn check_hooks(root: &Path, config: &Config) -> Result<(), Failure> {
    if !config.worktree.hooks {
        return Ok(());
    }
    match hooks_in_tree(root).map_err(cuegate_runner::Error::from)? {
        None => Ok(()),
        Some(folder) => Err(Failure::usage(
            format!(
                "`hooks = true`, but the hooks are in the working tree, where agents write: `{}`",
                folder.strip_prefix(root).unwrap_or(&folder).display()
            ),
            "let a validator or gate run their commands, inside the sandbox, and set `hooks = false` in `[worktree]`; or \
             keep them outside: `git config core.hooksPath`",
        )),
    }
}

/// Checks that a worktree can be made of the repository. Returns notes on what it will not have.
///
/// # Errors
/// With what stands in the way, and the way out.
fn check_worktree(root: &Path, config: &Config) -> Result<Vec<String>, Failure> {
    let gaps = worktree_gaps(root).map_err(cuegate_runner::Error::from)?;
    if gaps.has_cuegate_branch {
        return Err(Failure::usage(
            "a branch named `cuegate` is in the way of the branches `cuegate/RUN`",
            "rename it: `git branch -m cuegate OTHER`",
        ));
    }
    if gaps.is_linked_git {
        return Err(Failure::usage(
            "`.git` is a symbolic link, and git makes no worktrees of such a repository safely",
            "replace the link by a file with the line `gitdir: PATH`, or run without `--worktree`",
        ));
    }
    let mut notes = Vec::new();
    let setup = config.worktree.setup.0.join("\n");
    if !gaps.submodules.is_empty() && !setup.contains("submodule") {
        let names: Vec<&str> = gaps.submodules.iter().take(NAMES_MAX).map(String::as_str).collect();
        notes.push(format!(
            "submodules are empty in a worktree: {}; `[worktree] setup = \"git submodule update --init\"` fills them",
            names.join(", ")
        ));
    }
    if gaps.is_sparse {
        notes.push(
            "the checkout is sparse, and so is the worktree: files outside of its patterns are not there"
                .to_owned(),
        );
    }
    Ok(notes)
}

/// Everything that is known of a run's worktree and of the end of the run before its first call. Prints nothing; returns
/// notes for the user.
///
/// # Errors
/// With what stands in the way, and the way out.
pub(crate) fn check_start(
    root: &Path,
    config: &Config,
    finalize: &FinalizePlan,
    follows: Option<&Place>,
    (has_worktree, has_github): (bool, bool),
) -> Result<Vec<String>, Failure> {
    let mut notes: Vec<String> =
        check_filters(root, *finalize != FinalizePlan::default())?.into_iter().collect();
    if has_worktree && follows.is_none() {
        notes.extend(check_worktree(root, config)?);
    }
    if *finalize != FinalizePlan::default() {
        check_hooks(root, config)?;
        let base = match follows {
            Some(place) => place.base.clone(),
            None => current_branch(root).map_err(cuegate_runner::Error::from)?,
        };
        notes.extend(check_finalize(root, finalize, base.as_deref(), has_github)?);
    }
    Ok(notes)
}

/// Checks that git can read the files of the repository. Returns a note if it filters some of them and the run commits.
///
/// # Errors
/// When it needs a program that is not installed.
fn check_filters(root: &Path, commits: bool) -> Result<Option<String>, Failure> {
    let gaps = worktree_gaps(root).map_err(cuegate_runner::Error::from)?;
    if gaps.lacks_lfs {
        return Err(Failure::usage(
            "the repository uses Git LFS, and `git-lfs` is not installed",
            "install git-lfs; or, if nothing needs its files, `git lfs uninstall` and remove `filter.lfs` from git's settings",
        ));
    }
    let names: Vec<String> = gaps.filters.iter().map(|name| format!("`{name}`")).collect();
    Ok((commits && !names.is_empty()).then(|| {
        format!(
            "filters of git are not applied ({} in `.gitattributes`): agents see such files as git stores them, and changes \
             of them are not committed",
            names.join(", ")
        )
    }))
}
