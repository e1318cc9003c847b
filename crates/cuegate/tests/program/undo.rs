//! The printed undo command reverts what the agent did and nothing of the user.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{Project, Ran},
};

/// A run whose first call writes a file and then waits; the second one commits nothing.
fn project() -> Project {
    let writes = json!({
        "writes": [{"path": "agent.txt", "content": "x\n"}], "runs": ["test -e script-go || sleep 60"]
    });
    small().project(json!([says_with("work", "handoff", writes), says("close", "closing")]))
}

/// Starts a run, ends its process while the agent works, changes things as a user, and resumes.
fn ended_by(signal: Signal) -> (Project, Ran) {
    let project = project();
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    job.signal(signal);
    job.end();
    project.all_gone();
    project.write("mine.txt", "mine\n");
    project.git(&["add", "mine.txt"]);
    project.git(&["commit", "--quiet", "--message", "mine"]);
    project.write("draft.txt", "draft\n");
    project.write("script-go", "");
    let ran = project.run(&["resume"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (project, ran)
}

/// Runs the printed command in a folder of the project.
fn undo(project: &Project, ran: &Ran, folder: &str) {
    let undo = ran.stderr.lines().find_map(|line| line.strip_prefix("undo ")).unwrap_or_default().trim();
    assert!(!undo.is_empty(), "{}", ran.stderr);
    let path = format!(
        "{}:{}",
        env!("CARGO_BIN_EXE_cuegate").trim_end_matches("/cuegate"),
        std::env::var("PATH").unwrap()
    );
    let done = Command::new("sh")
        .args(["-c", undo])
        .current_dir(project.path().join(folder))
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(done.status.success(), "{undo}: {done:?}");
}

#[test]
fn what_a_user_did_while_no_process_drove_the_run_is_not_undone() {
    for signal in [Signal::KILL, Signal::INT] {
        let (project, ran) = ended_by(signal);
        assert!(ran.stderr.contains("\nchanged     1 file: agent.txt +1\n"), "{signal:?}: {}", ran.stderr);
        if signal == Signal::KILL {
            assert!(ran.stderr.contains("\nmeanwhile   2 files: draft.txt, mine.txt\n"), "{}", ran.stderr);
        }
        undo(&project, &ran, ".");
        assert!(!project.path().join("agent.txt").exists(), "{signal:?}");
        assert_eq!(
            (project.read("mine.txt"), project.read("draft.txt")),
            ("mine\n".into(), "draft\n".into())
        );
        assert_eq!(project.git(&["log", "-1", "--format=%s"]), "mine\n", "{signal:?}");
    }
}

#[test]
fn a_file_that_a_user_changed_during_a_call_is_pointed_out() {
    let project = project();
    let job = project.job(&begin(&[]));
    let sleep = project.at_work("sleep 60");
    project.write("draft.txt", "draft\n");
    kill_process(Pid::from_raw(sleep.pid).unwrap(), Signal::KILL).unwrap();
    let ran = job.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let note = "named in no tool call, so perhaps changed by you: 1 file: draft.txt\n";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
}

#[test]
fn undo_works_in_a_folder_below_the_top() {
    let project = small().project(json!([
        says_with(
            "work",
            "handoff",
            json!({"writes": [
            {"path": "top.txt", "content": "x\n"}, {"path": "sub dir/below.txt", "content": "x\n"}]})
        ),
        says("close", "closing")
    ]));
    project.write("sub dir/kept.txt", "");
    let script = project.path().join("script.json");
    let mut command = project.command(&["run", "agent", "x", "--script", script.to_str().unwrap()]);
    let ran = Ran::of(command.current_dir(project.path().join("sub dir")).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    undo(&project, &ran, "sub dir");
    assert!(!project.path().join("top.txt").exists() && !project.path().join("sub dir/below.txt").exists());
}

#[test]
fn a_new_run_names_the_one_that_is_not_over() {
    let project = project();
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    job.signal(Signal::KILL);
    job.end();
    project.all_gone();
    let cancelled = project.status();
    let run = cancelled["run"].as_str().unwrap();
    assert_eq!(cancelled["unknown_asks"], 1, "a call was cut off");
    project.write("script-go", "");
    let ran = project.run(&begin(&[]));
    let note = format!("note: run {run} in this working tree is not over (running, but its process died)");
    assert!(ran.stderr.contains(&note), "{}", ran.stderr);
}
