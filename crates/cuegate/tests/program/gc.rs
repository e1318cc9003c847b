//! `gc` and `doctor --records`: what is kept of past runs.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::Project;

const WORKFLOW: &str = "\
name: it
max_steps: 4
initial_step: work
steps:
  - name: work
    edit: true
    instruction: Work.
    rules:
      - { condition: Done, next: COMPLETE }
";

/// A project with runs, each of which writes a file of some hundred KiB.
fn project(runs: usize, more: &[&str]) -> (Project, Vec<String>) {
    let project = Project::empty();
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    project.write(".gitignore", "/script*.json\n");
    project.init();
    let mut ids = Vec::new();
    for number in 0..runs {
        let name = format!("file{number}.bin");
        let make = format!("head -c 300000 /dev/urandom > {name}; echo {number} >> notes.txt");
        project.write(
            "script.json",
            &json!({"answers": [{"step": "work", "output": {"outcome": "Done", "response": "Did."}, "runs": [make]}]})
                .to_string(),
        );
        let ran = project.run(&[&["run", "it", "Do it", "--script", "script.json", "--json"], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ids.push(ran.json()["run"].as_str().unwrap().to_owned());
    }
    (project, ids)
}

fn gc(project: &Project, args: &[&str]) -> Value {
    let ran = project.run(&[&["gc", "--json"], args].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.json()
}

fn removed(result: &Value) -> Vec<&str> {
    result["removed"].as_array().unwrap().iter().map(|row| row["run"].as_str().unwrap()).collect()
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => size(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}

/// Everything that works of a run whose snapshots are whole.
fn is_whole(project: &Project, run: &str) {
    for args in [&["diff", run][..], &["log", run], &["replay", run], &["diff", run, "--at", "work"]] {
        let ran = project.run(args);
        assert_eq!(ran.code, 0, "{args:?} {}", ran.stderr);
    }
}

#[test]
fn old_runs_go_with_the_snapshots_that_nobody_else_needs() {
    let (project, runs) = project(4, &[]);
    let trees = project.path().join(".cuegate/trees");
    let dry = gc(&project, &["--keep", "2", "--dry-run"]);
    assert_eq!(removed(&dry), [runs[1].as_str(), &runs[0]]);
    assert_eq!(dry["removed"][0]["no_longer"], json!(["replayed", "undone"]));
    assert_eq!(project.runs(), 4, "nothing was removed");
    let before = size(&trees);
    let done = gc(&project, &["--keep", "2"]);
    assert_eq!(removed(&done), removed(&dry));
    let (about, after) = (dry["bytes"]["after"].as_u64().unwrap(), done["bytes"]["after"].as_u64().unwrap());
    assert!(about.abs_diff(after) < 100_000, "{about} {after}");
    // The second run's file is in the snapshots of the later ones, too.
    assert!(size(&trees) <= before, "{before} {}", size(&trees));
    assert_eq!(project.runs(), 2);
    for run in &runs[2..] {
        is_whole(&project, run);
    }
    // A file that is gone is in the snapshots of the run that removed it alone.
    fs::remove_file(project.path().join("file0.bin")).unwrap();
    let again = project.run(&["run", "it", "Do it", "--script", "script.json"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    let last = project.status()["run"].as_str().unwrap().to_owned();
    is_whole(&project, &last);
    let before = size(&trees);
    assert_eq!(removed(&gc(&project, &["--keep", "1"])).len(), 2);
    assert!(size(&trees) + 250_000 < before, "{before} {}", size(&trees));
    is_whole(&project, &last);
    assert_eq!(removed(&gc(&project, &[])).len(), 0, "without a limit no run goes");
    is_whole(&project, &last);
    let next = project.run(&["run", "it", "Do it", "--script", "script.json"]);
    assert_eq!(next.code, 0, "{}", next.stderr);
    is_whole(&project, "last");
}

#[test]
fn what_is_not_taken_or_not_over_stays() {
    let (project, runs) = project(3, &["--worktree"]);
    assert_eq!(project.run(&["apply", &runs[1]]).code, 0);
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "taken"]);
    let taken =
        project.run(&["status", &runs[1], "--json"]).json()["place"]["work"].as_str().unwrap().to_owned();
    assert!(Path::new(&taken).is_dir());
    let done = project.run(&["gc", "--older-than", "1m", "--keep", "1"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains(&format!("{}  completed ", runs[1])), "{}", done.stdout);
    assert!(
        done.stderr.contains(&format!(
            "{}  stays: its worktree has changes that are not in this working tree",
            runs[0]
        )),
        "{}",
        done.stderr
    );
    assert!(!Path::new(&taken).exists());
    assert!(!project.git(&["branch"]).contains(&runs[1]));
    assert_eq!(project.runs(), 2);
    // Without its worktree, its changes can still be taken; not without the run.
    assert_eq!(project.run(&["clean", &runs[0]]).code, 0);
    let dry = gc(&project, &["--keep", "1", "--dry-run"]);
    assert_eq!(dry["removed"][0]["no_longer"], json!(["replayed", "applied"]), "{dry}");
    assert_eq!(removed(&gc(&project, &["--keep", "1"])), [&runs[0]]);
    is_whole(&project, &runs[2]);
    // A fork stands alone.
    let fork = project.run(&["fork", &runs[2], "--before", "work", "--json"]).json();
    let fork = fork["run"].as_str().unwrap();
    assert_eq!(project.run(&["clean", &runs[2]]).code, 0);
    assert_eq!(removed(&gc(&project, &["--keep", "1"])), [&runs[2]]);
    is_whole(&project, fork);
}

#[test]
fn settings_limit_the_size_and_a_waiting_run_stays() {
    let (project, runs) = project(3, &[]);
    project.write(
        "script.json",
        &json!({"answers": [{"step": "work", "asks_user": "Which?", "runs": ["head -c 300000 /dev/urandom > asked"]}]})
            .to_string(),
    );
    assert_eq!(project.run(&["run", "it", "Do it", "--script", "script.json"]).code, 3);
    let waits = project.status()["run"].as_str().unwrap().to_owned();
    project.write("cuegate.toml", "[retention]\nruns = 2\n");
    assert_eq!(removed(&gc(&project, &["--dry-run"])), [runs[1].as_str(), &runs[0]]);
    project.write("cuegate.toml", "[retention]\nsize = \"1M\"\n");
    let done = gc(&project, &[]);
    assert_eq!(removed(&done).len(), 3, "{done}");
    assert!(done["stay"][0]["why"].as_str().unwrap().starts_with("it is not over"), "{done}");
    assert_eq!(project.runs(), 1);
    let ran = project.run(&["answer", &waits, "This"]);
    assert!(ran.code == 0 || ran.stderr.contains("script"), "{}", ran.stderr);
    project.write("cuegate.toml", "[retention]\nsize = 7\n");
    let wrong = project.run(&["gc"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

#[test]
fn a_removal_that_is_killed_can_be_repeated() {
    let (project, runs) = project(6, &[]);
    for kill in 0..8_u64 {
        let child = project.start(&["gc", "--keep", "2"]);
        std::thread::sleep(std::time::Duration::from_millis(3 + kill * 23 % 60));
        let _ = rustix::process::kill_process_group(
            rustix::process::Pid::from_child(&child),
            rustix::process::Signal::KILL,
        );
        child.wait_with_output().unwrap();
        let left = project.run(&["runs", "--json"]).json();
        assert!(left["damaged"].is_null(), "{left}");
        for run in &runs[4..] {
            is_whole(&project, run);
        }
    }
    gc(&project, &["--keep", "2"]);
    assert_eq!(project.runs(), 2);
    let runs = fs::read_dir(project.path().join(".cuegate/runs")).unwrap().flatten();
    assert!(!runs.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(".removed")));
}

#[test]
fn the_journal_is_verified_and_what_can_be_read_is_saved() {
    let (project, runs) = project(2, &[]);
    let fine = project.run(&["doctor", "--records"]);
    assert_eq!(fine.code, 0, "{}", fine.stderr);
    assert!(fine.stderr.contains("are as they were written"), "{}", fine.stderr);
    let log = project.path().join(".cuegate/runs").join(&runs[0]).join("log");
    let mut bytes = fs::read(&log).unwrap();
    let last = bytes.len() - 40;
    bytes[last] ^= 1;
    fs::write(&log, bytes).unwrap();
    let broken = project.run(&["doctor", "--records", "--save", "saved"]);
    assert_eq!(broken.code, 4, "{}", broken.stderr);
    assert!(
        broken.stdout.contains(&format!("{}  ", runs[0])) && broken.stdout.contains("checksum"),
        "{}",
        broken.stdout
    );
    assert!(!broken.stdout.contains(&runs[1]), "{}", broken.stdout);
    let saved = format!("saved/{}.jsonl", runs[0]);
    let read = project.run(&["log", &saved]);
    assert_eq!(read.code, 0, "{}", read.stderr);
    assert!(read.stdout.contains("started it"), "{}", read.stdout);
    let replayed = project.run(&["replay", &saved]);
    assert!(replayed.stdout.contains("identical"), "with its texts: {} {}", replayed.stdout, replayed.stderr);
    // A damaged run is nobody's garbage.
    let kept = gc(&project, &["--keep", "1"]);
    assert_eq!(removed(&kept).len(), 0, "{kept}");
}

/// Snapshots of a run that ends while others are removed stay.
#[test]
fn a_run_beside_it_loses_nothing() {
    for more in [&[][..], &["--worktree"]] {
        let (project, _) = project(2, &[]);
        for round in 0..3 {
            let make = format!("echo {round} > more.txt; head -c 100000 /dev/urandom > other.bin");
            let answer =
                json!({"step": "work", "output": {"outcome": "Done", "response": "Did."}, "runs": [make]});
            project.write("script.json", &json!({"answers": [answer]}).to_string());
            let mut run = project.start(&[&["run", "it", "Do it", "--script", "script.json"], more].concat());
            while run.try_wait().unwrap().is_none() {
                assert_eq!(project.run(&["gc"]).code, 0);
            }
            let ran = run.wait_with_output().unwrap();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            is_whole(&project, "last");
            assert_eq!(project.run(&["doctor", "--records"]).code, 0);
        }
    }
}

#[test]
fn snapshots_that_are_gone_are_named_and_stop_nothing_else() {
    let (project, runs) = project(1, &["--worktree"]);
    fs::remove_dir_all(project.path().join(".cuegate/trees")).unwrap();
    let checked = project.run(&["doctor", "--records"]);
    assert_eq!(checked.code, 4, "{}", checked.stdout);
    assert!(checked.stdout.contains(&runs[0]) && checked.stdout.contains("missing"), "{}", checked.stdout);
    let kept = gc(&project, &["--older-than", "1m", "--keep", "1"]);
    assert_eq!(removed(&kept).len(), 0, "{kept}");
    assert!(project.run(&["clean"]).stdout.contains("its snapshots cannot be read"));
}
