//! `retry`: a run that failed goes on after its cause was fixed.

use serde_json::{Value, json};

use crate::agent::registry::{begin, says, says_with, small};

/// The validator fails until the file `fixed` exists.
fn fails_validation() -> crate::support::Project {
    small()
        .validator(
            "test -e fixed || { echo fixed is missing; exit 1; }",
            json!({"action": "retry", "maxAttempts": 1}),
        )
        .project(json!([
            {"step": "work", "output": {"next_action": {"action": "handoff"}}, "times": 0},
            {"step": "close", "output": {"next_action": {"action": "closing"}}, "times": 0}
        ]))
}

#[test]
fn a_failed_run_goes_on_after_its_cause_was_fixed() {
    let project = fails_validation();
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let run = project.status()["run"].as_str().unwrap().to_owned();
    let hint = format!("continue    cuegate retry {run}  after the cause was fixed");
    // What the validator printed is on screen when it fails, and at the end.
    assert!(ran.stderr.contains("          | fixed is missing\n"), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("failed      `test -e fixed || { echo fixed is missing; exit 1; }` after close #"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("\n            fixed is missing\n"), "{}", ran.stderr);
    let listed = |args: &[&str]| project.run(&[&["runs", "--json"], args].concat()).json()["runs"].clone();
    assert_eq!(listed(&["--state", "failed"]).as_array().unwrap().len(), 1);
    assert_eq!(listed(&["--state", "completed"]), json!([]));
    assert_eq!(listed(&["-n", "0"]), json!([]));
    assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
    let before = project.status();
    let resumed = project.run(&["resume", "last"]);
    assert!(resumed.stderr.contains(&format!("`cuegate retry {run}` continues it")), "{}", resumed.stderr);
    // Without a fix it fails the same way: the validator runs first, then the agent is asked to fix it.
    let again = project.run(&["retry", "--json"]);
    assert_eq!(again.code, 1);
    assert!(again.json()["asks"]["remedy"].as_u64() > before["asks"]["remedy"].as_u64(), "{}", again.stderr);
    project.write("fixed", "");
    let ran = project.run(&["retry", "last", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let after = ran.json();
    assert_eq!(after["run"], json!(run), "it is the same run");
    assert_eq!(
        (&after["asks"], &after["validated"]),
        (&again.json()["asks"], &json!(true)),
        "no agent was asked"
    );
    let done = project.run(&["retry"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("is completed"), "{}", done.stderr);
    let replayed = project.run(&["replay"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stdout);
}

#[test]
fn a_retry_enters_a_named_step_with_a_text() {
    let project = fails_validation();
    assert_eq!(project.run(&begin(&[])).code, 1);
    let typo = project.run(&["retry", "--from", "wrok"]);
    assert_eq!(typo.code, 2, "{}", typo.stderr);
    assert!(typo.stderr.contains("did you mean `work`?"), "{}", typo.stderr);
    assert_eq!(project.run(&["retry", "--say", " "]).code, 2);
    project.write("fixed", "");
    let ran = project.run(&["retry", "--from", "work", "--say", "The database runs now: {{x}}."]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let prompts = project.prompts();
    let told: Vec<bool> = prompts
        .iter()
        .map(|prompt| prompt.contains("A person adds:\nThe database runs now: {{x}}."))
        .collect();
    assert_eq!(told.iter().filter(|told| **told).count(), 1, "only the prompt of that step: {prompts:#?}");
    assert!(prompts[told.iter().position(|told| *told).unwrap()].starts_with("Do work."));
}

#[test]
fn a_retried_run_survives_a_kill() {
    let project = small()
        .validator("test -e fixed || exit 1", json!({"action": "retry", "maxAttempts": 1}))
        .project(json!([
            {"step": "work", "output": {"next_action": {"action": "handoff"}}, "times": 0},
            says("close", "closing"), says("close", "closing"),
            says_with("close", "closing", json!({"runs": ["test -e script-go || sleep 60"]})),
            says("close", "closing")
        ]));
    assert_eq!(project.run(&begin(&[])).code, 1);
    project.write("fixed", "");
    let job = project.job(&["retry", "last", "--from", "close"]);
    project.at_work("sleep 60");
    job.signal(rustix::process::Signal::KILL);
    job.end();
    project.all_gone();
    project.write("script-go", "");
    let ran = project.run(&["resume", "last"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// A retry does not forget that the validator failed: the keyword of the verdict must not complete the run.
#[test]
fn a_retry_does_not_lead_past_a_failed_validator() {
    let verdict = json!({"verdict": {"type": "detect:keyword", "config": {"verdictKeyword": "ALL DONE", "maxIterations": 20}}});
    let project = small()
        .runner(verdict)
        .validator("test -e fixed", json!({"action": "retry", "maxAttempts": 1}))
        .project(json!([
            {"step": "work", "output": {"next_action": {"action": "handoff"}}, "times": 2},
            {"step": "close", "output": {"next_action": {"action": "closing"}}, "times": 2},
            {"step": "work", "output": {"next_action": {"action": "handoff"}}, "text": "ALL DONE", "times": 0},
            {"step": "close", "output": {"next_action": {"action": "closing"}}, "times": 0}
        ]));
    assert_eq!(project.run(&begin(&[])).code, 1);
    let ran = project.run(&["retry", "--from", "work"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    project.write("fixed", "");
    let ran = project.run(&["retry", "--from", "work"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// An agent that says the same again and changes nothing ends the run, if that is wanted; for a reviewer of changing files
/// it is no repetition.
#[test]
fn a_run_without_progress_ends_where_a_setting_says_so() {
    let answer = |step: &str, action: &str, runs: &[&str]| json!({"step": step, "output": {"next_action": {"action": action}}, "runs": runs, "times": 0});
    let stuck = || json!([answer("work", "repeat", &[])]);
    let project = small().project(stuck());
    let ran = project.run(&begin(&["--max-iterations", "6"]));
    assert_eq!(ran.code, 5, "without the setting it goes on: {}", ran.stderr);
    let project = small().project(stuck());
    project.write("cuegate.toml", "[run]\nsame_answers_max = 3\n");
    let ran = project.run(&begin(&["--max-iterations", "6"]));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let status = project.status();
    assert_eq!(status["reason"], "`work` gave the same answer 3 times in a row, and no file changed");
    assert_eq!(status["iterations"], 3);
    let again = project.run(&["retry"]);
    assert_eq!(
        (again.code, &project.status()["iterations"]),
        (1, &json!(6)),
        "it is counted anew: {}",
        again.stderr
    );
    assert_eq!(project.run(&["replay"]).code, 0);

    let project = small().project(json!([answer("work", "repeat", &["echo more >> changed.txt"])]));
    project.write("cuegate.toml", "[run]\nsame_answers_max = 2\n");
    let ran = project.run(&begin(&["--max-iterations", "5"]));
    assert_eq!(ran.code, 5, "{}", ran.stderr);

    let turns: Vec<Value> = (0..8)
        .map(|turn| {
            answer("work", "repeat", &[["echo one > changed.txt", "echo two > changed.txt"][turn % 2]])
        })
        .map(|mut one| {
            one["times"] = json!(1);
            one
        })
        .collect();
    let project = small().project(json!(turns));
    project.write("cuegate.toml", "[run]\nsame_files_max = 2\n");
    let ran = project.run(&begin(&["--max-iterations", "9"]));
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("continue    cuegate resume "), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("work #3                left the files as they were after `work` #1"),
        "{}",
        ran.stderr
    );
    let status = project.status();
    let reason = "the files were the same after 2 visits, the last of `work`: the run goes in a circle";
    assert_eq!((&status["reason"], &status["iterations"]), (&json!(reason), &json!(3)));
    let again = project.run(&["resume"]);
    assert_eq!(
        (again.code, &project.status()["iterations"]),
        (5, &json!(6)),
        "counted anew: {}",
        again.stderr
    );
    assert_eq!(project.run(&["replay"]).code, 0);
    project.write("cuegate.toml", "[run]\nsame_answers_max = 1\n");
    assert_eq!(project.run(&begin(&[])).code, 2);
}
