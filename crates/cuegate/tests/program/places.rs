//! Runs and the working trees that they work in.

use std::time::{Duration, Instant};

use cuegate_testkit::{
    offline,
    standin::{Reply, Scenario},
};
use rustix::{
    fs::{FlockOperation, flock},
    process::{Pid, Signal, kill_process},
};
use serde_json::json;

use crate::{
    agent::registry::{begin, says, says_with, small},
    agents::Set,
    support::Project,
};

/// An agent that is at work until the file `script-go` is there.
fn long() -> Project {
    let runs = json!({"runs": ["test -e script-go || sleep 60"]});
    small().project(json!([says_with("work", "handoff", runs), says("close", "closing")]))
}

/// Ends the command of the agent, which then answers.
fn wake(project: &Project) {
    let sleeper = Pid::from_raw(project.at_work("sleep 60").pid).unwrap();
    kill_process(sleeper, Signal::TERM).unwrap();
}

#[test]
fn a_second_run_in_the_same_tree_is_refused() {
    let project = long();
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    let first = project.status()["run"].as_str().unwrap().to_owned();
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("error: run {first} works in this working tree")), "{}", ran.stderr);
    assert!(ran.stderr.contains("`--worktree`") && ran.stderr.contains("`--wait`"), "{}", ran.stderr);
    assert_eq!(project.runs(), 1);
    // A tree of its own is free.
    let apart = project.job(&begin(&["--worktree"]));
    crate::support::until("the second run works", || project.runs() == 2);
    apart.signal(Signal::INT);
    apart.end();
    // One that waits starts when the first one has ended.
    let waiting = project.job(&begin(&["--wait"]));
    waiting.says(&format!("waiting for run {first}, which works in this working tree"));
    project.write("script-go", "");
    wake(&project);
    assert_eq!(job.end().code, 0);
    assert_eq!(waiting.end().code, 0);
    project.all_gone();
}

#[test]
fn a_killed_run_releases_its_tree() {
    let project = long();
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    job.signal(Signal::KILL);
    job.end();
    project.write("script-go", "");
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    project.all_gone();
}

#[test]
fn a_lock_that_outlives_a_killed_run_is_waited_for() {
    let project = long();
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    job.signal(Signal::KILL);
    job.end();
    // As a program does that it was just about to start.
    let lock = std::fs::File::open(project.path().join(".cuegate/tree.lock")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        assert!(Instant::now() < deadline);
    }
    project.write("script-go", "");
    let resumed = project.job(&["resume"]);
    std::thread::sleep(Duration::from_millis(900));
    drop(lock);
    let ran = resumed.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn changes_of_the_main_checkout_by_others_are_reported_and_do_not_stop_a_worktree_run() {
    let project = long();
    let job = project.job(&begin(&["--worktree"]));
    project.at_work("sleep 60");
    project.write("mine.txt", "a person works here meanwhile");
    wake(&project);
    let ran = job.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let changed = project.events("main_checkout_changed");
    assert!(changed[0]["paths"][0].as_str().unwrap().ends_with("/mine.txt"), "{changed:?}");
    assert_eq!(project.events("boundary_violated").len(), 0);
    assert_eq!(project.read("mine.txt"), "a person works here meanwhile");
    assert!(
        ran.stderr.contains("elsewhere   1 file: ") && ran.stderr.contains("/mine.txt"),
        "{}",
        ran.stderr
    );
    let report = project.run(&["report", "last"]).stdout;
    assert!(report.contains("## Files changed elsewhere"), "{report}");
    assert!(project.status()["main_checkout_changed"][0].as_str().unwrap().ends_with("/mine.txt"));
}

/// The agent only reads the file that a person edits.
#[test]
fn reading_a_file_that_a_person_edits_is_no_violation() {
    let runs = json!({"runs": ["cat ../../../notes.txt", "test -e script-go || sleep 60"]});
    let project = small().project(json!([says_with("work", "handoff", runs), says("close", "closing")]));
    project.write("notes.txt", "one\n");
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "notes"]);
    let job = project.job(&begin(&["--worktree"]));
    project.at_work("sleep 60");
    project.write("notes.txt", "two, longer\n");
    wake(&project);
    let ran = job.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.events("boundary_violated").len(), 0);
    assert_eq!(project.events("main_checkout_changed").len(), 1);
}

#[test]
fn every_waiting_run_gets_its_turn() {
    let project = small().project(json!([
        says_with("work", "handoff", json!({"runs": ["sleep 0.3"]})),
        says("close", "closing")
    ]));
    let jobs: Vec<_> = (0..4).map(|_| project.job(&begin(&["--wait"]))).collect();
    for job in jobs {
        let ran = job.end();
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    assert_eq!(project.runs(), 4);
}

#[test]
fn a_worktree_run_that_writes_into_the_main_checkout_is_a_violation() {
    let project = small().project(json!([])).outside();
    let file = project.path().join("made.txt");
    let writes = |text: &str| json!({"runs": [format!("echo {text} > {}", file.display())]});
    project.script(
        "script.json",
        &json!([
            says_with("work", "handoff", writes("one")),
            says_with("work", "handoff", writes("two")),
            says("close", "closing")
        ]),
    );
    let ran = project.run(&begin(&["--worktree"]));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let violations = project.events("boundary_violated");
    assert_eq!(violations.len(), 2, "it was asked again once");
    assert!(violations[0]["paths"][0].as_str().unwrap().ends_with("/made.txt"), "{violations:?}");
    let reason = project.status()["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("`work` wrote outside of its working folder"), "{reason}");
    assert_eq!(project.read("made.txt"), "two\n", "the user's files are not touched by Cuegate");
}

/// The list of tools names Write, which would approve it for any path.
#[test]
fn claude_in_a_worktree_cannot_write_into_the_main_checkout_by_a_listed_tool() {
    if !offline::inside() {
        return;
    }
    let registry = small().runner(json!({"boundaries": {
        "permissionMode": "acceptEdits", "allowedTools": ["Read", "Edit", "Write", "Bash"]}}));
    let project = registry.project(json!([])).outside();
    let (by_tool, by_shell) = (project.path().join("by-tool.txt"), project.path().join("by-shell.txt"));
    let answer = |action: &str| json!({"next_action": {"action": action}});
    let shell = format!("echo x > {}", by_shell.display());
    let scenario = Scenario::new()
        .usage(10, 0, 10)
        .reply(Reply::to("Do work").write(by_tool.to_str().unwrap(), "x").json(answer("handoff")))
        .reply(Reply::to("Do close").shell(&shell).json(answer("closing")))
        .reply(Reply::to("could not be used").json(answer("closing")));
    let set = Set::of("claude", project, scenario);
    let ran = set.run(&["run", "agent", "--provider", "claude", "--worktree", "--budget-tokens", "100000"]);
    assert!(!by_tool.exists(), "{}", ran.stderr);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(set.project.status()["tools"]["denied"][0]["tool"], "Write");
    // The shell command was approved, and its write is noticed.
    assert!(by_shell.exists());
    let violations = set.project.events("boundary_violated");
    assert!(violations[0]["paths"][0].as_str().unwrap().ends_with("/by-shell.txt"), "{violations:?}");
    set.project.all_gone();
}

#[test]
fn built_in_definitions_run_without_init() {
    let project = Project::empty();
    project.write("Makefile", "test:\n\ttrue\n");
    project.init();
    let listed = project.run(&["list"]).stdout;
    assert!(listed.contains("built in") && listed.contains("develop"), "{listed}");
    let checked = project.run(&["check", "minimal-takt", "--strict"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    project.script("script.json", &json!([{"error": "auth"}]));
    let ran = project.run(&["run", "minimal-takt", "do it", "--script", "script.json"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the built-in `minimal-takt`; `cuegate init minimal-takt`"),
        "{}",
        ran.stderr
    );
    assert!(!project.path().join(".takt").exists());
    // A definition of the project with that name is the one that counts.
    assert_eq!(project.run(&["init", "minimal-takt"]).code, 0);
    let json = project.run(&["list", "--json"]).json();
    let of = |name: &str| {
        let all = json["definitions"].as_array().unwrap().iter();
        all.filter(|one| one["name"] == name).map(|one| one["origin"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((of("minimal-takt"), of("develop")), (vec![json!("project")], vec![json!("built-in")]));
    // A folder with the name of a starter hides it only if it holds a definition.
    std::fs::create_dir(project.path().join("research")).unwrap();
    assert_eq!(project.run(&["check", "research"]).code, 0);
    let ran = project.run(&["run", "develpo", "do it", "--script", "script.json"]);
    assert!(ran.stderr.contains("did you mean `develop`?"), "{}", ran.stderr);
}
