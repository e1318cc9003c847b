//! Budgets that stop a run, and `cuegate.toml`.

use rustix::process::Signal;
use serde_json::json;

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::Project,
};

/// The usage of each answer of these scripts: 100 tokens, two cents.
fn used() -> serde_json::Value {
    json!({"usage": {"input_tokens": 80, "output_tokens": 20, "cost_usd": 0.02}})
}

fn four_asks() -> Project {
    let work = |intent| says_with("work", intent, used());
    small().project(json!([
        work("repeat"),
        work("repeat"),
        work("handoff"),
        says_with("close", "closing", used()),
    ]))
}

/// Runs until the limit, then resumes with the flags from the printed hint.
fn stops_and_goes_on(flags: &[&str], reason: &str) -> serde_json::Value {
    let project = four_asks();
    let ran = project.run(&[&begin(&["--json"])[..], flags].concat());
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let result = ran.json();
    assert_eq!(result["state"], "exhausted");
    assert!(result["reason"].as_str().unwrap().starts_with(reason), "{}", result["reason"]);
    assert_eq!(result["asks"]["work"], 2, "what was paid for was done: {}", ran.stderr);

    let again = project.run(&["resume", "last"]);
    assert_eq!(again.code, 5, "{}", again.stderr);
    let hint = again.stderr.split("give more: `cuegate ").nth(1).unwrap().split('`').next().unwrap();
    let words: Vec<&str> = hint.split(' ').chain(["--json"]).collect();
    let on = project.run(&words);
    assert_eq!(on.code, 0, "{words:?}: {}", on.stderr);
    let result = on.json();
    assert_eq!((&result["state"], &result["asks"]["work"]), (&json!("completed"), &json!(4)));
    assert_eq!(result["steps"].as_array().unwrap().len(), 4, "no visit is told twice");
    result
}

#[test]
fn money() {
    let flags = ["--budget-usd", "0.04", "--call-usd", "0.02"];
    let result = stops_and_goes_on(&flags, "the budget of $0.04 is used up: $0.04 were spent");
    assert_eq!(result["budget"]["usd"], 0.08);
    assert_eq!(result["spent"]["usd"], 0.08);
}

#[test]
fn tokens() {
    let flags = ["--budget-tokens", "200", "--call-tokens", "100"];
    let result = stops_and_goes_on(&flags, "the budget of 200 tokens is used up: 200 were spent");
    assert_eq!(result["budget"]["tokens"], 400);
}

#[test]
fn asks() {
    let result = stops_and_goes_on(&["--budget-calls", "2"], "the budget of 2 calls is used up");
    assert_eq!((&result["budget"]["asks"], &result["spent"]["asks"]), (&json!(4), &json!(4)));
}

#[test]
fn an_answer_over_its_share_stops_the_run_before_the_next_ask() {
    let project = four_asks();
    let ran = project.run(&begin(&["--json", "--call-usd", "0.01"]));
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let result = ran.json();
    assert_eq!(result["reason"], "a call of `work` used $0.02 of at most $0.01");
    assert_eq!(result["asks"]["work"], 1);
    assert_eq!(project.events("overspent").len(), 1);
    assert_eq!(project.events("overspent")[0]["of"], "usd");
    let hint = project.run(&["status", "last"]).stdout;
    assert!(hint.contains("cuegate resume ") && hint.contains(" --call-usd 0.04\n"), "{hint}");
    let on = project.run(&["resume", "last", "--call-usd", "0.02"]);
    assert_eq!(on.code, 0, "{}", on.stderr);
}

#[test]
fn time() {
    let slow = says_with("work", "handoff", json!({"runs": ["test -e script-go || sleep 60"]}));
    let project = small().project(json!([slow, says("close", "closing")]));
    let ran = project.run(&begin(&["--json", "--budget-minutes", "0.02"]));
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let result = ran.json();
    assert_eq!(result["state"], "exhausted");
    assert_eq!(result["reason"], "the budget of 1.2 s is used up");
    project.all_gone();
    project.write("script-go", "");
    let on = project.run(&["resume", "last", "--budget-minutes", "5", "--json"]);
    assert_eq!(on.code, 0, "{}", on.stderr);
    assert_eq!(on.json()["cut_asks"], 1, "the ask that was stopped is put again");
}

#[test]
fn an_interrupted_ask_costs_what_it_reported() {
    let slow = says_with(
        "work",
        "handoff",
        json!({"runs": ["test -e script-go || sleep 60"], "usage": {"cost_usd": 0.02}}),
    );
    let project = small().project(json!([slow, says_with("close", "closing", used())]));
    let job = project.job(&begin(&["--budget-usd", "10", "--call-usd", "4"]));
    project.at_work("sleep 60");
    job.signal(Signal::KILL);
    project.all_gone();
    project.write("script-go", "");
    let on = project.run(&["resume", "last", "--json"]);
    assert_eq!(on.code, 0, "{}", on.stderr);
    let result = on.json();
    // The scripted agent reports with its answer.
    assert_eq!((&result["spent"]["usd"], &result["spent"]["asks"]), (&json!(0.04), &json!(3)));
    assert_eq!(project.events("ask_cut").len(), 1);
}

#[test]
fn flags_override_the_limits_of_the_configuration() {
    let project = four_asks();
    project.write("cuegate.toml", "[budget]\ncalls = 1\ncall_usd = 0.05\n");
    let ran = project.run(&begin(&["--json"]));
    assert_eq!((ran.code, &ran.json()["asks"]["work"]), (5, &json!(1)), "{}", ran.stderr);
    assert!(ran.stderr.contains("; budget 1 call, $0.05 per call"), "{}", ran.stderr);
    let ran = project.run(&begin(&["--json", "--budget-calls", "9"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn an_invalid_configuration_prevents_the_run() {
    let project = four_asks();
    project.write("cuegate.toml", "[budget]\nsud = 1\n");
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("cuegate.toml:2:1: unknown field `sud`"), "{}", ran.stderr);
    assert_eq!(project.runs(), 0);
    // Nor does anything else take it for one.
    let flow = begin(&[])[1];
    for command in ["check", "price", "simulate", "show", "graph"] {
        let ran = project.run(&[command, flow]);
        let says = ran.stderr.contains("cuegate.toml:2:1: unknown field `sud`");
        assert!(ran.code == 2 && says, "{command}: {} {}", ran.code, ran.stderr);
    }
}

#[test]
fn invalid_limits_are_usage_errors() {
    let project = four_asks();
    for flags in [
        ["--budget-usd", "0"],
        ["--budget-usd", "-1"],
        ["--budget-usd", "nan"],
        ["--budget-tokens", "0"],
        ["--budget-minutes", "0"],
        ["--budget-calls", "many"],
    ] {
        let ran = project.run(&[&begin(&[])[..], &flags].concat());
        assert_eq!(ran.code, 2, "{flags:?}: {}", ran.stderr);
    }
}

#[test]
fn notify_receives_the_end_of_the_run() {
    let project = four_asks();
    project.write(
        "cuegate.toml",
        "notify = 'echo \"$CUEGATE_FLOW $CUEGATE_STATE $CUEGATE_EXIT_CODE $CUEGATE_REASON\" >> told'\n",
    );
    assert_eq!(project.run(&begin(&["--budget-calls", "1"])).code, 5);
    assert_eq!(project.run(&["resume", "last", "--budget-calls", "4"]).code, 0);
    let told = project.read("told");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "agent exhausted 5 the budget of 1 call is used up");
    assert!(lines[1].starts_with("agent completed 0 "), "{told}");
    project.write("cuegate.toml", "notify = 'exit 3'\n");
    let ran = project.run(&begin(&[]));
    assert!(
        ran.stderr.contains("note: the `notify` command of cuegate.toml failed: exit status: 3"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.code, 0, "a note changes nothing: {}", ran.stderr);
}

/// The desktop and a webhook are told as well, also of a question.
#[test]
fn the_desktop_and_a_webhook_are_told() {
    use std::io::{Read as _, Write as _};
    let project = small().project(json!([{"step": "work", "asks_user": "Which colour?"}]));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    project
        .write("cuegate.toml", &format!("[notify]\ndesktop = true\nwebhook = \"http://{address}/hook\"\n"));
    let bin = tempfile::tempdir().unwrap();
    let shown = bin.path().join("shown");
    let script = format!("#!/bin/sh\nfor word; do echo \"$word\"; done > {}\n", shown.display());
    std::fs::write(bin.path().join("notify-send"), script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.path().join("notify-send"), executable).unwrap();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut text = String::new();
        let mut buffer = [0; 4096];
        while !text.contains("\r\n\r\n") || !text.trim_end().ends_with('}') {
            let read = stream.read(&mut buffer).unwrap();
            text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        text
    });
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap());
    let ran = crate::support::Ran::of(project.command(&begin(&[])).env("PATH", path).output().unwrap());
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let request = heard.join().unwrap();
    let body = request.split("\r\n\r\n").nth(1).unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert!(request.starts_with("POST /hook "), "{request}");
    assert_eq!(
        (&body["state"], &body["reason"], &body["exit_code"]),
        (&json!("suspended"), &json!("Which colour?"), &json!(3))
    );
    let shown = std::fs::read_to_string(shown).unwrap();
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(shown, ["--app-name=Cuegate", "--urgency=critical", "--", "agent: asks you", "Which colour?"]);
}
