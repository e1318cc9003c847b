//! Tests of stale locks and of restoring the git state of a run's worktree, after git was killed anywhere.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use cuegate_runner::worktree::{Trees, branch_worktree, clear_stale_locks};

use crate::support::{Repo, git};

#[test]
fn only_stale_locks_are_removed() {
    let repo = Repo::new();
    let at = repo.place.path().join("tree");
    branch_worktree::create_worktree(&repo.root, &at, "run/1", None).unwrap();
    let ago = SystemTime::now() - Duration::from_secs(5);
    assert!(clear_stale_locks(&at, ago).unwrap().is_empty(), "there are none");
    let common = repo.root.join(".git");
    let names = [
        "worktrees/tree/index.lock",
        "worktrees/tree/HEAD.lock",
        "packed-refs.lock",
        "refs/heads/run/1.lock",
    ];
    let mut locks: Vec<PathBuf> = names.iter().map(|name| common.join(name)).collect();
    locks.sort();
    for lock in &locks {
        fs::write(lock, "").unwrap();
    }
    let other = common.join("deploy.lock");
    fs::write(&other, "").unwrap();
    let later = SystemTime::now() + Duration::from_secs(5);
    assert!(clear_stale_locks(&at, later).unwrap().is_empty(), "they are older than the command");
    // A git that is older than a lock may hold it, also in another worktree. This one only waits for its input.
    let mut busy = Command::new("git")
        .args(["hash-object", "--stdin"])
        .current_dir(&repo.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(200));
    for lock in &locks {
        fs::remove_file(lock).unwrap();
        fs::write(lock, "").unwrap();
    }
    assert!(clear_stale_locks(&at, ago).unwrap().is_empty(), "somebody may hold them");
    drop(busy.stdin.take());
    busy.wait().unwrap();
    if cfg!(target_os = "linux") {
        assert_eq!(clear_stale_locks(&at, ago).unwrap(), locks);
        assert!(other.exists(), "it is no lock of git");
        git(&at, &["commit", "--quiet", "--allow-empty", "--message", "goes on"]);
    }
}

#[test]
fn the_index_of_a_commit_that_lacks_only_that_is_put_in_place() {
    let repo = Repo::new();
    let index = repo.root.join(".git/index");
    let lock = index.with_file_name("index.lock");
    let since = SystemTime::now() - Duration::from_secs(5);
    let before = fs::read(&index).unwrap();
    fs::write(repo.root.join("a.txt"), "other\n").unwrap();
    git(&repo.root, &["commit", "--quiet", "--all", "--message", "killed before its last step"]);
    for (left, is_clean) in
        [(fs::read(&index).unwrap(), true), (before.clone(), false), (b"DIRC".to_vec(), false)]
    {
        fs::write(&index, &before).unwrap();
        fs::write(&lock, left).unwrap();
        if cfg!(target_os = "linux") {
            assert_eq!(clear_stale_locks(&repo.root, since).unwrap(), std::slice::from_ref(&lock));
            assert_eq!(git(&repo.root, &["status", "--porcelain"]).is_empty(), is_clean);
        }
    }
}

#[test]
fn a_restored_index_hides_no_change_of_the_second_in_which_it_was_written() {
    let repo = Repo::new();
    let at = repo.place.path().join("tree");
    let made = branch_worktree::create_worktree(&repo.root, &at, "run/1", None).unwrap();
    let trees = Trees::open(&at, &repo.state()).unwrap().unwrap();
    let file = at.join("a.txt");
    let second = || {
        let modified = file.metadata().unwrap().modified().unwrap();
        modified.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
    };
    // Git compares times by the second unless it was built otherwise, and the length does not differ.
    loop {
        fs::write(&file, "one\n").unwrap();
        let written = second();
        git(&at, &["add", "a.txt"]);
        fs::write(&file, "two\n").unwrap();
        if second() == written {
            break;
        }
    }
    let before = trees.snapshot().unwrap();
    let state = trees.git_state(&made.branch).unwrap().unwrap();
    git(&at, &["add", "a.txt"]);
    std::thread::sleep(Duration::from_millis(1100));
    trees.restore_git_state(&made.branch, &state, before.head.as_deref()).unwrap();
    assert!(trees.restore(&before.tree).unwrap().is_empty());
    assert_eq!(git(&at, &["show", ":a.txt"]), "one\n");
    git(&at, &["add", "a.txt"]);
    assert_eq!(git(&at, &["show", ":a.txt"]), "two\n");
}

#[test]
fn what_a_person_did_meanwhile_stays() {
    let repo = Repo::new();
    let at = repo.place.path().join("tree");
    let made = branch_worktree::create_worktree(&repo.root, &at, "run/1", None).unwrap();
    let trees = Trees::open(&at, &repo.state()).unwrap().unwrap();
    let before = trees.snapshot().unwrap();
    let state = trees.git_state(&made.branch).unwrap().unwrap();
    change(&at, "git checkout -q -b side; git commit -q --allow-empty -m agent; git checkout -q run/1", None);
    change(&at, "git commit -q --allow-empty -m cut", None);
    let cut = git(&at, &["rev-parse", "run/1"]);
    // A person goes on with the agent's branch in the main working tree, and stashes there.
    git(&repo.root, &["checkout", "--quiet", "side"]);
    git(&repo.root, &["commit", "--quiet", "--allow-empty", "--message", "person"]);
    repo.write("a.txt", "by a person\n");
    git(&repo.root, &["stash", "--quiet"]);
    let seen = repo.seen().0;
    let kept = trees.restore_git_state(&made.branch, &state, before.head.as_deref()).unwrap();
    assert_eq!(kept, [format!("refs/cuegate/set-aside/{}", cut.trim())]);
    git(&repo.root, &["update-ref", "-d", &kept[0]]);
    assert_eq!(git(&repo.root, &["log", "-1", "--format=%s", "side"]), "person\n");
    assert_eq!(git(&repo.root, &["stash", "list"]).lines().count(), 1);
    assert_eq!(repo.seen().0[1], seen[1], "the stash");
    assert_eq!(git(&at, &["rev-parse", "HEAD"]).trim(), before.head.unwrap());
}

#[test]
fn repositories_of_submodules_stay() {
    let repo = Repo::new();
    let at = repo.place.path().join("tree");
    let made = branch_worktree::create_worktree(&repo.root, &at, "run/1", None).unwrap();
    let trees = Trees::open(&at, &repo.state()).unwrap().unwrap();
    let head = trees.snapshot().unwrap().head;
    let state = trees.git_state(&made.branch).unwrap().unwrap();
    let pack = repo.root.join(".git/worktrees/tree/modules/sub/objects/pack/a.pack");
    fs::create_dir_all(pack.parent().unwrap()).unwrap();
    fs::write(&pack, "objects").unwrap();
    trees.restore_git_state(&made.branch, &state, head.as_deref()).unwrap();
    assert!(pack.exists());
}

/// Changes of a worktree that agents make, as shell commands. Some leave work unfinished.
const CHANGES: [&str; 13] = [
    "echo $RANDOM$$ >> a.txt",
    "echo $$ > new-$$.txt; git add new-$$.txt",
    "git rm -q --cached dir/b.txt",
    "git commit -qam more",
    "git add -A; git commit -q --amend -m amended",
    "git checkout -q -b topic-$$",
    "git checkout -q run/1",
    "test $(git branch --show-current) = run/1 && git stash -q --include-untracked",
    "test $(git branch --show-current) = run/1 && git stash pop -q",
    "git add -A; git commit -qm base; git rebase -q --onto main HEAD~1",
    "git checkout -q -b left-$$ main; echo left > a.txt; git commit -qam left; git rebase -q run/1",
    "git merge -q --no-ff main; git cherry-pick main",
    "git reset -q --hard HEAD~1; git checkout -q --detach",
];

/// What git says of a worktree.
fn seen(at: &Path) -> String {
    let asked: [&[&str]; 6] = [
        &["status", "--porcelain=v2", "--branch", "--untracked-files=all"],
        &["ls-files", "--stage"],
        &["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags"],
        &["stash", "list"],
        &["status"],
        &["rev-parse", "HEAD"],
    ];
    let answers = asked.iter().map(|args| git(at, args)).collect::<Vec<_>>().join("\n");
    // From the log of HEAD, which only grows.
    answers.lines().filter(|line| !line.starts_with("HEAD detached ")).collect::<Vec<_>>().join("\n")
}

/// Runs a change; kills it with its gits after `kill_after`.
fn change(at: &Path, script: &str, kill_after: Option<Duration>) {
    use std::os::unix::process::CommandExt;
    let mut shell = Command::new("bash")
        .args(["-c", script])
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_EDITOR", "true")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.org")])
        .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.org")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    if let Some(after) = kill_after {
        std::thread::sleep(after);
        let group = rustix::process::Pid::from_child(&shell);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    shell.wait().unwrap();
}

#[test]
fn the_git_state_is_restored_whatever_git_did_and_wherever_it_was_killed() {
    let random = RandomState::new();
    let mut turn = 0_u64;
    let mut roll = |sides: u64| {
        turn += 1;
        random.hash_one(turn) % sides
    };
    for round in 0..12 {
        let repo = Repo::new();
        let at = repo.place.path().join("tree");
        let made = branch_worktree::create_worktree(&repo.root, &at, "run/1", None).unwrap();
        git(&repo.root, &["commit", "--quiet", "--allow-empty", "--message", "on main"]);
        let trees = Trees::open(&at, &repo.state()).unwrap().unwrap();
        let mut done = Vec::new();
        for _ in 0..roll(6) {
            let script = CHANGES[roll(CHANGES.len() as u64) as usize];
            change(&at, script, None);
            done.push(script.to_owned());
        }
        let before = trees.snapshot().unwrap();
        let state = trees.git_state(&made.branch).unwrap().unwrap();
        let expected = seen(&at);
        // The changes of an ask that is cut off again and again.
        for _ in 0..4 {
            let started = SystemTime::now();
            for _ in 0..roll(4) {
                let script = CHANGES[roll(CHANGES.len() as u64) as usize];
                change(&at, script, None);
                done.push(format!("again: {script}"));
            }
            let script = CHANGES[roll(CHANGES.len() as u64) as usize];
            change(&at, script, Some(Duration::from_micros(roll(25_000))));
            done.push(format!("killed: {script}"));
            if cfg!(target_os = "linux") {
                clear_stale_locks(&at, started).unwrap();
            }
            assert_eq!(trees.restore(&before.tree).unwrap(), [], "{done:#?}");
            trees.restore_git_state(&made.branch, &state, before.head.as_deref()).unwrap();
            // Git was killed after it had created a branch and before it switched to it. Nothing tells whose it is.
            let log = fs::read_to_string(repo.root.join(".git/worktrees/tree/logs/HEAD")).unwrap();
            let branches = git(&repo.root, &["branch", "--format=%(refname:short)"]);
            for branch in
                branches.lines().filter(|branch| !expected.contains(&format!("refs/heads/{branch}\n")))
            {
                assert!(!log.contains(&format!(" to {branch}\n")), "{branch} is left: {done:#?}");
                git(&repo.root, &["branch", "--quiet", "-D", branch]);
            }
            assert_eq!(seen(&at), expected, "round {round}: {done:#?}");
            assert_eq!(trees.snapshot().unwrap(), before, "{done:#?}");
        }
    }
}
