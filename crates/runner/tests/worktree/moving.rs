//! Tests of the packs by which another machine makes the files of a run.

use std::fs;
use std::path::Path;
use std::process::Command;

use cuegate_engine::{StatePack, TreeState};
use cuegate_runner::{
    StatePacker, name_state, state_of,
    worktree::{Trees, branch_worktree},
};

use crate::support::{Repo, git};

const BRANCH: &str = "run/1";

/// A worktree of a run and its snapshots.
fn begin(repo: &Repo) -> Trees {
    let at = repo.place.path().join("tree");
    branch_worktree::create_worktree(&repo.root, &at, BRANCH, None).unwrap();
    Trees::open(&at, &repo.place.path().join("state")).unwrap().unwrap()
}

fn clone_of(repo: &Repo) -> (tempfile::TempDir, Trees) {
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("clone");
    let cloned = Command::new("git").args(["clone", "--quiet"]).arg(&repo.root).arg(&to).status();
    assert!(cloned.unwrap().success());
    let trees = Trees::open(&to, &place.path().join("state")).unwrap().unwrap();
    (place, trees)
}

#[test]
fn each_state_is_made_again_elsewhere() {
    let repo = Repo::new();
    for n in 0..300 {
        let file = repo.root.join(format!("folder{}/file{n}.txt", n % 10));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("line {n}\n").repeat(200)).unwrap();
    }
    git(&repo.root, &["add", "--all"]);
    git(&repo.root, &["commit", "--quiet", "--message", "many files"]);
    git(&repo.root, &["branch", "somebody"]);
    let trees = begin(&repo);
    let (place, other) = clone_of(&repo);
    let work = trees.root().to_owned();
    let start = state_of(&trees, Some(BRANCH)).unwrap();
    let mut packer = StatePacker::new(trees.clone(), start.clone(), None);
    let changes: [&dyn Fn(&Path); 6] = [
        &|_| {},
        &|at| {
            for n in [3, 4] {
                let file = at.join(format!("folder{n}/file{n}.txt"));
                let text = fs::read_to_string(&file).unwrap().replacen("line", "changed", 1);
                fs::write(file, text).unwrap();
            }
        },
        &|at| {
            git(at, &["add", "--all"]);
            git(at, &["commit", "--quiet", "--message", "the first of the run"]);
        },
        &|at| {
            git(at, &["checkout", "--quiet", "-b", "own"]);
            fs::write(at.join("own.txt"), "own").unwrap();
            git(at, &["add", "--all"]);
            git(at, &["commit", "--quiet", "--message", "on a branch of its own"]);
            git(at, &["checkout", "--quiet", BRANCH]);
        },
        &|at| {
            fs::write(at.join("stashed.txt"), "stashed").unwrap();
            git(at, &["stash", "--include-untracked", "--quiet"]);
        },
        &|at| {
            fs::remove_dir_all(at.join("folder1")).unwrap();
            fs::write(at.join("folder1"), b"\0 a file now").unwrap();
            git(at, &["add", "folder1"]);
        },
    ];
    let mut states: Vec<TreeState> = Vec::new();
    for change in changes {
        change(&work);
        let mut state = state_of(&trees, Some(BRANCH)).unwrap();
        let packs = packer.pack(&mut state).unwrap();
        let size: usize = packs.iter().map(Vec::len).sum();
        assert!(size < 30_000, "{size} bytes");
        let commits = matches!(state.pack.as_deref(), Some(StatePack::Kept { commits: Some(_), .. }));
        assert_eq!(commits, packs.len() == 2);
        if let [_, commits] = &packs[..] {
            other.unpack_commits(commits).unwrap();
        }
        other.unpack_files(&packs[0]).unwrap();
        // The same state again is no second pack.
        let mut again = TreeState { pack: None, ..state.clone() };
        assert!(packer.pack(&mut again).unwrap().is_empty());
        assert_eq!(again, state);
        states.push(state);
    }
    for (number, state) in states.iter().enumerate() {
        let at = place.path().join(format!("made{number}"));
        let branch = format!("made/{number}");
        branch_worktree::create_empty_worktree(other.root(), &at, &branch, state.head.as_deref()).unwrap();
        let made = Trees::open(&at, &place.path().join("state")).unwrap().unwrap();
        made.fill_worktree(&state.tree).unwrap();
        assert_eq!(made.snapshot().unwrap().tree, state.tree, "state {number}");
        assert_eq!(made.snapshot().unwrap().head, state.head);
    }
    let last = states.last().unwrap();
    let at = place.path().join("last");
    branch_worktree::create_empty_worktree(other.root(), &at, BRANCH, last.head.as_deref()).unwrap();
    let made = Trees::open(&at, &place.path().join("state")).unwrap().unwrap();
    made.fill_worktree(&last.tree).unwrap();
    made.restore_git_state(BRANCH, last.git.as_deref().unwrap(), last.head.as_deref()).unwrap();
    made.restore_new_branches(name_state(&start), name_state(last)).unwrap();
    for words in
        [&["status", "--short"][..], &["stash", "list"], &["log", "--format=%H %s"], &["show", "own"]]
    {
        assert_eq!(git(&at, words), git(&work, words), "{words:?}");
    }
}

#[test]
fn what_is_too_large_is_said_and_comes_with_a_later_state() {
    let repo = Repo::new();
    git(&repo.root, &["commit", "--quiet", "--allow-empty", "--message", "begin"]);
    let trees = begin(&repo);
    let start = state_of(&trees, Some(BRANCH)).unwrap();
    let mut packer = StatePacker::new(trees.clone(), start.clone(), None).with_bytes_max(100_000);
    packer.pack(&mut start.clone()).unwrap();
    let noise: Vec<u8> = (0u32..50_000).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    fs::write(trees.root().join("large"), &noise).unwrap();
    fs::write(trees.root().join("small"), "small").unwrap();
    let mut state = state_of(&trees, Some(BRANCH)).unwrap();
    assert!(packer.pack(&mut state).unwrap().is_empty());
    assert!(matches!(state.pack.as_deref(), Some(StatePack::TooLarge { bytes }) if *bytes > 100_000));
    fs::remove_file(trees.root().join("large")).unwrap();
    let mut state = state_of(&trees, Some(BRANCH)).unwrap();
    let packs = packer.pack(&mut state).unwrap();
    let (_place, other) = clone_of(&repo);
    other.unpack_files(&packs[0]).unwrap();
    let at = other.root().join("../made");
    branch_worktree::create_empty_worktree(other.root(), &at, BRANCH, state.head.as_deref()).unwrap();
    let made = Trees::open(&at, &at.join("../state")).unwrap().unwrap();
    made.fill_worktree(&state.tree).unwrap();
    assert_eq!(fs::read_to_string(at.join("small")).unwrap(), "small");
}
