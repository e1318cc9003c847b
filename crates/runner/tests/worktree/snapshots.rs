//! Tests of snapshots: what they record, and that they change nothing.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use cuegate_runner::worktree::{ChangeSize, Trees, WorktreeError, is_dirty};

use crate::support::{Repo, files, git, lines};

#[test]
fn outside_of_a_working_tree_there_are_no_snapshots() {
    let repo = Repo::new();
    let bare = repo.place.path().join("bare");
    fs::create_dir(&bare).unwrap();
    let open = |work: &Path| Trees::open(work, &repo.state());
    assert!(open(&bare).unwrap().is_none());
    git(&bare, &["init", "--quiet", "--bare"]);
    assert!(open(&bare).unwrap().is_none());
    assert!(open(&repo.root.join(".git")).unwrap().is_none());
    assert!(matches!(open(&repo.root.join("missing")), Err(WorktreeError::Io { .. })));
    assert_eq!(open(&repo.root.join("dir")).unwrap().unwrap().root(), repo.root);
    fs::write(repo.root.join(".git/config"), "[broken").unwrap();
    assert!(matches!(open(&repo.root), Err(WorktreeError::Git { .. })));
}

#[test]
fn snapshots_change_nothing() {
    let repo = Repo::new();
    repo.write("a.txt", "stashed\n");
    git(&repo.root, &["stash"]);
    repo.write("staged.txt", "staged\n");
    git(&repo.root, &["add", "staged.txt"]);
    repo.write("a.txt", "changed\n");
    repo.write("untracked.txt", "u\n");
    let before = repo.seen();
    let trees = repo.trees();
    let first = trees.snapshot().unwrap();
    assert_eq!(trees.snapshot().unwrap(), first);
    assert_eq!(repo.seen(), before);

    repo.write("untracked.txt", "v\n");
    let second = trees.snapshot().unwrap();
    assert_ne!(second.tree, first.tree);
    assert_eq!((&second.head, &second.refs), (&first.head, &first.refs));
    assert_eq!(first.head.unwrap(), git(&repo.root, &["rev-parse", "HEAD"]).trim());
    assert_eq!(repo.seen(), before);
}

#[test]
fn git_variables_that_redirect_are_ignored() {
    let test = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "snapshots::snapshots_change_nothing",
            "snapshots::patches_and_numbers_ignore_the_users_settings",
        ])
        .envs([
            ("GIT_DIR", "/nowhere"),
            ("GIT_INDEX_FILE", "/nowhere/index"),
            ("GIT_WORK_TREE", "/"),
            ("GIT_PREFIX", "x/"),
        ])
        .envs([
            ("GIT_EXTERNAL_DIFF", "false"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_DIFF_OPTS", "--unified=0"),
        ])
        .envs([("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "core.bare"), ("GIT_CONFIG_VALUE_0", "true")])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&test.stdout);
    assert!(test.status.success() && stdout.contains("2 passed"), "{stdout}");
}

#[test]
fn head_and_refs_are_recorded_separately() {
    let repo = Repo::new();
    let first = repo.trees().snapshot().unwrap();
    git(&repo.root, &["switch", "--quiet", "--create", "other"]);
    let switched = repo.trees().snapshot().unwrap();
    assert_eq!((&switched.head, &switched.tree), (&first.head, &first.tree));
    assert_ne!(switched.refs, first.refs);
    git(&repo.root, &["commit", "--quiet", "--allow-empty", "--message", "y"]);
    let committed = repo.trees().snapshot().unwrap();
    assert_ne!(committed.head, first.head);
    assert_ne!(committed.refs, switched.refs);
    assert_eq!(committed.tree, first.tree);
}

#[test]
fn a_repository_without_commits_has_snapshots() {
    let repo = Repo::empty();
    let nothing = repo.trees().snapshot().unwrap();
    assert_eq!(nothing.head, None);
    assert_eq!(repo.changed_by(|| repo.write("first.txt", "1\n")), ["A first.txt"]);
    assert_eq!(repo.trees().snapshot().unwrap().refs, nothing.refs);
}

#[test]
fn uncommitted_changes_belong_to_the_first_snapshot() {
    let repo = Repo::new();
    repo.write("a.txt", "dirty\n");
    repo.write("new.txt", "n\n");
    repo.remove("dir/b.txt");
    let changed = repo.changed_by(|| {
        repo.write("a.txt", "dirtier\n");
        repo.write("noise.log", "more noise");
    });
    assert_eq!(changed, ["M a.txt"]);
}

#[test]
fn a_change_in_the_clock_tick_of_the_users_add_is_detected() {
    for _ in 0..20 {
        let repo = Repo::empty();
        repo.write("a.txt", "1\n");
        git(&repo.root, &["add", "a.txt"]);
        repo.write("a.txt", "2\n");
        let tree = repo.tree();
        repo.write("a.txt", "3\n");
        assert_ne!(repo.tree(), tree);
        let shown =
            repo.trees().patch(git(&repo.root, &["hash-object", "-t", "tree", "/dev/null"]).trim(), &tree);
        assert!(shown.unwrap().ends_with(b"+2\n"));
    }
}

#[test]
fn unusual_file_names_are_kept() {
    let repo = Repo::new();
    let names =
        [" lead and trail ", "line\nfeed", "quote'\"", "tab\t", "ünï", "-n", ":(top)x", "a*b", "back\\slash"];
    let mut changed = repo.changed_by(|| names.iter().for_each(|name| repo.write(name, "x\n")));
    let mut expected = names.map(|name| format!("A {name}"));
    changed.sort();
    expected.sort();
    assert_eq!(changed, expected);
    let no_text = repo.changed_by(|| repo.write(OsStr::from_bytes(b"no\xfftext"), "x\n"));
    assert_eq!(no_text, ["A no\u{fffd}text"]);
}

#[test]
fn changes_between_files_folders_links_and_modes() {
    let repo = Repo::new();
    repo.write("script", "#!/bin/sh\n");
    repo.write("to-folder", "file\n");
    repo.write("to-file/inner", "inner\n");
    repo.write("to-link", "file\n");
    symlink("a.txt", repo.root.join("link")).unwrap();
    let before = repo.tree();
    let change = || {
        fs::set_permissions(repo.root.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
        repo.remove("to-folder");
        repo.write("to-folder/inner", "inner\n");
        fs::remove_dir_all(repo.root.join("to-file")).unwrap();
        repo.write("to-file", "file\n");
        repo.remove("to-link");
        symlink("/nowhere", repo.root.join("to-link")).unwrap();
        repo.remove("link");
        symlink("dir", repo.root.join("link")).unwrap();
    };
    let expected = [
        "M link",
        "M script",
        "A to-file",
        "D to-file/inner",
        "D to-folder",
        "A to-folder/inner",
        "T to-link",
    ];
    let mut changed = repo.changed_by(change);
    changed.sort_by_key(|line| line[2..].to_owned());
    assert_eq!(changed, expected);

    let files_after = files(&repo.root);
    let after = repo.trees().set_aside().unwrap();
    assert_eq!(repo.trees().restore(&before).unwrap(), []);
    assert_eq!(repo.tree(), before);
    assert_eq!(repo.trees().restore(&after).unwrap(), []);
    assert_eq!(files(&repo.root), files_after);
}

#[test]
fn patches_and_numbers_ignore_the_users_settings() {
    let repo = Repo::new();
    for (name, value) in [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.external", "false"),
        ("diff.renames", "copies"),
        ("diff.context", "0"),
        ("color.ui", "always"),
        ("core.pager", "false"),
        ("core.fsmonitor", "false"),
        ("core.splitIndex", "true"),
        ("core.untrackedCache", "true"),
        ("core.safecrlf", "true"),
    ] {
        git(&repo.root, &["config", name, value]);
    }
    let before = repo.tree();
    repo.write("a.txt", "one\nTWO\n");
    fs::rename(repo.root.join("dir/b.txt"), repo.root.join("c.txt")).unwrap();
    fs::write(repo.root.join("image"), b"\0\x01").unwrap();
    let after = repo.tree();
    let trees = repo.trees();
    let patch = String::from_utf8(trees.patch(&before, &after).unwrap()).unwrap();
    let a = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n";
    assert!(patch.contains(a), "{patch}");
    assert!(patch.contains("--- /dev/null\n+++ b/c.txt\n") && patch.contains("GIT binary patch"), "{patch}");
    let stat = |path: &str, added, removed| ChangeSize { path: path.to_owned(), added, removed };
    assert_eq!(
        trees.stat(&before, &after).unwrap(),
        [
            stat("a.txt", Some(1), Some(1)),
            stat("c.txt", Some(1), Some(0)),
            stat("dir/b.txt", Some(0), Some(1)),
            stat("image", None, None),
        ]
    );
    assert!(trees.patch(&after, &after).unwrap().is_empty());
    assert_eq!(trees.changes(&after, &after).unwrap(), []);
}

#[test]
fn an_unknown_tree_is_refused() {
    let repo = Repo::new();
    let trees = repo.trees();
    let tree = repo.tree();
    assert!(matches!(trees.changes("--output=/tmp/x", &tree), Err(WorktreeError::NoTree(_))));
    assert!(matches!(trees.restore("HEAD"), Err(WorktreeError::NoTree(_))));
    assert!(matches!(trees.restore(&"0".repeat(39).replacen('0', "12", 1)), Err(WorktreeError::Git { .. })));
}

#[test]
fn embedded_repositories_are_recorded_as_links_and_survive_restore() {
    let repo = Repo::new();
    let inner = repo.root.join("inner");
    let changed = repo.changed_by(|| {
        repo.write("inner/file", "x\n");
        git(&inner, &["init", "--quiet"]);
        // A repository without a commit cannot be recorded, and must not hide other files.
        repo.write("z.txt", "z\n");
    });
    assert_eq!(changed, ["A z.txt"]);
    let without = repo.tree();
    git(&inner, &["add", "file"]);
    let changed = repo.changed_by(|| drop(git(&inner, &["commit", "--quiet", "--message", "inner"])));
    assert_eq!(changed, ["A inner"]);
    let changed = repo.changed_by(|| repo.write("inner/file", "not looked at\n"));
    assert_eq!(changed, [""; 0]);

    let left = repo.trees().restore(&without).unwrap();
    assert_eq!(lines(&left), ["A inner"], "said, not removed");
    assert!(inner.join(".git/HEAD").exists());
}

#[test]
fn submodules_are_recorded_as_links() {
    let (library, repo) = (Repo::new(), Repo::new());
    let add = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        library.root.to_str().unwrap(),
        "lib",
    ];
    git(&repo.root, &add);
    repo.commit();
    git(&repo.root, &["config", "submodule.lib.ignore", "all"]);
    let before = repo.seen();
    assert_eq!(repo.changed_by(|| {}), [""; 0]);
    assert_eq!(repo.seen(), before);
    let changed = repo.changed_by(|| {
        git(&repo.root.join("lib"), &["commit", "--quiet", "--allow-empty", "--message", "y"]);
    });
    assert_eq!(changed, ["M lib"]);
}

#[test]
fn a_folder_and_a_link_may_change_places() {
    let repo = Repo::new();
    repo.write("real/deep/f", "1\n");
    symlink("real", repo.root.join("link")).unwrap();
    git(&repo.root, &["add", "--all"]);
    git(&repo.root, &["commit", "--quiet", "--message", "both"]);
    let trees = repo.trees();
    let before = trees.snapshot().unwrap().tree;
    fs::remove_file(repo.root.join("link")).unwrap();
    fs::rename(repo.root.join("real"), repo.root.join("link")).unwrap();
    symlink("link", repo.root.join("real")).unwrap();
    let after = trees.snapshot().unwrap().tree;
    let changed: Vec<String> =
        trees.changes(&before, &after).unwrap().into_iter().map(|change| change.path).collect();
    assert_eq!(changed, ["link", "link/deep/f", "real", "real/deep/f"]);
    trees.restore(&before).unwrap();
    assert_eq!(trees.snapshot().unwrap().tree, before);
}

#[test]
fn unreadable_files_and_folders_are_named() {
    let repo = Repo::new();
    let lock = |path: &str| {
        fs::set_permissions(repo.root.join(path), fs::Permissions::from_mode(0o000)).unwrap();
    };
    repo.write("se cret", "x\n");
    lock("se cret");
    if fs::read(repo.root.join("se cret")).is_ok() {
        // Root may read every file, unless it drops that capability.
        let again = Command::new("setpriv")
            .arg("--bounding-set=-dac_override,-dac_read_search")
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "snapshots::unreadable_files_and_folders_are_named"])
            .output()
            .expect("as superuser this test needs `setpriv`");
        let stdout = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success() && stdout.contains("1 passed"), "{stdout}");
        return;
    }
    let unreadable = |expected: &str| match repo.trees().snapshot() {
        Err(WorktreeError::Unreadable { path, why }) => {
            assert_eq!((path.as_str(), why.as_str()), (expected, "Permission denied"));
        }
        other => panic!("{other:?}"),
    };
    unreadable("se cret");
    repo.remove("se cret");
    repo.write("closed/inner", "x\n");
    lock("closed");
    unreadable("closed/");
    fs::set_permissions(repo.root.join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    lock("closed/inner");
    repo.write(".gitignore", "closed\n");
    repo.trees().snapshot().unwrap();
}

#[test]
fn a_killed_run_does_not_block_the_next_snapshot() {
    let repo = Repo::new();
    let tree = repo.tree();
    let index = fs::read_dir(repo.state()).unwrap().map(|entry| entry.unwrap().path());
    let index =
        index.into_iter().find(|path| path.file_name().unwrap().as_bytes().starts_with(b"index-")).unwrap();
    fs::write(index.with_extension("lock"), "").unwrap();
    assert_eq!(repo.tree(), tree);
    for damaged in
        [&b""[..], b"DIRC", &fs::read(&index).unwrap()[..40], b"nonsense that is no index at all, and long"]
    {
        fs::write(&index, damaged).unwrap();
        assert_eq!(repo.tree(), tree, "{}", String::from_utf8_lossy(damaged));
    }
    fs::remove_file(&index).unwrap();
    assert_eq!(repo.tree(), tree);
}

#[test]
fn a_snapshot_survives_removed_objects() {
    let repo = Repo::new();
    git(&repo.root, &["add", "--force", "noise.log"]);
    // Git trusts an index entry without reading the file only when the index is newer than the file.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    for file in ["a.txt", "dir/b.txt", ".gitignore", "noise.log"] {
        fs::File::options().write(true).open(repo.root.join(file)).unwrap().set_modified(old).unwrap();
    }
    git(&repo.root, &["update-index", "--refresh"]);
    fs::remove_dir_all(repo.root.join(".git/objects")).unwrap();
    fs::create_dir(repo.root.join(".git/objects")).unwrap();
    let tree = repo.tree();
    let names = git(&repo.root, &["ls-files"]);
    assert!(names.contains("noise.log"), "{names}");
    fs::remove_file(repo.root.join(".git/index")).unwrap();
    git(&repo.root, &["add", "--all", "--force"]);
    assert_eq!(git(&repo.root, &["write-tree"]).trim_end(), tree);
}

#[test]
fn concurrent_snapshots_work() {
    let repo = Repo::new();
    repo.write("new.txt", "n\n");
    let tree = repo.tree();
    std::thread::scope(|scope| {
        let looks: Vec<_> = (0..4).map(|_| scope.spawn(|| repo.tree())).collect();
        looks.into_iter().for_each(|look| assert_eq!(look.join().unwrap(), tree));
    });
}

#[test]
fn assume_unchanged_and_skip_worktree_are_ignored() {
    let repo = Repo::new();
    git(&repo.root, &["update-index", "--assume-unchanged", "a.txt"]);
    git(&repo.root, &["update-index", "--skip-worktree", "dir/b.txt"]);
    let before = repo.seen();
    repo.write("a.txt", "hidden\n");
    repo.write("dir/b.txt", "hidden\n");
    assert_eq!(repo.seen(), before, "the user does not see it");
    let head = git(&repo.root, &["rev-parse", "HEAD^{tree}"]);
    assert_eq!(lines(&repo.trees().changes(head.trim(), &repo.tree()).unwrap()), ["M a.txt", "M dir/b.txt"]);
    assert_eq!(repo.seen(), before);
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    let repo = Repo::new();
    repo.write("big/c.txt", "c\n");
    repo.commit();
    git(&repo.root, &["sparse-checkout", "set", "--sparse-index", "dir"]);
    assert!(!repo.root.join("big").exists());
    assert_eq!(repo.tree(), git(&repo.root, &["rev-parse", "HEAD^{tree}"]).trim());
}

#[test]
fn a_merge_conflict_can_be_snapshotted() {
    let repo = Repo::new();
    git(&repo.root, &["switch", "--quiet", "--create", "theirs"]);
    repo.write("a.txt", "theirs\n");
    repo.commit();
    git(&repo.root, &["switch", "--quiet", "main"]);
    repo.write("a.txt", "ours\n");
    repo.commit();
    let merge =
        Command::new("git").args(["merge", "--quiet", "theirs"]).current_dir(&repo.root).output().unwrap();
    assert!(!merge.status.success());
    let before = repo.seen();
    assert_eq!(repo.all(), ["A .gitignore", "A a.txt", "A dir/b.txt"]);
    assert_eq!(repo.seen(), before);
}

#[test]
fn the_state_dir_is_left_out() {
    let repo = Repo::new();
    let state = repo.root.join(".cuegate/trees");
    repo.write(".cuegate/journal", "x");
    let tree = Trees::open(&repo.root, &state).unwrap().unwrap().snapshot().unwrap().tree;
    assert_eq!(tree, git(&repo.root, &["rev-parse", "HEAD^{tree}"]).trim());
    // Also when the state dir is another folder.
    let trees = Trees::open(&repo.root, &repo.root.join("s*te")).unwrap().unwrap();
    assert_eq!(trees.snapshot().unwrap().tree, tree);
    assert_eq!(trees.restore(&tree).unwrap(), []);
    assert!(repo.root.join(".cuegate/journal").exists());
    fs::remove_dir_all(repo.root.join("s*te")).unwrap();
    assert!(!is_dirty(&repo.root).unwrap());
}

#[test]
fn a_repository_in_a_folder_with_a_colon_is_found() {
    let repo = Repo::new();
    let moved = repo.place.path().join("x:y \"z");
    fs::rename(&repo.root, &moved).unwrap();
    let trees = Trees::open(&moved, &repo.state()).unwrap().unwrap();
    let tree = trees.snapshot().unwrap().tree;
    let head = git(&moved, &["rev-parse", "HEAD^{tree}"]);
    assert_eq!(tree, head.trim());
    // The blob of the committed file is only in the repository's object folder.
    fs::write(moved.join("a.txt"), "").unwrap();
    let patch = trees.patch(&tree, &trees.snapshot().unwrap().tree).unwrap();
    assert!(String::from_utf8(patch).unwrap().contains("-two\n"));
}

#[test]
fn line_ends_are_normalized_as_git_does() {
    let repo = Repo::new();
    git(&repo.root, &["config", "core.autocrlf", "true"]);
    git(&repo.root, &["config", "core.safecrlf", "true"]);
    assert_eq!(repo.changed_by(|| repo.write("a.txt", "one\r\ntwo\r\n")), [""; 0]);
    let before = repo.tree();
    assert_eq!(repo.changed_by(|| repo.write("a.txt", "one\r\nmixed\n")), ["M a.txt"]);
    assert_eq!(repo.trees().restore(&before).unwrap(), []);
    assert_eq!(fs::read(repo.root.join("a.txt")).unwrap(), b"one\r\ntwo\r\n");
}
