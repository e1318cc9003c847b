//! Attacks on the repository of the user: on references, HEAD, the index, the stash, settings and hooks. Each is tried in
//! the git folder of the agents, where it may succeed, and must leave the user's repository as it was.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use super::without_bwrap;
use crate::{
    agent::registry::{begin, says, says_with, small},
    sandbox::stands,
    support::{Project, Ran, copy, until},
};

/// An attack: its name, what the agent does, and a command that succeeds in the main checkout of the user if it got
/// through. `$G` is the git folder that git names, `$C` the shared one.
type GitAttack = (&'static str, &'static str, &'static str);

/// Attacks after which the agent's git still works.
const ON_REFS: [GitAttack; 30] = [
    (
        "other-branch",
        "git branch -f other $(git commit-tree -m evil HEAD^{tree})",
        "git log -1 --format=%s other | grep evil",
    ),
    ("new-branch", "git branch evil", "git rev-parse -q --verify refs/heads/evil"),
    ("deleted-branch", "git branch -D gone", "! git rev-parse -q --verify refs/heads/gone"),
    (
        "remote-branch",
        "git update-ref refs/remotes/origin/main $(git commit-tree -m evil HEAD^{tree})",
        "git log -1 --format=%s origin/main | grep evil",
    ),
    (
        "moved-tag",
        "git tag -f v1 $(git commit-tree -m evil HEAD^{tree})",
        "git log -1 --format=%s v1 | grep evil",
    ),
    ("new-tag", "git tag evil", "git rev-parse -q --verify refs/tags/evil"),
    ("stash-clear", "git stash clear", "! git rev-parse -q --verify refs/stash"),
    (
        "stash-push",
        "echo s >> a.txt; git stash push -qm evil; git stash apply -q; git checkout -q a.txt",
        "git stash list | grep evil",
    ),
    ("notes", "git notes add -m evil", "git rev-parse -q --verify refs/notes/commits"),
    ("replaced", "git replace HEAD $(git commit-tree -m evil HEAD^{tree})", "git replace -l | grep ."),
    ("staged", "git rm -q --cached keep.txt", "git diff --cached --name-only | grep keep.txt"),
    ("assume-unchanged", "git update-index --assume-unchanged a.txt", "git ls-files -v | grep ^h"),
    ("skip-worktree", "git update-index --skip-worktree a.txt", "git ls-files -v | grep ^S"),
    ("setting", "git config core.fsmonitor 'touch fsmonitor-ran'", "git config --local core.fsmonitor"),
    ("setting-by-file", "printf '[alias]\\n\\tevil = !touch x\\n' >> $C/config", "git config alias.evil"),
    ("setting-replaced", "cp $C/config c && echo '# evil' >> c && mv c $C/config", "grep evil .git/config"),
    ("remote", "git remote add evil https://evil.example.com/x", "git remote | grep evil"),
    (
        "worktree-settings",
        "echo '[core]' > $G/config.worktree",
        "ls .git/config.worktree .git/worktrees/*/config.worktree 2>/dev/null | grep .",
    ),
    (
        "hook",
        "printf '#!/bin/sh\\ntouch hook-ran\\n' > $C/hooks/pre-commit; chmod +x $C/hooks/pre-commit",
        "ls .git/hooks/pre-commit",
    ),
    ("hook-link", "ln -s ../../later $C/hooks/post-merge", "test -L .git/hooks/post-merge"),
    (
        "hooks-moved",
        "cp -r $C/hooks h && touch h/evil && rm -rf $C/hooks && mv h $C/hooks",
        "ls .git/hooks/evil",
    ),
    ("attributes", "echo '*.none filter=x' > $C/info/attributes", "ls .git/info/attributes"),
    (
        "attributes-moved",
        "cp -r $C/info i && touch i/evil && rm -rf $C/info && mv i $C/info",
        "ls .git/info/evil",
    ),
    ("excluded", "echo evil.txt >> $C/info/exclude", "grep evil .git/info/exclude"),
    ("submodules", "mkdir -p $C/modules/evil", "ls -d .git/modules/evil"),
    ("working-tree", "git worktree add -q --detach wt", "ls -d .git/worktrees/wt"),
    (
        "rebase",
        "mkdir -p $G/rebase-merge; echo 'exec touch rebase-ran' > $G/rebase-merge/git-rebase-todo",
        "ls .git/rebase-merge/git-rebase-todo .git/worktrees/*/rebase-merge/git-rebase-todo 2>/dev/null | grep .",
    ),
    ("packed", "git pack-refs --all", "grep refs/heads/other .git/packed-refs"),
    (
        "pruned",
        "git reflog expire --expire=now --all; git gc -q --prune=now",
        "! git cat-file -e $(cat dangling)",
    ),
    ("logs", "rm -rf $C/logs $G/logs", "test ! -s .git/logs/HEAD"),
];

/// Attacks after which the agent's git no longer works.
const LAST: [GitAttack; 7] = [
    ("head", "echo 'ref: refs/heads/other' > $G/HEAD", "git symbolic-ref HEAD | grep other"),
    ("index", "echo > $G/index", "! git ls-files"),
    ("shallow", "git rev-parse HEAD > $C/shallow", "ls .git/shallow"),
    ("alternates", "echo /srv/evil > $C/objects/info/alternates", "grep evil .git/objects/info/alternates"),
    ("refs-removed", "rm -rf $C/refs", "test ! -d .git/refs"),
    ("fifo", "mkfifo $C/refs/fifo $C/FIFO; mkdir -p $C/refs; mkfifo $C/refs/fifo", "ls .git/FIFO"),
    ("shared-folder", "echo evil > $G/commondir", "ls .git/commondir"),
];

/// The name of the group in the manual.
pub const GROUP: &str = "the repository";

/// The attacks in the words of the manual.
pub fn words() -> Vec<String> {
    all().map(|(name, ..)| name.replace('-', " ")).collect()
}

fn all() -> impl Iterator<Item = GitAttack> {
    ON_REFS.into_iter().chain(LAST)
}

/// The attacks as one command each, which keeps what it says and never fails.
fn as_runs(attacks: impl Iterator<Item = GitAttack>) -> Vec<String> {
    let run = |(name, command, _): GitAttack| {
        format!(
            "( G=$(cat G) C=$(cat C); {command} ) > heard-{name}.txt 2>&1 && echo {name} >> did.txt; true"
        )
    };
    let places =
        "git rev-parse --absolute-git-dir > G; git rev-parse --path-format=absolute --git-common-dir > C";
    std::iter::once(places.to_owned()).chain(attacks.map(run)).collect()
}

/// A project with branches, a tag, a stash, a remote branch and a commit that nothing holds.
fn project(runs: &[String]) -> Project {
    let project = small()
        .project(json!([says_with("work", "handoff", json!({ "runs": runs })), says("close", "closing")]));
    project.write(
        ".gitignore",
        "/.cuegate\n/script*\n/heard*\n/did.txt\n/G\n/C\n/dangling\n/wt\n/ready*\n/later*\n",
    );
    project.write("keep.txt", "keep\n");
    project.write("a.txt", "a\n");
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "base"]);
    for branch in ["other", "gone"] {
        project.git(&["branch", branch]);
    }
    project.git(&["tag", "v1"]);
    project.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    project.write("a.txt", "stashed\n");
    project.git(&["stash", "push", "--quiet", "--message", "mine"]);
    let dangling = project.git(&["commit-tree", "-m", "dangling", "HEAD^{tree}"]);
    project.write("dangling", &dangling);
    project.git(&["status"]);
    project
}

/// The attacks that got through, as the user's git sees it.
fn through(at: &Path) -> Vec<&'static str> {
    let is_through = |check: &str| {
        let mut bash = Command::new("bash");
        bash.args(["-c", check]).current_dir(at).env("GIT_CONFIG_GLOBAL", "/dev/null");
        bash.output().unwrap().status.success()
    };
    all().filter(|(_, _, check)| is_through(check)).map(|(name, _, _)| name).collect()
}

/// What of the user's repository must stay as it is, but for the branch of a run.
fn state(project: &Project) -> String {
    let read = |path: &str| format!("{:?}", fs::read(project.path().join(path)).unwrap_or_default());
    let refs = project.git(&["for-each-ref", "--format=%(objectname) %(refname)"]);
    let refs: Vec<&str> = refs.lines().filter(|line| !line.contains("/cuegate/")).collect();
    let names = |path: &str| {
        let mut names: Vec<PathBuf> = fs::read_dir(project.path().join(path))
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path())
            .collect();
        names.sort();
        format!("{names:?}")
    };
    [
        refs.join("\n"),
        project.git(&["stash", "list"]),
        read(".git/config"),
        read(".git/HEAD"),
        read(".git/info/exclude"),
        names(".git/hooks"),
        names(".git/info"),
    ]
    .join("\n")
}

/// Each is an attack: by the user's own shell it succeeds.
#[test]
fn each_attack_on_git_succeeds_in_the_repository_of_the_user() {
    let all_of_them: Vec<GitAttack> = all().collect();
    let project = project(&[]);
    let mut failed = Vec::new();
    for attack in all_of_them {
        let folder = tempfile::tempdir().unwrap();
        copy(project.path(), folder.path());
        for run in as_runs(std::iter::once(attack)) {
            Command::new("bash")
                .args(["-c", &run])
                .current_dir(folder.path())
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .status()
                .unwrap();
        }
        if !through(folder.path()).contains(&attack.0) {
            let heard = fs::read_to_string(folder.path().join(format!("heard-{}.txt", attack.0)));
            failed.push((attack.0, heard.unwrap_or_default()));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Runs all attacks and compares the user's repository. `PATH` may lack bubblewrap.
fn attack(more: &[&str], path: Option<&Path>) -> (Project, Ran) {
    let project = project(&as_runs(all()));
    // Before the first run its folder is excluded from version control.
    project.run(&["doctor"]);
    let folder = project.path().join(".git/info/exclude");
    fs::write(&folder, format!("{}/.cuegate\n", fs::read_to_string(&folder).unwrap_or_default())).unwrap();
    let before = state(&project);
    let index = fs::read(project.path().join(".git/index")).unwrap();
    let mut command = project.command(&begin(more));
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(through(project.path()), [""; 0], "{}", ran.stderr);
    assert_eq!(state(&project), before, "{}", ran.stderr);
    assert!(index == fs::read(project.path().join(".git/index")).unwrap(), "{}", ran.stderr);
    project.git(&["fsck", "--strict"]);
    (project, ran)
}

/// What the run names as not taken over.
fn named(project: &Project) -> Vec<String> {
    let left = project.status()["left_in_git"].clone();
    left.as_array().into_iter().flatten().map(|what| what.as_str().unwrap().to_owned()).collect()
}

#[test]
fn attacks_on_git_stay_in_the_git_folder_of_the_agents_in_place() {
    if !stands() {
        return;
    }
    let (project, ran) = attack(&[], None);
    assert!(ran.stderr.contains("\nnot taken   "), "{}", ran.stderr);
    assert!(!named(&project).is_empty());
}

#[test]
fn attacks_on_git_stay_in_the_git_folder_of_the_agents_in_a_worktree() {
    if !stands() {
        return;
    }
    let (project, _) = attack(&["--worktree"], None);
    assert!(!named(&project).is_empty());
}

#[test]
fn attacks_on_git_stay_in_the_git_folder_of_the_agents_without_bubblewrap() {
    if !cuegate_runner::sandbox::has_landlock() {
        eprintln!("skipped: the kernel has no Landlock of version 6");
        return;
    }
    let programs = without_bwrap();
    attack(&["--worktree"], Some(programs.path()));
}

#[test]
fn attacks_on_git_stay_in_the_git_folder_of_the_agents_without_a_sandbox() {
    attack(&["--worktree", "--no-sandbox"], None);
}

/// Where nothing can be mounted over the user's repository, what a call changed there is put back, and the run fails.
#[test]
fn attacks_on_git_are_put_back_in_place_without_a_mount() {
    // The index is the agent's to change there, and these leave nothing that git obeys.
    let left = ["staged", "attributes-moved", "submodules", "working-tree"];
    let lost = ["packed", "pruned", "logs"];
    let attacks: Vec<GitAttack> =
        ON_REFS.into_iter().filter(|(name, ..)| !left.contains(name) && !lost.contains(name)).collect();
    let programs = without_bwrap();
    let landlock = cuegate_runner::sandbox::has_landlock().then_some(programs.path());
    for (more, path) in [(&["--no-sandbox"][..], None), (&[], landlock)] {
        if more.is_empty() && path.is_none() {
            eprintln!("skipped: the kernel has no Landlock of version 6");
            continue;
        }
        let project = project(&as_runs(attacks.iter().copied()));
        project.run(&["doctor"]);
        let excluded = project.path().join(".git/info/exclude");
        fs::write(&excluded, format!("{}/.cuegate\n", fs::read_to_string(&excluded).unwrap_or_default()))
            .unwrap();
        let before = state(&project);
        let mut command = project.command(&begin(more));
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(
            ran.stderr.contains("`work` changed what is not its own in the repository"),
            "{}",
            ran.stderr
        );
        assert_eq!(through(project.path()), [""; 0], "{}", ran.stderr);
        assert_eq!(state(&project), before, "{}", ran.stderr);
        let kept = project.git(&["for-each-ref", "refs/cuegate/set-aside"]);
        assert!(!kept.is_empty(), "commits that were put away stay reachable");
    }
}

/// A lock that the agent leaves keeps nothing from being noticed.
#[test]
fn a_change_that_git_cannot_put_back_fails_the_run() {
    let work = "echo x > own.txt; git add own.txt; git commit -qm own";
    let lock = "git branch -f other $(git commit-tree -m evil HEAD^{tree}); touch .git/refs/heads/other.lock";
    let project = project(&[work.to_owned(), lock.to_owned()]);
    let ran = project.run(&begin(&["--no-sandbox"]));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    // The commit on the checked-out branch is no trespass: it stays, and is shown.
    assert!(ran.stderr.contains("changed     1 file: own.txt +1"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`work` changed what is not its own in the repository"), "{}", ran.stderr);
}

/// While the agent works, the user's own `git status`, as editors run it, starts nothing of the agent's.
#[test]
fn the_git_of_the_user_runs_nothing_while_an_agent_works() {
    if !stands() {
        return;
    }
    for more in [&[][..], &["--worktree"]] {
        let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mark = outside.path().join("ran");
        let monitor = format!("touch {}; false", mark.display());
        // Settings are written where git would read them, and by another shared folder.
        let plant = format!(
            "G=$(git rev-parse --absolute-git-dir) C=$(git rev-parse --path-format=absolute --git-common-dir); \
             git config core.fsmonitor {0}; printf '[core]\\nfsmonitor = \"%s\"\\n' {0} > $G/config.worktree; \
             git config extensions.worktreeConfig true; \
             git init -q --bare evil; git -C evil config core.fsmonitor {0}; git -C evil config core.bare false; \
             cp -r $C/refs $C/objects evil/; echo $PWD/evil > $G/commondir; echo $PWD/evil > $C/commondir; \
             touch ready; while [ ! -e ready-done ]; do sleep 0.02; done",
            format_args!("'{}'", monitor.replace('\'', "'\\''"))
        );
        let project = project(&[plant]);
        let child = project.start(&begin(more));
        let worktrees = project.path().join(".cuegate/worktrees");
        let places = || {
            let worktrees = fs::read_dir(&worktrees).into_iter().flatten().flatten();
            worktrees.map(|entry| entry.path()).chain([project.path().to_owned()]).collect::<Vec<_>>()
        };
        until("the agent has planted", || places().iter().any(|place| place.join("ready").exists()));
        for place in places() {
            let mut git = Command::new("git");
            git.args(["status", "--porcelain"]).current_dir(&place).env("GIT_CONFIG_GLOBAL", "/dev/null");
            let status = git.output().unwrap();
            assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
        }
        let worked = places().into_iter().find(|place| place.join("ready").exists()).unwrap();
        fs::write(worked.join("ready-done"), "").unwrap();
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(!mark.exists(), "the user's git ran the agent's program");
    }
}
