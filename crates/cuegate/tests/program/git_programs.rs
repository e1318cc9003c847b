//! Programs that work through git, as agents and their hooks start them: pre-commit and Git LFS.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use serde_json::json;

use crate::{
    agent::registry::{begin, says, says_with, small},
    attacks::without_bwrap,
    sandbox::stands,
    support::{Project, Ran},
};

/// Where a run works, and what it can do about `.git` there.
const PLACES: [(&str, &[&str], bool); 4] = [
    ("in place with bubblewrap", &[], true),
    ("in a worktree with bubblewrap", &["--worktree", "--merge"], true),
    ("in a worktree with Landlock alone", &["--worktree", "--merge"], false),
    ("in a worktree without a sandbox", &["--worktree", "--merge", "--no-sandbox"], false),
];

/// Runs an agent that starts `command` in each place, with the programs of a folder in `PATH`, in a project that `prepare`
/// made. Then `check` sees the project, with the name of the place.
fn run_everywhere(
    command: &str,
    programs: &Path,
    cache: &Path,
    prepare: impl Fn(&Project, bool),
    check: impl Fn(&Project, &str),
) {
    let without = without_bwrap();
    for (place, more, mounted) in PLACES {
        if mounted && !stands() {
            continue;
        }
        let answers =
            json!([says_with("work", "handoff", json!({ "runs": [command] })), says("close", "closing")]);
        let project = small().project(answers);
        prepare(&project, mounted);
        let mut run = project.command(&begin(more));
        let all = std::env::var_os("PATH").unwrap();
        let others = if mounted { &all } else { without.path().as_os_str() };
        let path =
            std::env::join_paths([programs.to_owned()].into_iter().chain(std::env::split_paths(others)));
        let ran = Ran::of(run.env("PATH", path.unwrap()).env("PRE_COMMIT_HOME", cache).output().unwrap());
        assert_eq!(ran.code, 0, "{place}: {}", ran.stderr);
        let work = project.events("run_started")[0]["place"]["work"].as_str().unwrap().to_owned();
        let said = fs::read_to_string(Path::new(&work).join("commit.log")).unwrap_or_default();
        assert_eq!(project.git(&["log", "-1", "--format=%s"]), "work\n", "{place}: {said}{}", ran.stderr);
        check(&project, place);
        project.git(&["fsck", "--strict"]);
        project.all_gone();
    }
}

fn commit_all(project: &Project) {
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "base"]);
}

/// The hook of pre-commit rewrites a file and refuses the first commit, as its formatters do; the second one lands.
#[test]
fn pre_commit_guards_the_commits_of_agents() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin");
    if !programs.join("pre-commit").exists() {
        eprintln!("skipped: pre-commit is not installed; `cargo xtask test` installs it");
        return;
    }
    // What it installed for the user: read-only in the full sandbox. It takes a folder for writable that Landlock keeps it
    // from writing, so it has to be allowed there.
    let cache = tempfile::tempdir().unwrap();
    let caches = format!("[sandbox]\ncaches = [\"{}\"]\n", cache.path().display());
    let config = "repos:\n- repo: local\n  hooks:\n  - id: trim\n    name: trim\n    language: system\n    \
                  files: '\\.txt$'\n    entry: sed -i 's/ *$//'\n";
    run_everywhere(
        "printf 'text   \\n' > own.txt; git add own.txt; git commit -qm work > refused.log 2>&1 && exit 1; \
         git add own.txt; git commit -qm work > commit.log 2>&1",
        &programs,
        cache.path(),
        |project, mounted| {
            if !mounted {
                project.write("cuegate.toml", &caches);
            }
            project.write(".pre-commit-config.yaml", config);
            project.write(".gitignore", "/.cuegate\n/refused.log\n/commit.log\n/script*\n");
            commit_all(project);
            for args in [&["install"][..], &["run", "--all-files"]] {
                let mut command = Command::new(programs.join("pre-commit"));
                let ran = command.args(args).current_dir(project.path()).env("PRE_COMMIT_HOME", cache.path());
                let ran = ran.output().unwrap();
                assert!(ran.status.success(), "{ran:?}");
            }
        },
        |project, place| {
            assert_eq!(project.git(&["show", "HEAD:own.txt"]), "text\n", "{place}");
            let hook = fs::metadata(project.path().join(".git/hooks/pre-commit")).unwrap();
            assert_eq!(hook.permissions().mode() & 0o111, 0o111, "{place}");
        },
    );
}

/// What an agent stores with Git LFS is in the user's repository afterwards.
#[test]
fn git_lfs_stores_the_files_of_agents() {
    if !Command::new("git-lfs").arg("version").output().is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: git-lfs is not installed; `cargo xtask test` installs it on Debian");
        return;
    }
    run_everywhere(
        "cat old.bin > copy.txt; printf 'new bytes' > new.bin; git add new.bin copy.txt; git commit -qm work",
        Path::new("/usr/bin"),
        Path::new("/nowhere"),
        |project, _| {
            project.git(&["lfs", "install", "--local"]);
            project.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
            project.write(".gitignore", "/.cuegate\n/script*\n");
            project.write("old.bin", "old bytes");
            commit_all(project);
        },
        |project, place| {
            let pointer = project.git(&["cat-file", "blob", "HEAD:new.bin"]);
            assert!(
                pointer.starts_with("version https://git-lfs.github.com/spec/v1\n"),
                "{place}: {pointer}"
            );
            assert_eq!(project.git(&["show", "HEAD:copy.txt"]), "old bytes", "{place}");
            assert_eq!(project.read("new.bin"), "new bytes", "{place}");
            project.git(&["lfs", "fsck"]);
            assert_eq!(project.git(&["status", "--porcelain"]), "", "{place}");
        },
    );
}
