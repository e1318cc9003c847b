//! Merges the work of a run into the branch that it started from.

#![expect(clippy::disallowed_methods, reason = "the git folder of the user")]

use std::fs;
use std::path::Path;

use super::super::branch_worktree::checkout_of;
use super::super::error::{WorktreeError, io_at};
use super::super::git::{Git, build_git_error};
use super::super::repository::Repository;
use super::contents::{RunWork, list_names};
use super::{Branches, Outcome, Prove, check_branch, has_work, separate_git_failure, set_fallback_author};
use crate::beneath::{FolderHandle, is_missing};

/// How often a merge is made anew because its base went on meanwhile.
const MERGES_MAX: u32 = 5;

/// Merges the branch of the run into its base. The merge is computed without touching any working tree. The base moves
/// only by a fast-forward, and where it is checked out only if no tracked file of that working tree is changed; otherwise
/// the merge stays on the branch of the run. `begun` is a file that notes that a working tree is being moved. If the base went
/// on, and the gates are to see that, the merge is made only after `prove`.
///
/// # Errors
/// When git cannot be started. `git merge-tree --write-tree` needs git 2.38.
pub fn merge_run_work(
    repo: &Path,
    at: &Branches<'_>,
    work: &RunWork<'_>,
    message: &str,
    begun: &Path,
    prove: Prove<'_>,
) -> Result<Outcome, WorktreeError> {
    if let Err(why) = check_branch(repo, at, work)? {
        return Ok(Err(why));
    }
    if !has_work(repo, at, work)? {
        return Ok(Ok("nothing to merge: the run changed nothing".to_owned()));
    }
    merge_branch(repo, at, message, begun, prove)
}

fn merge_branch(
    repo: &Path,
    at: &Branches<'_>,
    message: &str,
    begun: &Path,
    prove: Prove<'_>,
) -> Result<Outcome, WorktreeError> {
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
    let mut remark = String::new();
    if at.is_edited {
        match prove(&git.word(&["rev-parse", "--verify", &format!("{own}^{{tree}}")])?, "")? {
            Ok(proved) => remark.push_str(&proved),
            Err(why) => return Ok(Err(format!("{why}; `{base}` was not moved"))),
        }
    }
    // Somebody may commit while the gates run.
    for _ in 0..MERGES_MAX {
        let head = git.word(&["rev-parse", "--verify", &onto])?;
        if git.succeeds(&["merge-base", "--is-ancestor", &head, &own])? {
            break;
        }
        // The base went on meanwhile.
        let count: u64 =
            git.word(&["rev-list", "--count", &format!("{own}..{head}")])?.parse().unwrap_or_default();
        let commits = if count == 1 { "a commit".to_owned() } else { format!("{count} commits") };
        let tree = match merged_tree(&git, &head, &own)? {
            Ok(tree) => tree,
            Err(files) => {
                let files = files.join(", ");
                return Ok(Err(format!(
                    "conflict with `{base}` in {files}; merge `{base}` in the worktree, then `cuegate retry`"
                )));
            }
        };
        remark = format!(", which went on by {commits} meanwhile");
        match prove(&tree, &format!(", with {commits} of `{base}` merged into it"))? {
            Ok(proved) => remark.push_str(&proved),
            Err(why) => return Ok(Err(format!("{why}; `{base}` was not moved"))),
        }
        if git.word(&["rev-parse", "--verify", &onto])? != head {
            continue;
        }
        let commit = ["commit-tree", "--no-gpg-sign", "-p", &head, "-p", &own, "-m", message, &tree];
        let commit = set_fallback_author(git.clone(), repo)?.word(&commit)?;
        if let Err(why) =
            separate_git_failure(Git::new(at.work).run(&["merge", "--quiet", "--ff-only", &commit]))?
        {
            return Ok(Err(why));
        }
        break;
    }
    let not_moved =
        |why: String| Ok(Ok(format!("{why} and was not moved: `git merge --ff-only {}`", at.branch)));
    if let Some(operation) = operation_on(repo, &onto)? {
        return not_moved(format!("`{base}` is in the middle of a {operation}"));
    }
    let Some(checkout) = checkout_of(repo, &onto)?.filter(|path| path.is_dir()) else {
        // Compares with the old value, so that nothing that came meanwhile is lost.
        let moved = separate_git_failure(git.run(&["fetch", "--quiet", ".", &format!("{own}:{onto}")]))?;
        return Ok(moved.map(|()| format!("merged into `{base}`{remark}")));
    };
    let tree = Git::new(&checkout);
    if begun.exists() {
        undo_half_move(&tree, &checkout, &own)?;
    }
    if let Some(operation) = operation_in(&checkout)? {
        return not_moved(format!("`{base}` is in the middle of a {operation}"));
    }
    if !tree.run(&["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
        return not_moved(format!("`{base}` is checked out with uncommitted changes"));
    }
    if let Some(folder) = begun.parent() {
        fs::create_dir_all(folder).map_err(io_at("create", folder))?;
    }
    fs::write(begun, own.as_bytes()).map_err(io_at("write", begun))?;
    // Files that git ignores may be the only copy of something.
    let moved = tree.run(&["merge", "--quiet", "--ff-only", "--no-overwrite-ignore", &own]);
    let _ = fs::remove_file(begun);
    if let Err(WorktreeError::Git { stderr, .. }) = &moved
        && let Some(files) = untracked_in_the_way(stderr)
    {
        // Without the option git overwrites files that it ignores.
        return Ok(Ok(format!(
            "`{base}` is checked out with untracked files in the way ({files}) and was not moved: \
             `git merge --ff-only {} --no-overwrite-ignore` once they are away",
            at.branch
        )));
    }
    Ok(separate_git_failure(moved)?.map(|()| format!("merged into `{base}`{remark}")))
}

/// The untracked files that a merge would overwrite, from the words of git.
fn untracked_in_the_way(stderr: &str) -> Option<String> {
    let (_, rest) = stderr.split_once("untracked working tree ")?;
    // A line break, a tab and the name, for each.
    let names: Vec<&str> = rest.lines().filter_map(|line| line.strip_prefix('\t')).collect();
    (!names.is_empty()).then(|| list_names(names.into_iter()))
}

/// The operation that is unfinished in a working tree, and refuses to go back if its branch is moved.
fn operation_in(checkout: &Path) -> Result<Option<&'static str>, WorktreeError> {
    const MARKS: [(&str, &str); 5] = [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("rebase-apply", "git am"),
        ("sequencer", "cherry-pick or revert"),
    ];
    let Some(found) = Repository::find(checkout)? else { return Ok(None) };
    let is_there = |(mark, _): &&(&str, &str)| found.git_dir.join(mark).symlink_metadata().is_ok();
    Ok(MARKS.iter().find(is_there).map(|(_, operation)| *operation))
}

/// The operation that is unfinished on a branch in any working tree, and will move the branch when it ends. Git lists such
/// a working tree without its branch, and refuses to move the branch itself.
fn operation_on(repo: &Path, branch_ref: &str) -> Result<Option<&'static str>, WorktreeError> {
    let Some(found) = Repository::find(repo)? else { return Ok(None) };
    let linked = fs::read_dir(found.common.join("worktrees")).into_iter().flatten().flatten();
    let folders = std::iter::once(found.common.clone()).chain(linked.map(|entry| entry.path()));
    let short = branch_ref.strip_prefix("refs/heads/").unwrap_or(branch_ref);
    for folder in folders {
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let is_named = |name: &str| {
            let text = text(name);
            text.lines().any(|line| line.trim() == branch_ref)
        };
        if ["rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs"]
            .into_iter()
            .any(is_named)
        {
            return Ok(Some("rebase"));
        }
        if text("BISECT_START").trim() == short {
            return Ok(Some("bisect"));
        }
    }
    Ok(None)
}

/// The tree of a merge, or the files that conflict.
pub(super) fn merged_tree(
    git: &Git,
    onto: &str,
    own: &str,
) -> Result<Result<String, Vec<String>>, WorktreeError> {
    let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", onto, own];
    let output = git.output(&args, b"")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut parts = text.split('\0').filter(|part| !part.is_empty());
    match (output.status.code(), parts.next()) {
        (Some(0), Some(tree)) => Ok(Ok(tree.to_owned())),
        (Some(1), Some(_)) => Ok(Err(parts.map(str::to_owned).collect())),
        _ if String::from_utf8_lossy(&output.stderr).contains("unrelated histories") => {
            Ok(Err(vec!["all files: the histories have no common commit".to_owned()]))
        }
        _ => Err(build_git_error(&args, &output)),
    }
}

/// Takes back what a killed `git merge --ff-only` left in a working tree: files that already are, or begin to be, as in
/// the commit `to`, which holds their content. If anybody else changed a tracked file, everything stays.
fn undo_half_move(tree: &Git, top: &Path, to: &str) -> Result<(), WorktreeError> {
    let paths = |args: &[&str]| -> Result<Vec<String>, WorktreeError> {
        let options = ["diff", "--name-only", "-z", "--no-renames"];
        let listed = tree.run(&[&options, args, &["--"]].concat())?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        Ok(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
    };
    let moved = paths(&["HEAD", to])?;
    let folder = FolderHandle::open(top).map_err(io_at("open", top))?;
    let is_ours = |path: &String| {
        let wanted = tree.run(&["cat-file", "blob", &format!("{to}:{path}")]).unwrap_or_default();
        match read_git_content(&folder, Path::new(path), wanted.len() as u64) {
            Ok(is) => wanted.starts_with(&is),
            Err(error) => is_missing(&error),
        }
    };
    let changed = paths(&["HEAD"])?;
    if !changed.iter().all(|path| moved.contains(path) && is_ours(path)) {
        return Ok(());
    }
    for path in paths(&["--diff-filter=A", "HEAD", to])?.iter().filter(|path| is_ours(path)) {
        folder.remove(Path::new(path)).map_err(io_at("remove", &top.join(path)))?;
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

/// The content of a file as git stores it: of a link, its target. A file has at most `max` bytes.
fn read_git_content(folder: &FolderHandle, path: &Path, max: u64) -> std::io::Result<Vec<u8>> {
    match folder.read_link(path) {
        Ok(target) => Ok(target.into_os_string().into_encoded_bytes()),
        Err(_) => folder.read(path, max),
    }
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
            let at = Branches {
                work: root,
                branch: "work",
                base: Some("main"),
                hooks: false,
                into: None,
                merges: true,
                updates: false,
                is_edited: false,
                allowed: &[],
                claim: None,
            };
            let merged =
                merge_branch(root, &at, "merge", &begun, &mut |_, _| Ok(Ok(String::new()))).unwrap().unwrap();
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
}
