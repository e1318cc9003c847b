//! What killed processes leave behind is removed by the next run, by resume and by doctor; work never is.

use std::{collections::BTreeSet, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::Project;

const RUN: [&str; 6] = ["run", "fixer", "Make it pass.", "--script", "script.yaml", "--worktree"];

#[test]
fn worktrees_of_runs_that_did_not_start_are_removed() {
    let project = Project::example();
    // A big tree, so that kills hit git while it checks out.
    for index in 0..1_500 {
        project.write(&format!("many/{}/{index}.txt", index % 40), &format!("file {index}\n"));
    }
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "many"]);
    let mut left = 0;
    let mut kill = 0;
    while kill < 24 || left == 0 {
        kill += 1;
        assert!(kill < 200, "no kill hit a run before its first record");
        let mut child = project.start(&RUN);
        std::thread::sleep(Duration::from_millis(30 + kill % 50 * 12));
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        child.wait().unwrap();
        left += branches(&project).len().saturating_sub(started(&project).len());
    }
    let doctor = project.run(&["doctor"]);
    assert_eq!(branches(&project), started(&project), "{}", doctor.stdout);
    let worktrees = project.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(worktrees.matches("worktree ").count(), 1 + started(&project).len(), "{worktrees}");
}

/// The runs with a branch.
fn branches(project: &Project) -> BTreeSet<String> {
    let listed = project.git(&["for-each-ref", "--format=%(refname)", "refs/heads/cuegate"]);
    listed.lines().map(|line| line.replace("refs/heads/cuegate/", "")).collect()
}

/// The runs with records.
fn started(project: &Project) -> BTreeSet<String> {
    let runs = project.run(&["runs", "--json"]).json();
    runs["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_worktree_that_somebody_worked_in_stays() {
    use cuegate_journal::{Journal, log::LogJournal};
    let project = Project::example();
    let ran = project.run(&RUN);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let names = ["bcdfbcdf", "ghjkghjk", "mnpqmnpq", "rstvrstv"];
    for name in names {
        let journal = LogJournal::open(project.path().join(".cuegate/runs"), Default::default());
        journal.unwrap().create(&name.parse().unwrap(), 1).unwrap();
        let folder = format!(".cuegate/worktrees/{name}");
        project.git(&["worktree", "add", "--quiet", "-b", &format!("cuegate/{name}"), &folder]);
    }
    project.write(".cuegate/worktrees/bcdfbcdf/work.txt", "not committed\n");
    let commit = ["commit", "--quiet", "--allow-empty", "--message", "committed"];
    project.git(&[&["-C", ".cuegate/worktrees/ghjkghjk"], &commit[..]].concat());
    // An ignored file is somebody's work as well.
    project.write(".cuegate/worktrees/rstvrstv/script.local.yaml", "mine\n");
    project.run(&["doctor"]);
    let mut expected = started(&project);
    expected.extend(["bcdfbcdf", "ghjkghjk", "rstvrstv"].map(str::to_owned));
    assert_eq!(branches(&project), expected);
    assert!(project.path().join(".cuegate/worktrees/bcdfbcdf/work.txt").exists());
}

#[test]
fn folders_of_finished_commands_are_removed() {
    let project = Project::example();
    let run = ["run", "fixer", "Make it pass.", "--script", "script.yaml"];
    assert_eq!(project.run(&run).code, 0);
    let id = started(&project).into_iter().next().unwrap();
    let folder = format!(".cuegate/runs/{id}/commands/2");
    project.write(&format!("{folder}/exit.json"), "{}");
    let doctor = project.run(&["doctor"]);
    assert!(
        doctor.stdout.contains(&format!("1 run; removed the folder `{folder}` of a finished command")),
        "{}",
        doctor.stdout
    );
    assert!(!project.path().join(&folder).exists());
    project.write(&format!("{folder}/exit.json"), "{}");
    project.git(&["checkout", "--quiet", "--", "."]);
    assert_eq!(project.run(&run).code, 0);
    assert!(!project.path().join(&folder).exists(), "the next run removes it");
}

/// What a call was told has keys of its agent in it.
#[test]
fn a_cancelled_run_leaves_no_folder_of_a_killed_call() {
    let project = Project::example();
    let nap = serde_json::json!([{ "runs": ["sleep 60"] }]);
    project.script("nap.json", &nap);
    let job = project.job(&["run", "fixer", "Make it pass.", "--script", "nap.json"]);
    project.at_work("sleep 60");
    job.signal(Signal::KILL);
    job.end();
    let id = started(&project).into_iter().next().unwrap();
    let commands = project.path().join(format!(".cuegate/runs/{id}/commands"));
    assert_ne!(std::fs::read_dir(&commands).unwrap().count(), 0);
    project.all_gone();
    let cancelled = project.run(&["cancel", "last"]);
    assert_eq!(cancelled.code, 0, "{}", cancelled.stderr);
    assert_eq!(std::fs::read_dir(&commands).unwrap().count(), 0);
}

#[test]
fn a_lost_log_is_an_error_of_every_command() {
    let project = Project::example();
    let run = ["run", "fixer", "Make it pass.", "--script", "script.yaml"];
    assert_eq!(project.run(&run).code, 0);
    let id = started(&project).into_iter().next().unwrap();
    std::fs::remove_file(project.path().join(format!(".cuegate/runs/{id}/log"))).unwrap();
    let commands: [&[&str]; 5] =
        [&["status", "last"], &["log", &id], &["resume", &id], &["cancel", &id], &["answer", &id, "yes"]];
    for command in commands {
        let ran = project.run(command);
        assert_ne!(ran.code, 0, "{command:?}");
        assert!(
            ran.stderr.contains(&format!("has lost records of run `{id}`: it holds 0 of")),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("hint: restore a copy of"), "{}", ran.stderr);
    }
    let doctor = project.run(&["doctor"]);
    assert!(doctor.stdout.contains("has lost records of run"), "{}", doctor.stdout);
    // Other runs have their own logs.
    assert_eq!(project.run(&run).code, 0);
    let runs = project.run(&["runs"]);
    assert!(runs.stdout.contains(&id) || runs.stderr.contains(&id), "{} {}", runs.stdout, runs.stderr);
}

#[test]
fn a_damaged_run_is_listed_after_the_others() {
    let project = Project::example();
    let run = ["run", "fixer", "Make it pass.", "--script", "script.yaml"];
    assert_eq!(project.run(&run).code, 0);
    let first = started(&project).into_iter().next().unwrap();
    project.git(&["checkout", "--quiet", "--", "."]);
    assert_eq!(project.run(&run).code, 0);
    project.write(&format!(".cuegate/runs/{first}/records"), "99\n");
    let listed = project.run(&["runs"]);
    assert_eq!((listed.code, listed.stdout.lines().count()), (4, 2), "{}{}", listed.stdout, listed.stderr);
    assert!(listed.stderr.contains(&format!("has lost records of run `{first}`")), "{}", listed.stderr);
    assert!(listed.stderr.contains("to go on after the"), "{}", listed.stderr);
    let json = project.run(&["runs", "--json"]).json();
    assert_eq!(json["damaged"][0]["run"], first.as_str());
    assert!(project.run(&["status", &first]).stderr.contains("has lost records"));
    let doctor = project.run(&["doctor"]);
    assert!(doctor.stdout.contains("has lost records"), "{}", doctor.stdout);
}
