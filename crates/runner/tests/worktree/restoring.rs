//! Tests of restoring trees and of worktrees for runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cuegate_runner::worktree::{Trees, WorktreeError, branch_worktree, is_dirty};

use crate::support::{Repo, files, git, lines};

#[test]
fn restore_switches_between_two_trees() {
    let repo = Repo::new();
    repo.write("kept.txt", "uncommitted and kept\n");
    let (before, seen) = (repo.tree(), repo.seen());
    let files_before = files(&repo.root);
    repo.write("a.txt", "half done\n");
    repo.write("deep/er/new.txt", "n\n");
    repo.remove("dir/b.txt");
    repo.remove("kept.txt");
    let aside = repo.trees().set_aside().unwrap();
    assert_eq!(repo.trees().restore(&before).unwrap(), []);
    assert_eq!(files(&repo.root), files_before, "also the ignored file and all of `.git`");
    assert!(!repo.root.join("deep").exists());
    assert_eq!(repo.seen(), seen);

    repo.write("noise.log", "ignored files stay as they are");
    assert_eq!(repo.trees().restore(&aside).unwrap(), []);
    assert_eq!(repo.tree(), aside);
    assert_eq!(fs::read(repo.root.join("a.txt")).unwrap(), b"half done\n");
    assert_eq!(fs::read(repo.root.join("noise.log")).unwrap(), b"ignored files stay as they are");
}

#[test]
fn no_hook_runs() {
    let repo = Repo::new();
    for hook in ["post-index-change", "post-checkout", "pre-auto-gc", "reference-transaction"] {
        let path = repo.root.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let tree = repo.tree();
    repo.write("a.txt", "x\n");
    repo.trees().restore(&tree).unwrap();
    branch_worktree::create_worktree(&repo.root, &repo.place.path().join("tree"), "run/1", None).unwrap();
    assert!(!repo.root.join(".git/hooks/ran").exists());
}

#[test]
fn a_worktree_has_its_own_branch_and_snapshots() {
    let repo = Repo::new();
    repo.write("a.txt", "dirty in the main tree\n");
    let at = repo.place.path().join("trees/run 1");
    let made = branch_worktree::create_worktree(&repo.root, &at, "run/1", None).unwrap();
    assert_eq!(made.base, git(&repo.root, &["rev-parse", "HEAD"]).trim());
    assert_eq!((&made.path, made.branch.as_str()), (&at, "run/1"));
    assert_eq!(git(&at, &["branch", "--show-current"]), "run/1\n");
    assert_eq!((is_dirty(&at).unwrap(), is_dirty(&repo.root).unwrap()), (false, true));

    // Both share the state dir.
    let main = repo.tree();
    let trees = Trees::open(&at, &repo.state()).unwrap().unwrap();
    let before = trees.snapshot().unwrap();
    assert_eq!(before.tree, git(&repo.root, &["rev-parse", "HEAD^{tree}"]).trim());
    fs::write(at.join("new.txt"), "n\n").unwrap();
    let after = trees.snapshot().unwrap();
    assert_eq!(lines(&trees.changes(&before.tree, &after.tree).unwrap()), ["A new.txt"]);
    assert_eq!(trees.restore(&before.tree).unwrap(), []);
    assert!(!is_dirty(&at).unwrap());
    assert_eq!(repo.tree(), main);
    assert!(is_dirty(&repo.root).unwrap());
}

#[test]
fn failing_to_create_a_worktree_has_a_reason_and_a_hint() {
    let repo = Repo::new();
    let at = repo.place.path().join("tree");
    let add = |branch: &str, at: &Path, base: Option<&str>| {
        branch_worktree::create_worktree(&repo.root, at, branch, base).unwrap_err()
    };
    let shown = |error: WorktreeError| format!("{error}; hint: {}", error.hint().unwrap());
    assert!(
        shown(add("main", &at, None))
            .starts_with("failed to create the branch `main`: it already exists; hint: choose")
    );
    assert!(matches!(add("--force", &at, None), WorktreeError::Branch { .. }));
    assert!(matches!(add("a..b", &at, None), WorktreeError::Branch { .. }));
    assert!(
        shown(add("x", &repo.root, None)).contains("the path already exists; hint: choose another folder")
    );
    assert!(shown(add("x", &at, Some("nope"))).contains("a commit called `nope`"));
    assert!(matches!(add("x", &at, Some("--all")), WorktreeError::NoCommit { .. }));
    assert!(!at.exists() && git(&repo.root, &["branch", "--list", "x"]).is_empty());

    let base = git(&repo.root, &["rev-parse", "HEAD"]);
    git(&repo.root, &["commit", "--quiet", "--allow-empty", "--message", "later"]);
    assert_eq!(
        branch_worktree::create_worktree(&repo.root, &at, "x", Some("main~1")).unwrap().base,
        base.trim()
    );
    fs::remove_dir_all(&at).unwrap();
    assert!(shown(add("y", &at, None)).contains("git worktree prune"));

    let empty = Repo::empty();
    let error = branch_worktree::create_worktree(&empty.root, &at, "x", None).unwrap_err();
    assert!(error.hint().unwrap().starts_with("commit something first"), "{error}");
}
