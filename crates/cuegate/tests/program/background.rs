//! `run --detach`, `attach` and `prompt`.

use serde_json::json;

use crate::agent::registry::{begin, says, says_with, small};

#[test]
fn a_detached_run_goes_on_and_can_be_followed() {
    let project = small().project(json!([
        says_with("work", "handoff", json!({"runs": ["test -e script-go || sleep 60"]})),
        says("close", "closing")
    ]));
    let ran = project.run(&begin(&["--detach"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let run = ran.stdout.trim().to_owned();
    assert!(ran.stderr.contains(&format!("cuegate attach {run}")), "{}", ran.stderr);
    project.at_work("sleep 60");
    assert_eq!(project.status()["state"], "running");
    let retried = project.run(&["retry", &run]);
    assert!(retried.stderr.contains("is running"), "{}", retried.stderr);
    let following = project.job(&["attach"]);
    let cancelled = project.run(&["cancel", &run]);
    assert_eq!(cancelled.code, 0, "{}", cancelled.stderr);
    let end = following.end();
    assert_eq!(end.code, 1, "{}", end.stderr);
    assert!(end.stderr.contains("Ctrl-C detaches; the run goes on"), "{}", end.stderr);
    assert!(end.stderr.contains("cancelled\n"), "{}", end.stderr);
    project.all_gone();
    let output = project.read(&format!(".cuegate/output/{run}.log"));
    assert!(output.contains("started"), "{output}");
}

#[test]
fn a_run_that_cannot_start_in_the_background_says_why() {
    let project = small().project(json!([]));
    let ran = project.run(&["run", "agent", "  ", "--script", "script.json", "--detach"]);
    assert_eq!((ran.code, &*ran.stdout), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: the task is empty\nhint: "), "{}", ran.stderr);
    assert_eq!(project.run(&["runs", "--json"]).json()["runs"], json!([]));
}

#[test]
fn a_prompt_is_shown_before_a_run() {
    let project = small().project(json!([]));
    let first = project.run(&["prompt", "agent", "--task", "Mend the {roof}."]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(first.stdout.contains("Do work."), "{}", first.stdout);
    let close = project.run(&["prompt", "agent", "close", "--json"]).json();
    assert_eq!((&close["schema"], &close["step"]), (&json!("cuegate/prompt/v1"), &json!("close")));
    let typo = project.run(&["prompt", "agent", "clsoe"]);
    assert_eq!(typo.code, 2);
    assert!(typo.stderr.contains("did you mean `close`?"), "{}", typo.stderr);
}

/// A run in a worktree, one that follows it there, and its changes brought home together.
#[test]
fn a_follow_up_run_works_in_the_same_worktree_with_the_report_of_the_first() {
    let works = |path: &str| {
        json!([
            says_with("work", "handoff", json!({"writes": [{"path": path, "content": "x\n"}]})),
            says_with("close", "closing", json!({"text": "The roof is tight."}))
        ])
    };
    let project = small().project(works("first.txt"));
    let ran = project.run(&begin(&["--worktree"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let first = project.status();
    let run = first["run"].as_str().unwrap().to_owned();
    project.script("second.json", &works("second.txt"));
    let empty = project.run(&["instruct", &run]);
    assert_eq!(empty.code, 2);
    assert!(empty.stderr.contains("nothing to do was given"), "{}", empty.stderr);
    let ran = project.run(&["instruct", "Paint it ``` blue.", "--script", "second.json", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let second = ran.json();
    assert_ne!(second["run"], first["run"]);
    assert_eq!(second["place"], first["place"], "the same worktree and branch");
    let task = second["task"].as_str().unwrap();
    for told in ["Paint it ``` blue.\n\nThis continues", &run, "The roof is tight."] {
        assert!(task.contains(told), "{told}: {task}");
    }
    assert_eq!(second["steps"][0]["changed_files"], json!(["second.txt"]));
    // The first run cannot be continued any more: it would put the worktree back.
    let again = project.run(&["instruct", &run, "Again"]);
    assert_eq!(again.code, 2);
    let newest = second["run"].as_str().unwrap();
    assert!(again.stderr.contains(&format!("run {newest} already continued")), "{}", again.stderr);
    let applied = project.run(&["apply", newest]);
    assert_eq!((applied.code, &*applied.stdout), (0, "first.txt\nsecond.txt\n"), "{}", applied.stderr);
}

#[test]
fn a_run_that_failed_is_not_retried_behind_a_follow_up() {
    let project = small().project(json!([says("work", "abort")]));
    assert_eq!(project.run(&begin(&["--worktree"])).code, 1);
    let run = project.status()["run"].as_str().unwrap().to_owned();
    let ran = project.run(&["instruct", "Try another way", "--script", "script.json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let retried = project.run(&["retry", &run]);
    assert_eq!(retried.code, 2, "{}", retried.stderr);
    assert!(retried.stderr.contains("continued the work of run"), "{}", retried.stderr);
    assert_eq!(project.run(&["retry", "last", "--script", "script.json"]).code, 1, "the newest one is");
}
