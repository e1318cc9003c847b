//! Random trees with random edits of agents, in worktrees that are merged and cleaned up, with `kill -9` at any moment:
//! every byte is found again.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::Project,
};

/// How many trees, if `CUEGATE_TREES` does not say.
const TREES: u64 = 6;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        // The constants of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn name(&mut self) -> String {
        const FOLDERS: [&str; 6] = ["", "src/", "dir one/", "déjà/vu/", "深い/階層/", "-dash/"];
        const FILES: [&str; 7] = ["a.txt", "b c.md", "ünï.rs", "quo'te", "-x", "資料.txt", "back\\slash"];
        let folder = FOLDERS[self.below(6) as usize];
        format!("./{folder}{}", FILES[self.below(7) as usize])
    }

    /// A shell command that changes the tree. It has the same result if it is repeated from the same state of what git
    /// does not ignore.
    fn edit(&mut self, n: u64) -> String {
        let quote = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let name = self.name();
        let (folder, _) = name.rsplit_once('/').unwrap();
        // A link or a file may be in the way of a folder.
        let make = format!("mkdir -p {0} 2>/dev/null || {{ rm -rf {0}; mkdir -p {0}; }}", quote(folder));
        let (at, number) = (quote(&name), self.below(1000));
        match self.below(10) {
            0..3 => format!("{make}; rm -rf {at}; printf '%s\\n' line {number} {n} > {at}"),
            3 => format!(
                "{make}; rm -rf {at}; head -c {} /dev/zero | tr '\\0' '\\{}' > {at}",
                number * 40,
                100 + number % 77
            ),
            4 => format!("[ ! -f {at} ] || echo more {number} >> {at}"),
            5 => format!("rm -rf {at}"),
            6 => format!("{make}; rm -rf {at}; ln -s {} {at}", quote(&self.name())),
            7 => format!("[ ! -f {at} ] || chmod +x {at}"),
            8 => format!("mkdir -p out; echo ignored {number} > out/{n}.bin; echo x > {n}.log"),
            _ => format!("git add --all; git commit --quiet --allow-empty -m {number}"),
        }
    }
}

fn git(at: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The ignored files with the digests of their contents.
fn ignored(at: &Path) -> Vec<String> {
    let listed = git(at, &["ls-files", "-z", "--others", "--ignored", "--exclude-standard"]);
    let of = |path: &str| format!("{} {path}", git(at, &["hash-object", "--no-filters", "--", path]).trim());
    let mut all: Vec<String> = listed.split('\0').filter(|path| !path.is_empty()).map(of).collect();
    all.sort();
    all
}

#[test]
fn kills_lose_no_byte_of_random_trees() {
    let trees = std::env::var("CUEGATE_TREES").ok().and_then(|trees| trees.parse().ok()).unwrap_or(TREES);
    let kills: usize = (0..trees).map(one_tree).sum();
    assert!(trees < 6 || kills > 0, "no kill hits anything");
}

/// Returns how many kills there were.
fn one_tree(seed: u64) -> usize {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
    let mut edits = Vec::new();
    let mut answers: Vec<Value> = Vec::new();
    for answer in 0..3u64 {
        let own: Vec<String> = (0..4 + random.below(8)).map(|n| random.edit(answer * 100 + n)).collect();
        edits.extend(own.clone());
        let intent = if answer == 2 { "handoff" } else { "repeat" };
        answers.push(says_with("work", intent, json!({"runs": own})));
    }
    answers.push(says("close", "closing"));
    let project = small().project(Value::Array(answers));
    project.write(".gitignore", "/out/\n*.log\nscript.json\n.cuegate/\n");
    for n in 0..random.below(25) {
        let edit = random.edit(1000 + n);
        if !edit.contains("git ") && !edit.contains("ignored") {
            assert!(
                Command::new("sh")
                    .args(["-c", &edit])
                    .current_dir(project.path())
                    .status()
                    .unwrap()
                    .success()
            );
        }
    }
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "tree"]);
    // What an agent that is not disturbed makes of it.
    let copy = tempfile::tempdir().unwrap();
    git(copy.path(), &["clone", "--quiet", "--no-local", project.path().to_str().unwrap(), "."]);
    git(copy.path(), &["config", "user.name", "a"]);
    git(copy.path(), &["config", "user.email", "a@b"]);
    for edit in &edits {
        Command::new("sh").args(["-c", edit]).current_dir(copy.path()).output().unwrap();
    }
    git(copy.path(), &["add", "--all"]);
    let (tree, kept) = (git(copy.path(), &["write-tree"]), ignored(copy.path()));

    let mut kills = 0;
    kills += until_done(&project, &mut random, &begin(&["--worktree", "--merge"]), &["resume"], 3);
    assert_eq!(project.git(&["rev-parse", "main^{tree}"]), tree, "tree {seed}");
    assert_eq!(project.git(&["status", "--porcelain", "--untracked-files=no"]), "");
    let status = project.status();
    let (run, work) = (status["run"].as_str().unwrap(), status["place"]["work"].as_str().unwrap());
    assert_eq!(ignored(Path::new(work)), kept, "tree {seed}");
    kills += until_done(&project, &mut random, &["clean", "--merged"], &["clean", "--merged"], 2);
    assert!(!Path::new(work).exists(), "tree {seed}");
    // A kill before the first record leaves a worktree that the next command removes.
    project.run(&["doctor"]);
    let left = fs::read_dir(Path::new(work).parent().unwrap()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "tree {seed}: {left:?} and {}", project.git(&["worktree", "list"]));
    assert_eq!(project.git(&["branch", "--list", "cuegate/*"]), "");
    let found = match kept.is_empty() {
        true => String::new(),
        false => project.git(&[
            "ls-tree",
            "-r",
            "--format=%(objectname) %(path)",
            &format!("refs/cuegate/{run}-ignored"),
        ]),
    };
    let mut found: Vec<&str> = found.lines().collect();
    found.sort_unstable();
    assert_eq!(found, kept, "tree {seed}");
    project.git(&["fsck", "--strict"]);
    kills
}

/// Runs `first`, then `again`, until one of them is not killed. Returns how many were.
fn until_done(
    project: &Project,
    random: &mut Random,
    first: &[&str],
    again: &[&str],
    kills_max: usize,
) -> usize {
    let mut kills = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let has_begun = kills > 0 && (first[0] != "run" || project.runs() > 0);
        let mut child = project.start(if has_begun { again } else { first });
        let killed = Instant::now()
            + Duration::from_millis(10 + random.below(if first[0] == "run" { 700 } else { 60 }));
        let ended = loop {
            match child.try_wait().unwrap() {
                Some(status) => break Some(status),
                None if Instant::now() >= killed && kills < kills_max => break None,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        if let Some(status) = ended {
            let stderr = crate::support::Ran::of(child.wait_with_output().unwrap()).stderr;
            // The kill before hit a run whose last record was written.
            let has_ended = has_begun && status.code() == Some(2) && stderr.contains("it has ended");
            assert!(status.code() == Some(0) || has_ended, "{status}: {stderr}");
            return kills;
        }
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        child.wait().unwrap();
        kills += 1;
        assert!(Instant::now() < deadline, "{}", project.run(&["log"]).stdout);
    }
}
