//! What a person does beside a run is kept: in the working tree, in the worktree of an interrupted run, and when the run is
//! undone.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::Project,
};

/// A project whose agent does this and hands off.
fn doing(runs: &[&str]) -> Project {
    let project = small()
        .project(json!([says_with("work", "handoff", json!({"runs": runs})), says("close", "closing")]));
    project.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    project.write("old.txt", "moved\nmoved\nmoved\n");
    project.git(&["add", "a.txt", "old.txt"]);
    project.git(&["commit", "--quiet", "--message", "files"]);
    project
}

#[test]
fn undo_takes_back_what_the_run_did_and_keeps_edits_of_others() {
    let project = doing(&["sed -i s/9/nine/ a.txt; git mv old.txt new.txt; echo n > made.txt"]);
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("\nundo        cuegate undo "), "{}", ran.stderr);
    // A person goes on in the same file, and stages something else.
    let text = project.read("a.txt");
    project.write("a.txt", &text.replace("1\n", "one\n"));
    project.write("staged.txt", "staged\n");
    project.git(&["add", "staged.txt"]);
    let dry = project.run(&["undo", "--dry-run", "--json"]);
    assert_eq!(dry.json()["files"], json!(["a.txt", "made.txt", "new.txt", "old.txt"]), "{}", dry.stderr);
    let ran = project.run(&["undo"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.read("a.txt"), "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    assert_eq!(project.git(&["status", "--porcelain"]), " M a.txt\nA  staged.txt\n");
    let again = project.run(&["undo"]);
    assert!(again.code == 0 && again.stderr.contains("nothing to undo"), "{}", again.stderr);
}

#[test]
fn undo_refuses_where_a_person_edited_the_same_lines() {
    let project = doing(&["sed -i s/5/five/ a.txt; echo n > made.txt"]);
    assert_eq!(project.run(&begin(&[])).code, 0);
    let text = project.read("a.txt");
    project.write("a.txt", &text.replace("five", "FIVE"));
    let ran = project.run(&["undo"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("files were edited since run") && ran.stderr.contains("`a.txt`"),
        "{}",
        ran.stderr
    );
    assert!(project.read("a.txt").contains("FIVE") && project.path().join("made.txt").exists());
}

#[test]
fn undo_takes_commits_back_and_leaves_what_may_be_the_persons() {
    let project = doing(&[
        "echo two > b.txt; git add b.txt; git commit --quiet --message agent; test -e script-go || sleep 60",
    ]);
    let job = project.job(&begin(&[]));
    let sleep = project.at_work("sleep 60");
    project.write("mine.txt", "mine\n");
    rustix::process::kill_process(rustix::process::Pid::from_raw(sleep.pid).unwrap(), Signal::KILL).unwrap();
    let ran = job.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let before = project.git(&["rev-parse", "HEAD~1"]);
    let ran = project.run(&["undo"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("left    perhaps changed by you: mine.txt"), "{}", ran.stderr);
    assert_eq!(project.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(project.git(&["status", "--porcelain"]), "?? mine.txt\n");
    assert_eq!(project.run(&["undo", "--all"]).code, 0);
    assert!(!project.path().join("mine.txt").exists());
}

#[test]
fn what_a_person_did_in_an_interrupted_worktree_stays() {
    for signal in [Signal::INT, Signal::KILL] {
        let project = doing(&["echo half > half.txt; test -e go || sleep 60"]);
        let job = project.job(&begin(&["--worktree"]));
        project.at_work("sleep 60");
        job.signal(signal);
        job.end();
        project.all_gone();
        let work = project.status()["place"]["work"].as_str().unwrap().to_owned();
        fs::write(format!("{work}/mine.txt"), "mine\n").unwrap();
        fs::write(format!("{work}/go"), "").unwrap();
        let ran = project.run(&["resume"]);
        assert_eq!(ran.code, 0, "{signal:?} {}", ran.stderr);
        assert_eq!(fs::read_to_string(format!("{work}/mine.txt")).unwrap(), "mine\n", "{signal:?}");
        let kept = "changed in the worktree since the interruption, and kept as a part of the work: `go`, `mine.txt`";
        assert!(ran.stderr.contains(kept), "{signal:?} {}", ran.stderr);
        // What the call had begun is put away, and can be brought back.
        let line = ran.stderr.lines().find(|line| line.contains("put away: `half.txt`")).unwrap_or_default();
        let source = line.split("--source ").nth(1).unwrap_or_default().split(' ').next().unwrap();
        assert_eq!(
            project.git(&["show", &format!("{source}:half.txt")]),
            "half\n",
            "{signal:?} {}",
            ran.stderr
        );
    }
}

#[test]
fn a_run_whose_records_are_deleted_ends_with_that_reason() {
    for (how, said) in [
        ("rm -f \"$TOP\"/.cuegate/runs/*/log", "was deleted"),
        ("rm -rf \"$TOP\"/.cuegate", "was deleted"),
        ("git clean -fdxq", "was deleted"),
    ] {
        let project = doing(&["echo"]).outside();
        let runs = how.replace("\"$TOP\"", project.path().to_str().unwrap());
        project.script(
            "script.json",
            &json!([says_with("work", "handoff", json!({"runs": [runs]})), says("close", "closing")]),
        );
        let ran = project.run(&begin(&[]));
        assert_eq!(ran.code, 4, "{how}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(said) && ran.stderr.contains("`git clean -x` deletes"),
            "{how}: {}",
            ran.stderr
        );
    }
}

#[test]
fn endless_files_are_refused() {
    let project = doing(&["true"]);
    let script = project.run(&["run", "agent", "--script", "/dev/zero"]);
    assert!(script.code == 2 && script.stderr.contains("it has more than 64 MiB"), "{}", script.stderr);
    let input = project.run(&begin(&["--input", "/dev/zero"]));
    assert!(input.code == 2 && input.stderr.contains("it has more than 64 MiB"), "{}", input.stderr);
}
