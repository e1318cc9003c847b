//! `kill -9` of the whole process group at random moments of real runs, aimed at asks, validators, commits and
//! snapshots. Each resumed run must end like a run without kills: same rows, asks, files and commits, and no process
//! left.

use std::{
    collections::BTreeMap,
    process::Child,
    time::{Duration, Instant},
};

use crate::support::{Process, Project, at_work_in, kills as kills_wanted, processes};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};

/// How many kills at least, if `CUEGATE_KILLS` does not say; a sixth of them inside each kind of work.
const KILLS: usize = 40;
/// The maximum number of kills in one run.
const KILLS_OF_A_RUN: usize = 12;

/// What the program was doing when it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum During {
    Ask,
    Commit,
    Validator,
    Snapshot,
    Else,
}

const AIMS: [During; 4] = [During::Ask, During::Commit, During::Validator, During::Snapshot];

/// What a process and its descendants are doing.
fn during(pid: i32) -> During {
    let all = processes();
    let parents: BTreeMap<i32, &Process> = all.iter().map(|process| (process.pid, process)).collect();
    let above = |process: &Process| {
        let mut chain = Vec::new();
        let mut at = process.parent;
        while let Some(next) = parents.get(&at) {
            chain.push(*next);
            at = next.parent;
        }
        chain
    };
    let mut found = During::Else;
    for process in &all {
        let chain = above(process);
        if !chain.iter().any(|above| above.pid == pid) {
            continue;
        }
        let by_agent = chain.iter().any(|above| above.words.contains("__scripted"));
        let first = process.words.split(' ').next().unwrap_or_default();
        let is_git = first.rsplit('/').next() == Some("git");
        if by_agent && is_git && process.words.contains(" commit ") {
            return During::Commit;
        }
        let snapshot = ["update-index", "ls-files", "write-tree", "for-each-ref", "hash-object"];
        if process.parent == pid && is_git && snapshot.iter().any(|word| process.words.contains(word)) {
            return During::Snapshot;
        }
        if process.words.contains("__scripted") && !process.words.contains("__shim") || by_agent {
            found = During::Ask;
        } else if first.ends_with("sh") && process.words.contains("sh -c")
            || process.words.contains("test.sh")
        {
            found = During::Validator;
        }
    }
    found
}

/// The example's project, made slow enough everywhere to be hit.
fn project() -> Project {
    let project = Project::example();
    for index in 0..800 {
        project.write(&format!("many/{}/{index}.txt", index % 40), &format!("file {index}\n"));
    }
    let test = project.read("test.sh").replacen("failed=0", "sleep 0.12\nfailed=0", 1);
    project.write("test.sh", &test);
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "slow"]);
    project.write(".git/hooks/pre-commit", "#!/bin/sh\nsleep 0.1\n");
    let hook = project.path().join(".git/hooks/pre-commit");
    std::fs::set_permissions(hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script = project.read("script.yaml").replace("delay_ms: 400", "delay_ms: 120");
    project.write("script.yaml", &script);
    project
}

/// The results to compare.
fn end_of(project: &Project) -> Value {
    let status = project.status();
    let rows: Vec<Value> = status["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            json!([row["step"], row["visit"], row["outcome"], row["target"], row["asks"], row["remedy"]])
        })
        .collect();
    json!({
        "state": status["state"], "reason": status["reason"], "exit_code": status["exit_code"], "rows": rows,
        "asks": status["asks"], "tokens": status["tokens"], "cost": status["cost_usd"], "faults": status["faults"],
        "file": project.read("convert.sh"), "git": project.git(&["status", "--porcelain"]),
        "commits": project.git(&["log", "--format=%s"]),
    })
}

const RUN: [&str; 5] = ["run", "fixer", "The test fails. Make it pass.", "--script", "script.yaml"];

/// Kills the program while it does what is aimed at; `None` when it ended by itself first.
fn kill(child: &mut Child, aim: During, wait_ms: u64) -> Option<During> {
    let pid = child.id() as i32;
    let group = Pid::from_raw(pid).unwrap();
    let deadline = Instant::now() + Duration::from_secs(90);
    let mut aimed_at = None;
    loop {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        // Once it does what is aimed at, a little later: work has a beginning, a middle and an end.
        if aimed_at.is_none() && during(pid) == aim {
            aimed_at = Some(Instant::now());
        }
        if aimed_at.is_some_and(|since| since.elapsed() >= Duration::from_millis(wait_ms)) {
            break;
        }
        assert!(Instant::now() < deadline, "the program neither ends nor does anything");
        // Some phases take a millisecond; looking all the time would slow them down.
        std::thread::sleep(Duration::from_micros(200));
    }
    // Stop the process for a moment to inspect it.
    kill_process(group, Signal::STOP).ok()?;
    let hit = during(pid);
    kill_process_group(group, Signal::KILL).ok()?;
    child.wait().unwrap();
    Some(hit)
}

/// Waits until nothing works in the project's folder any more.
fn all_gone(project: &Project) {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let left = at_work_in(project.path());
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "still alive: {left:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn killed_anywhere_ends_the_same() {
    let whole = project();
    let ran = whole.run(&RUN);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let expected = end_of(&whole);
    assert_eq!(expected["state"], "completed");
    let mut hits: BTreeMap<During, usize> = BTreeMap::new();
    let (mut kills, mut runs) = (0, 0);
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    let wanted = kills_wanted(KILLS);
    let enough = |hits: &BTreeMap<During, usize>, kills: usize| {
        kills >= wanted && AIMS.iter().all(|aim| hits.get(aim).copied().unwrap_or(0) >= wanted / 6)
    };
    while !enough(&hits, kills) {
        let project = project();
        runs += 1;
        assert!(runs <= 120, "too few hits: {hits:?} in {kills} kills");
        let mut child = project.start(&RUN);
        for _ in 0..KILLS_OF_A_RUN {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let aim = *AIMS.iter().min_by_key(|aim| hits.get(*aim).copied().unwrap_or(0)).unwrap();
            let Some(hit) = kill(&mut child, aim, random % 60) else { break };
            *hits.entry(hit).or_default() += 1;
            kills += 1;
            // Every other time nobody may be left before anything new begins; else the resume comes at once, while
            // what was killed may still be ending.
            if kills.is_multiple_of(2) {
                all_gone(&project);
            }
            child = if project.run(&["runs", "--json"]).json()["runs"].as_array().unwrap().is_empty() {
                // Killed before its first record: nothing began, so nothing is resumed.
                project.start(&RUN)
            } else {
                project.start(&["resume", "last"])
            };
        }
        let ran = crate::support::Ran::of(child.wait_with_output().unwrap());
        let locked = project.path().join(".git/index.lock").exists();
        let told = format!(
            "{kills} kills, git locked {locked}: {}{}",
            ran.stderr,
            project.run(&["log", "last"]).stdout
        );
        assert_eq!(ran.code, 0, "{told}");
        assert_eq!(end_of(&project), expected, "{told}");
        let replayed = project.run(&["replay"]);
        assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
        // What a kill left in the files is no other way through the workflow.
        let same = project.run(&["replay", "--flow", RUN[1]]);
        assert!(same.code == 0 && same.stdout.contains("the same path to its end"), "{}{told}", same.stdout);
        all_gone(&project);
    }
    println!("{kills} kills in {runs} runs: {hits:?}");
}

/// How many kills of runs whose agent works with git; `CUEGATE_KILLS` sets another number.
const GIT_KILLS: usize = 40;

/// The git commands of each visit. In place a cut ask is repeated in the tree that it left, so they can be repeated.
const GIT_IN_PLACE: [&str; 4] = [
    "git log --format=%s | grep -qx one || { echo one > one.txt; git add one.txt; git commit -qm one; }",
    "git log --format=%s | grep -qx two-amended || { git log --format=%s | grep -qx two || { echo two > two.txt; \
     git add two.txt; git commit -qm two; }; git commit -q --amend -m two-amended; }",
    "echo staged > staged.txt; git add staged.txt",
    "git tag -f mark; git branch -f other HEAD~1; git update-ref refs/remotes/origin/main HEAD; git stash clear; \
     git config core.fsmonitor evil; git -c core.fsmonitor=false gc -q --prune=now",
];

/// In a worktree of the run the git state is restored first.
const GIT_IN_WORKTREE: [&str; 6] = [
    "echo one >> one.txt; git add one.txt; git commit -qm one",
    "echo two >> one.txt; git commit -qam two; git commit -q --amend -m two-amended",
    "git checkout -q -B topic HEAD~1; echo t >> t.txt; git add t.txt; git commit -qm topic; git checkout -q -",
    "git rebase -q topic",
    "echo stashed >> one.txt; git stash -q; echo staged >> staged.txt; git add staged.txt",
    "git tag -f mark; git branch -f main; git config core.fsmonitor evil; git -c core.fsmonitor=false gc -q --prune=now",
];

/// What git says at the end, without what differs from run to run.
fn git_end(project: &Project, worktree: bool) -> Value {
    let status = project.status();
    let run = status["run"].as_str().unwrap();
    let at = if worktree { format!(".cuegate/worktrees/{run}") } else { ".".to_owned() };
    let git = |args: &[&str]| project.git(&[&["-C", &at], args].concat()).replace(run, "RUN");
    let commands = project.path().join(format!(".cuegate/runs/{run}/commands"));
    let left = std::fs::read_dir(commands).map_or(0, |entries| entries.count());
    json!({
        "state": status["state"], "asks": status["asks"], "branch": git(&["branch", "--show-current"]),
        "log": git(&["log", "--format=%s %T"]), "index": git(&["ls-files", "--stage"]),
        "branches": git(&["for-each-ref", "--format=%(refname) %(tree)", "refs/heads"]),
        "status": git(&["status", "--porcelain"]), "tags": git(&["tag"]),
        "settings": git(&["config", "--local", "--list"]),
        "hooks": std::fs::read_dir(project.path().join(".git/hooks")).map_or(0, |entries| entries.count()), "stash": git(&["stash", "list", "--format=%T"]),
        "main": project.git(&["log", "--format=%s %T", "main"]), "left": left,
    })
}

#[test]
fn the_git_work_of_agents_survives_kills() {
    use crate::agent::registry::{begin, says, says_with, small};
    let wanted = kills_wanted(GIT_KILLS);
    let mut random: u64 = 0x2545_f491_4f6c_dd1d;
    let mut kills = 0;
    let bin = crate::attacks::without_bwrap();
    // In place only a mount keeps the repository as it is, and nothing is put back after a kill.
    let (partial, full) = (Some(bin.path()), crate::sandbox::stands());
    let places: &[_] =
        if full { &[(false, None), (true, None), (true, partial)] } else { &[(true, partial)] };
    for (place, (worktree, path)) in places.iter().copied().enumerate() {
        let start = |project: &Project, args: &[&str]| {
            let mut command = project.command(args);
            if let Some(path) = path {
                command.env("PATH", path);
            }
            command.spawn().unwrap()
        };
        let commands: &[&str] = if worktree { &GIT_IN_WORKTREE } else { &GIT_IN_PLACE };
        let mut answers: Vec<Value> = commands
            .iter()
            .map(|command| says_with("work", "repeat", json!({ "runs": [command] })))
            .collect();
        answers.extend([says("work", "handoff"), says("close", "closing")]);
        let args = begin(if worktree { &["--worktree"] } else { &[] });
        let project = || {
            let project = small().project(json!(answers));
            let hook = project.path().join(".git/hooks/pre-commit");
            project.write(".git/hooks/pre-commit", "#!/bin/sh\nsleep 0.05\n");
            std::fs::set_permissions(hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            project
        };
        let whole = project();
        let ran = crate::support::Ran::of(start(&whole, &args).wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let expected = git_end(&whole, worktree);
        let enough = wanted * (place + 1) / places.len();
        while kills < enough {
            let project = project();
            let mut child = start(&project, &args);
            for _ in 0..KILLS_OF_A_RUN {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                std::thread::sleep(Duration::from_millis(20 + random % 500));
                if child.try_wait().unwrap().is_some() {
                    break;
                }
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                child.wait().unwrap();
                kills += 1;
                child = if project.run(&["runs", "--json"]).json()["runs"].as_array().unwrap().is_empty() {
                    start(&project, &args)
                } else {
                    start(&project, &["resume", "last"])
                };
            }
            let ran = crate::support::Ran::of(child.wait_with_output().unwrap());
            let log = project.run(&["log", "last"]).stdout;
            // It may have ended before the last kill.
            let was_over = ran.code == 2 && ran.stderr.contains("it has ended: ");
            assert!(ran.code == 0 || was_over, "{kills} kills: {}{log}", ran.stderr);
            // A resume may find the worktree of a start before the first record still locked.
            project.run(&["doctor"]);
            assert_eq!(git_end(&project, worktree), expected, "{kills} kills: {log}");
            all_gone(&project);
        }
    }
    println!("{kills} kills");
}
