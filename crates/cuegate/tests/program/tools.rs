//! What is kept of the tools that agents use.

use cuegate_testkit::{
    offline,
    standin::{Reply, Scenario},
};
use serde_json::{Value, json};

use crate::{
    agent::registry::{begin, says, says_with, small},
    agents::Set,
};

/// The calls of a run: tool, target and result.
fn calls(events: &[Value]) -> Vec<String> {
    let calls = events.iter().flat_map(|event| event["calls"].as_array().unwrap());
    calls
        .map(|call| {
            let word = |key: &str| call[key].as_str().unwrap_or_default();
            format!("{} {}: {}", word("tool"), word("target"), word("result"))
        })
        .collect()
}

#[test]
fn tool_calls_are_journaled_with_their_output() {
    let long = "yes | head -c 3000; yes | head -c 100000 >&2";
    let project = small().project(json!([
        says_with(
            "work",
            "handoff",
            json!({"writes": [{"path": "a.txt", "content": "x"}], "runs": ["echo hello", "exit 3", long]})
        ),
        says("close", "closing")
    ]));
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let events = project.events("tools_used");
    assert_eq!(
        calls(&events),
        [
            "write a.txt: ok".to_owned(),
            "run echo hello: ok".to_owned(),
            "run exit 3: failed".to_owned(),
            format!("run {long}: ok"),
        ]
    );
    assert_eq!(events[0]["calls"][1]["output"], "hello");
    assert!(events[0]["calls"][1]["duration_ms"].is_u64());
    let log = project.run(&["log", "last", "--tools"]).stdout;
    assert!(log.contains("run: failed") && log.contains(": exit 3"), "{log}");
    assert!(!project.run(&["log", "last"]).stdout.contains("exit 3"));
    let report = project.run(&["report", "last"]).stdout;
    assert!(report.contains("## Tool calls") && report.contains("echo hello"), "{report}");
    let status = project.status();
    assert_eq!(
        status["tools"],
        json!({"calls": 4, "failed": 1, "used": {"run": 3, "write": 1}, "denied": []})
    );
}

#[test]
fn a_cut_ask_keeps_the_tools_that_it_used() {
    let project = small().project(json!([
        says_with("work", "handoff", json!({"runs": ["echo first", "test -e script-go || sleep 60"]})),
        says("close", "closing")
    ]));
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    job.signal(rustix::process::Signal::KILL);
    job.end();
    project.all_gone();
    project.write("script-go", "");
    assert_eq!(project.run(&["resume", "last"]).code, 0);
    let events = project.events("tools_used");
    assert_eq!(calls(&events[..1]), ["run echo first: ok", "run test -e script-go || sleep 60: unknown"]);
}

/// A read-only step whose agent runs the tests and tries to write.
fn reads_and_tries_to_write(provider: &'static str) -> (Set, crate::support::Ran) {
    let registry = small().runner(
        json!({"boundaries": {"permissionMode": "plan", "allowedTools": ["Read", "Bash(npm test)"]}}),
    );
    let project = registry.project(json!([]));
    project.write("package.json", r#"{"scripts": {"test": "echo all is well"}}"#);
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "a package"]);
    let answer = |action: &str| json!({"next_action": {"action": action}});
    let scenario = Scenario::new()
        .usage(10, 0, 10)
        .reply(Reply::to("Do work").shell("npm test").shell("echo x > made.txt").json(answer("handoff")))
        .reply(Reply::to("Do close").json(answer("closing")));
    let set = Set::of(provider, project, scenario);
    let ran = set.run(&["run", "agent", "--provider", provider, "--budget-tokens", "100000"]);
    (set, ran)
}

#[test]
fn claude_runs_the_tests_of_a_read_only_step_and_reports_what_was_denied() {
    if !offline::inside() {
        return;
    }
    let (set, ran) = reads_and_tries_to_write("claude");
    assert_eq!(ran.code, 0, "{}\n{:?}", ran.stderr, set.standin.unmatched());
    let events = set.project.events("tools_used");
    assert_eq!(calls(&events), ["Bash npm test: ok", "Bash echo x > made.txt: denied"], "{events:#?}");
    assert!(events[0]["calls"][0]["output"].as_str().unwrap().contains("all is well"), "{events:#?}");
    assert!(ran.stderr.contains("Bash: denied: echo x > made.txt"), "{}", ran.stderr);
    assert!(ran.stderr.contains("denied      1 use: Bash echo x > made.txt"), "{}", ran.stderr);
    assert_eq!(set.project.status()["tools"]["denied"][0]["target"], "echo x > made.txt");
    set.project.all_gone();
}

#[test]
fn codex_runs_the_tests_of_a_read_only_step() {
    if !offline::inside() {
        return;
    }
    let (set, ran) = reads_and_tries_to_write("codex");
    assert_eq!(ran.code, 0, "{}\n{:?}", ran.stderr, set.standin.unmatched());
    let events = set.project.events("tools_used");
    let calls = calls(&events);
    assert!(calls[0].starts_with("command_execution") && calls[0].ends_with("npm test': ok"), "{events:#?}");
    // It does not report commands that its sandbox denies.
    assert!(!set.project.path().join("made.txt").exists());
    set.project.all_gone();
}
