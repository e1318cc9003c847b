//! The API answers what the command line prints.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use super::client::Server;
use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{Project, until},
};

fn fixed() -> Project {
    let project = Project::example();
    let ran = project.run(&["run", "fixer", "Fix it.", "--script", "script.yaml", "--budget-usd", "1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    project
}

/// A run of another machine: its page and its changes, as there.
#[test]
fn an_exported_run_is_opened_with_its_changes() {
    let project = Project::example();
    project.write("same/kept.txt", "kept\n");
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "more"]);
    let ran = project.run(&["run", "fixer", "Fix it.", "--script", "script.yaml", "--worktree"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let elsewhere = Project::empty();
    let file = elsewhere.path().join("run.jsonl").display().to_string();
    let exported = project.run(&["export", "last", &file, "--snapshots"]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    let of_visit = |from: &Project, run: &str| from.run(&["diff", run, "--at", "continuation.fix#2"]);
    let there = (project.run(&["diff"]), of_visit(&project, "last"));
    let here = (elsewhere.run(&["diff", "run.jsonl"]), of_visit(&elsewhere, "run.jsonl"));
    assert!(!there.0.stdout.is_empty() && !there.1.stdout.is_empty(), "{}", there.1.stderr);
    assert_eq!((&here.0.stdout, &here.1.stdout), (&there.0.stdout, &there.1.stdout), "{}", here.0.stderr);
    let temporary = elsewhere.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let job = crate::support::Job::of(
        elsewhere.command(&["serve", "run.jsonl"]).env("TMPDIR", &temporary).spawn().unwrap(),
    );
    let made = || {
        let entries = std::fs::read_dir(&temporary).unwrap().flatten().map(|entry| entry.path());
        entries.into_iter().find(|path| path.to_string_lossy().contains("cuegate-run-"))
    };
    let state_dir = || made().unwrap().join("run/.cuegate");
    let server = Server::of(job, state_dir);
    let (answered, printed) = (server.json("/runs/last"), project.status());
    for name in ["run", "state", "steps", "tokens", "proof", "changed_files"] {
        assert_eq!(answered[name], printed[name], "{name}");
    }
    assert_eq!(server.get("/runs/last/diff").body, there.0.stdout);
    assert_eq!(server.post("/runs/last/apply", &json!({})).status, 403);
    server.stop();
    assert_eq!(made(), None);
    assert!(!elsewhere.path().join(".cuegate").exists(), "nothing is left here");
    let none = elsewhere.run(&["serve", "script.yaml"]);
    assert!(none.code == 2 && none.stderr.contains("is no exported run"), "{}", none.stderr);
    // Without snapshots the run can be read, and its changes cannot.
    assert_eq!(project.run(&["export", "last", &file, "--force"]).code, 0);
    assert_eq!(elsewhere.run(&["report", "run.jsonl"]).code, 0);
    let bare = elsewhere.run(&["diff", "run.jsonl"]);
    assert!(bare.code == 2 && bare.stderr.contains("--snapshots"), "{}", bare.stderr);
    // A file with a secret goes nowhere.
    project.write("cuegate.toml", "");
    let script = project.read("script.yaml").replace("echo $(($1 * 9 / 5 + 32))", "echo test-token");
    project.write("script.yaml", &script);
    assert_ne!(project.run(&["run", "fixer", "Fix it.", "--script", "script.yaml"]).code, 2);
    let refused = project.run(&["export", "last", &file, "--snapshots", "--force"]);
    assert!(
        refused.code == 2 && refused.stderr.contains("convert.sh"),
        "{} {}",
        refused.code,
        refused.stderr
    );
    assert_eq!(elsewhere.run(&["status", "run.jsonl"]).code, 0, "the former file stays");
}

#[test]
fn answers_are_those_of_the_command_line() {
    let project = fixed();
    let server = Server::start(&project, &[]);
    let mut printed = project.status();
    let mut answered = server.json("/runs/last");
    // The command line compares the trees, which shows files that were changed back.
    for object in [&mut printed, &mut answered] {
        object.as_object_mut().unwrap().remove("changed_files");
    }
    assert_eq!(answered, printed);
    assert_eq!(server.json("/runs/last?steps=false")["steps"], Value::Null);
    assert_eq!(server.json("/runs"), project.run(&["runs", "--json"]).json());
    assert_eq!(server.get("/runs/last/report").body.trim(), project.run(&["report", "last"]).stdout.trim());
    assert_eq!(server.get("/runs/last/diff").body, project.run(&["diff", "last"]).stdout);
    assert_eq!(server.json("/definitions"), project.run(&["list", "--json"]).json());
    let events = server.json("/runs/last/events?full=true")["events"].as_array().unwrap().clone();
    assert_eq!(events, project.log());
    let found = server.json("/runs/last/findings");
    assert_eq!((&found["schema"], &found["errors"]), (&json!("cuegate/check/v1"), &json!(0)));
    assert!(server.get("/runs/last/graph").body.contains("data-step=\"closure.fix\""));
    assert!(!server.get("/runs/last/graph").body.contains("<style"), "the page's policy forbids it");
    // The changes of one visit.
    let spans = server.json("/runs/last/spans");
    let visits: Vec<&Value> =
        spans["spans"].as_array().unwrap().iter().filter(|span| span["kind"] == "visit").collect();
    assert_eq!(spans["visits"], visits.len());
    let path = format!("/runs/last/diff?from_seq={}&to_seq={}", visits[1]["from_seq"], visits[1]["to_seq"]);
    assert!(server.get(&path).body.contains("+echo $(($1 * 5 / 9 + 32))"));
    assert_eq!(server.get("/runs/last/diff?from_seq=0&to_seq=0").body, "");
    // A file of the definition is named by its digest.
    let source = &events[0]["sources"][0];
    let text = server.get(&format!("/runs/last/blobs/{}", source["blob"].as_str().unwrap())).body;
    assert_eq!(text, project.read(source["path"].as_str().unwrap()));
    for (path, status) in [
        ("/runs/none", 404),
        ("/runs/last/reports/none", 404),
        ("/runs/last/blobs/none", 404),
        ("/nothing", 404),
        ("/runs/last/spans?from=x", 400),
        ("/runs/last/events?from_seq=-1", 400),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
    }
    server.stop();
}

#[test]
fn a_project_without_runs_has_an_empty_list() {
    let project = Project::empty();
    project.write("a", "");
    project.init();
    let server = Server::start(&project, &[]);
    assert_eq!(server.json("/runs")["runs"], json!([]));
    assert_eq!(server.get("/runs/last").status, 404);
    assert_eq!(server.get("/runs/last/blobs/sha256-x").status, 404);
    // The first run is seen by a stream that is open already.
    let registry = small();
    registry.write(&project);
    project.script("script.json", &json!([says("work", "handoff"), says("close", "closing")]));
    let started = std::thread::scope(|scope| {
        let seen = scope.spawn(|| {
            server.events("/stream", &[], |events| {
                events.iter().any(|(_, _, object)| object["runs"][0]["state"] == "completed")
            })
        });
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(project.run(&begin(&[])).code, 0);
        seen.join().unwrap()
    });
    assert_eq!(started[0].2["runs"], json!([]));
    server.stop();
}

/// A stream has every line of the log once, also if it is interrupted; what agents do is in it while they do it.
#[test]
fn a_stream_is_the_log_and_resumes_after_the_last_event() {
    let wait = "until test -e script-go; do sleep 0.01; done";
    let registry =
        small().validator("echo checked; until test -e script-done; do sleep 0.01; done", json!({}));
    let project = registry.project(json!([
        says_with("work", "handoff", json!({"writes": [{"path": "a.txt", "content": "x"}], "runs": [wait]})),
        says("close", "closing"),
    ]));
    let job = project.job(&begin(&[]));
    until("the run has begun", || project.path().join(".cuegate/runs").exists() && project.runs() == 1);
    let server = Server::start(&project, &[]);
    let is_working = |text: &str, events: &[(String, String, Value)]| {
        events.last().is_some_and(|(name, _, object)| name == "working" && object.to_string().contains(text))
    };
    let first =
        server.events("/runs/last/stream", &[], |events| is_working("until test -e script-go", events));
    let working = &first.last().unwrap().2["working"][0];
    assert_eq!((&working["name"], &working["is_ask"]), (&json!("work"), &json!(true)));
    assert_eq!(working["activities"][0]["target"], "a.txt");
    let lines = |events: &[(String, String, Value)]| -> Vec<Value> {
        events.iter().filter(|(name, ..)| name == "log").map(|(_, _, line)| line.clone()).collect()
    };
    let mut all = lines(&first);
    project.write("script-go", "");
    let last = first.iter().rfind(|(name, ..)| name == "log").unwrap().1.clone();
    let second = server
        .events("/runs/last/stream", &[("Last-Event-ID", &last)], |events| is_working("checked", events));
    all.extend(lines(&second));
    project.write("script-done", "");
    let last = second.iter().rfind(|(name, ..)| name == "log").map_or(last, |(_, id, _)| id.clone());
    let third = server.events("/runs/last/stream", &[("Last-Event-ID", &last)], |events| {
        let ended = events.iter().any(|(_, _, object)| object["event"] == "ended");
        ended && events.last().is_some_and(|(name, _, object)| name == "state" && object["live"] == false)
    });
    all.extend(lines(&third));
    assert_eq!(job.end().code, 0);
    let log: Vec<Value> = project
        .run(&["log", "last", "--json"])
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(all, log);
    server.stop();
}

#[test]
fn runs_are_answered_cancelled_resumed_and_started() {
    let registry = small();
    let project = registry.project(json!([{"step": "work", "asks_user": "Which colour?"}]));
    assert_eq!(project.run(&begin(&[])).code, 3);
    let server = Server::start(&project, &["--allow-control"]);
    let session = server.json("/session");
    assert_eq!(session["control"], true);
    let run = server.json("/runs/last")["run"].as_str().unwrap().to_owned();
    for (body, status) in
        [(json!({"text": " "}), 400), (json!({}), 400), (json!({"text": "x", "more": 1}), 400)]
    {
        assert_eq!(server.post(&format!("/runs/{run}/answer"), &body).status, status, "{body}");
    }
    let answer = server.post(&format!("/runs/{run}/answer"), &json!({"text": "Blue, -- please"}));
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_eq!(serde_json::from_str::<Value>(&answer.body).unwrap()["run"], run.as_str());
    until("the answer is taken", || {
        project.events("person_answered").first().is_some_and(|event| event["text"] == "Blue, -- please")
    });
    // Its script is used up.
    until("it waits again", || server.json("/runs/last")["waiting"]["kind"] == "environment");
    let again = server.post(&format!("/runs/{run}/answer"), &json!({"text": "Red"}));
    assert_eq!(again.status, 409, "{}", again.body);
    assert!(again.body.contains("is not waiting for an answer"), "{}", again.body);
    assert_eq!(server.post(&format!("/runs/{run}/resume"), &json!({})).status, 202);
    until("it was resumed", || !project.events("resumed").is_empty());
    until("it waits again", || server.json("/runs/last")["state"] == "suspended");
    let cancelled = server.post(&format!("/runs/{run}/cancel"), &json!({}));
    assert_eq!(cancelled.status, 202, "{}", cancelled.body);
    assert_eq!(server.json("/runs/last")["state"], "cancelled");
    for what in ["cancel", "resume", "answer"] {
        let refused = server.post(&format!("/runs/{run}/{what}"), &json!({"text": "x"}));
        assert_eq!(refused.status, 409, "{what}: {}", refused.body);
        assert!(refused.body.contains("has ended"), "{what}: {}", refused.body);
    }
    // No option of the command line gets through.
    for (body, wanted) in [
        (json!({"definition": "none"}), 409),
        (json!({"definition": "--help"}), 409),
        (json!({"definition": "agent", "args": {"script": "evil.json"}}), 400),
        (json!({"definition": "agent", "args": {"no-sandbox": "true"}}), 400),
        (json!({"definition": "agent", "budget_usd": -1}), 409),
    ] {
        let answer = server.post("/runs", &body);
        assert_eq!(answer.status, wanted, "{body}: {}", answer.body);
    }
    assert_eq!(project.runs(), 1);
    server.stop();
}

#[test]
fn a_started_run_has_its_task_and_budget() {
    let project = Project::example();
    project.write(
        "cuegate.toml",
        "[run]\nprovider = \"claude\"\n[providers.claude]\nprogram = \"/bin/false\"\n",
    );
    let server = Server::start(&project, &["--allow-control"]);
    let body = json!({"definition": "fixer", "task": "--help\nand more", "budget_usd": 0.5});
    let answer = server.post("/runs", &body);
    // Claude is not there, which is the program's own error.
    assert_eq!(answer.status, 409, "{}", answer.body);
    assert!(answer.body.contains("claude"), "{}", answer.body);
    server.stop();
}

/// The description of the API is checked against the server by requests that a program makes up.
#[test]
fn the_api_is_as_described() {
    let tester = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/schemathesis");
    if !tester.exists() {
        eprintln!("skipped: `cargo xtask test` installs schemathesis");
        return;
    }
    let project = fixed();
    let server = Server::start(&project, &["--allow-control"]);
    let run = server.json("/runs/last")["run"].as_str().unwrap().to_owned();
    // Numbers and names that exist are tried as well.
    project.write(
        "hooks.py",
        &format!("import schemathesis\n\n@schemathesis.hook\ndef map_path_parameters(context, parameters):\n    if parameters and 'run' in parameters and hash(str(parameters['run'])) % 2:\n        parameters['run'] = '{run}'\n    return parameters\n"),
    );
    let ran = Command::new(&tester)
        .args(["run", &format!("http://{}/api/v1/openapi.json", server.host())])
        .args(["--header", &format!("Authorization: Bearer {}", server.bearer)])
        .args(["--max-examples", "25", "--request-timeout", "10", "--generation-deterministic", "--no-color"])
        .args(["--exclude-path-regex", "stream"])
        .args(["--checks", "all", "--exclude-checks", "positive_data_acceptance"])
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", project.path())
        .current_dir(project.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    server.stop();
}
