//! Runs completed by a verdict: agents, files, services and handlers.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    agent::registry::{Registry, says, says_with, small},
    support::{Project, Ran, rows},
};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// The small agent with a verdict.
fn agent(kind: &str, config: Value) -> Registry {
    small()
        .runner(json!({"verdict": {"type": kind, "config": null}}))
        .runner(json!({"verdict": {"config": config}}))
}

/// The same, with a parameter.
fn agent_of(param: &str, kind: &str, config: Value) -> Registry {
    let flag = format!("--{param}");
    let declared = json!({"type": "string", "description": "Which", "required": true, "cli": flag});
    agent(kind, config).agent(json!({"parameters": {param: declared}}))
}

/// Polls resources after every visit.
fn eager(project: &Project) {
    project.write("cuegate.toml", "[verdict]\npoll_interval = \"1ms\"\n");
}

fn ended(ran: &Ran, code: i32) -> (String, Value) {
    assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
    let result = ran.json();
    (format!("{}: {}", result["state"].as_str().unwrap(), result["reason"].as_str().unwrap()), result)
}

/// How often a step repeats.
fn repeats(times: u32) -> Value {
    says_with("work", "repeat", json!({ "times": times }))
}

#[test]
fn counts_and_detections() {
    for (kind, config, answers, reason) in [
        ("count:iteration", json!({"maxIterations": 2}), json!([repeats(2)]), "2 iterations done"),
        (
            "detect:keyword",
            json!({"verdictKeyword": "ALL DONE"}),
            json!([says("work", "repeat"), {"step": "work",
                "text": "ALL DONE\n```json\n{\"next_action\": {\"action\": \"repeat\"}}\n```"}]),
            "`work` said `ALL DONE`",
        ),
        (
            "detect:structured",
            json!({"signalType": "ready", "requiredFields": {"score": 3}}),
            json!([{"step": "work", "text": "```json\n{\"next_action\": {\"action\": \"repeat\"}}\n```\n\
                ```json\n{\"action\": \"ready\", \"score\": 3}\n```"}]),
            "`work` gave the signal `ready`",
        ),
        (
            "detect:structured",
            json!({"signalType": "ready", "requiredFields": ["score"]}),
            json!([{"step": "work", "text": "```json\n{\"next_action\": {\"action\": \"repeat\"}}\n```\n\
                ```ready\n{\"score\": 0}\n```"}]),
            "`work` gave the signal `ready`",
        ),
        (
            "meta:composite",
            json!({"operator": "first", "conditions": [
                {"type": "detect:keyword", "config": {"verdictKeyword": "never said"}},
                {"type": "count:iteration", "config": {"maxIterations": 2}}]}),
            json!([repeats(2)]),
            "2 iterations done",
        ),
    ] {
        let project = agent(kind, config).project(answers);
        let (end, result) = ended(&project.go(&["--json"]), 0);
        assert_eq!(end, format!("completed: {reason}"));
        assert_eq!(result["steps"].as_array().unwrap().last().unwrap()["target"], "@completed");
    }
}

#[test]
fn check_counts_are_in_the_prompt() {
    let registry = Registry::new()
        .step("work", "work", json!({"handoff": {"target": "close"}}))
        .step("close", "closure", json!({"closing": {"target": null}, "repeat": {"target": "close"}}))
        .prompt("close", "Check {uv-check_count} of {uv-max_checks}.\n")
        .runner(json!({"verdict": {"type": "count:check", "config": null}}))
        .runner(json!({"verdict": {"config": {"maxChecks": 2}}}));
    let project =
        registry.project(json!([says("work", "handoff"), says_with("close", "repeat", json!({"times": 2}))]));
    let (end, _) = ended(&project.go(&["--json"]), 0);
    assert_eq!(end, "completed: 2 checks done");
    assert_eq!(project.prompts()[1..], ["Check 0 of 2.\n", "Check 1 of 2.\n"]);
}

#[test]
fn a_limit_stops_a_run_that_never_completes() {
    for (config, max) in
        [(json!({"verdictKeyword": "DONE", "maxIterations": 2}), 2), (json!({"verdictKeyword": "DONE"}), 20)]
    {
        let project = agent("detect:keyword", config).project(json!([repeats(max)]));
        let (end, _) = ended(&project.go(&["--json"]), 5);
        assert_eq!(end, format!("exhausted: the limit of {max} iterations is reached"));
    }
}

#[test]
fn a_file_that_the_agent_writes_completes_the_run() {
    let registry = agent_of(
        "file",
        "poll:state",
        json!({"resourceType": "file", "targetState": {"contains": "ready"}, "maxIterations": 9}),
    );
    let written =
        |text: &str| says_with("work", "repeat", json!({"writes": [{"path": "out/state", "content": text}]}));
    let project =
        registry.project(json!([says("work", "repeat"), written("not yet"), written("it is ready")]));
    eager(&project);
    let ran = project.go(&["--file", "out/state", "--json"]);
    let (end, result) = ended(&ran, 0);
    assert_eq!(end, "completed: `out/state` contains `ready`");
    assert_snapshot!(rows(&result), @r"
    work: repeat → work
    work: repeat → work
    work: repeat → @completed
    ");
    let looks: Vec<Value> =
        project.events("probed").iter().map(|look| json!([look["holds"], look["said"]])).collect();
    assert_eq!(
        json!(looks),
        json!([
            [false, "`out/state` does not exist"],
            [false, "`out/state` does not contain `ready`"],
            [true, "`out/state` contains `ready`"]
        ])
    );
    let told = project.run(&["log", "last"]).stdout;
    assert!(told.contains("completion check: not done") && told.contains("completion check: done"), "{told}");
    let shown = project.run(&["show", "agent"]).stdout;
    assert!(shown.contains("when the file in `file` contains `ready`"), "{shown}");
    assert_eq!(project.run(&["show", "agent", "--json"]).json()["verdict"]["when"]["poll"], "file");
}

/// With the default interval, short visits are not followed by a poll each, and the run does not wait.
#[test]
fn resources_are_polled_once_per_interval() {
    let registry = agent_of("file", "poll:state", json!({"resourceType": "file"}));
    let project = registry.project(json!([repeats(2), says("work", "handoff"), says("close", "closing")]));
    let (end, _) = ended(&project.go(&["--file", "out/state", "--json"]), 0);
    assert_eq!(end, "completed: `close` completed the workflow");
    assert_eq!(project.events("probed").len(), 1);
}

#[test]
fn a_path_outside_the_project_is_never_polled() {
    let registry = agent_of("file", "poll:state", json!({"resourceType": "file", "maxIterations": 1}));
    let project = registry.project(json!([says("work", "repeat")]));
    for path in ["/etc/passwd", "../x", "a/../../x", ""] {
        let ran = project.go(&["--file", path, "--json"]);
        assert_eq!((ran.code, project.runs()), (2, 0), "{path}: {}", ran.stderr);
        assert!(ran.stderr.contains("the verdict waits for the file"), "{path}: {}", ran.stderr);
    }
    // An absolute path in the project is valid, unless the run uses a worktree.
    let inside = project.path().join("x").display().to_string();
    assert_eq!(project.go(&["--file", &inside, "--worktree"]).code, 2);
    assert_eq!(project.go(&["--file", &inside]).code, 5);
    assert_ne!(project.events("probed")[0]["failed"], true);
}

/// Answers each request with the next body, the last one for ever; counts them.
fn service(answers: Vec<(u16, &'static str)>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/state?key=secret", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).unwrap_or(0) == 0 {
                    break;
                }
                request.push(byte[0]);
            }
            assert!(request.starts_with(b"GET /state?key=secret "));
            let nth = counted.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            let (status, body) = answers[nth];
            let head =
                format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    (url, count)
}

#[test]
fn a_service_response_completes_the_run() {
    let (url, count) =
        service(vec![(503, ""), (200, r#"{"state": "open"}"#), (200, r#"{"state": "closed"}"#)]);
    let config = json!({"resourceType": "api", "targetState": "closed"});
    let project = agent_of("url", "poll:state", config).project(json!([repeats(5)]));
    eager(&project);
    let ran = project.go(&["--url", &url, "--json"]);
    let (end, _) = ended(&ran, 0);
    let address = url.split('?').next().unwrap();
    assert_eq!(end, format!("completed: `{address}` answered `closed`"));
    assert_eq!(count.load(Ordering::SeqCst), 3);
    let looks = project.events("probed");
    assert_eq!(looks[0]["said"], format!("`{address}` answered 503"));
    assert!(!json!(looks).to_string().contains("secret"), "keys of an address are not told");

    let (url, _) =
        service(vec![(200, r#"{"state": "closed", "n": 1}"#), (200, r#"{"state": "closed", "n": 2}"#)]);
    let config = json!({"resourceType": "api", "targetState": {"state": "closed", "n": 2}});
    let project = agent_of("url", "poll:state", config).project(json!([repeats(5)]));
    eager(&project);
    let (end, _) = ended(&project.go(&["--url", &url, "--json"]), 0);
    assert!(end.ends_with("answered `state` = \"closed\", `n` = 2"), "{end}");
}

const HANDLER: &str = r#"told=$(cat)
printf '%s\n' "$told" >> told.txt
case "$told" in
  *'"iteration":2'*) echo '{"finished": true, "reason": "two are enough"}' ;;
  *) echo '{"finished": false}' ;;
esac
"#;

#[test]
fn a_handler_receives_the_answer_and_decides() {
    let registry = agent("meta:custom", json!({"handlerPath": "verdict.sh", "maxIterations": 9}))
        .field("work", json!({"note": {"type": "string"}}))
        .with("work", json!({"structuredGate": {"handoffFields": ["note"]}}));
    let said =
        |note: &str| json!({"step": "work", "output": {"next_action": {"action": "repeat"}, "note": note}});
    let project = registry.project(json!([said("one"), said("two")]));
    project.write(".agent/agent/verdict.sh", HANDLER);
    let (end, result) = ended(&project.go(&["--json"]), 0);
    assert_eq!(end, "completed: two are enough");
    let told: Vec<Value> =
        project.read("told.txt").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        told[1],
        json!({
            "run": result["run"], "step": "work", "visit": 2, "iteration": 2,
            "answer": {"next_action": {"action": "repeat"}, "note": "two"},
            "handoff": {"work": {"note": "two"}},
            "config": {"handlerPath": "verdict.sh", "maxIterations": 9}
        })
    );
}

#[test]
fn an_exported_handler_is_called_with_the_answer() {
    let modules = [
        (
            "verdict.mjs",
            "export default ({ visit, config }) => ({ finished: visit >= config.enough, reason: 'enough' })",
        ),
        (
            "verdict.js",
            "import { join } from 'node:path';\nexport const handler = async (input) => { console.log(join('a', 'b')); \
             return { finished: input.visit >= input.config.enough, reason: 'enough' } };",
        ),
        // As Climpt's verdict handlers: a factory of objects.
        (
            "verdict.mjs",
            "export default (definition, config) => ({ setCurrentSummary(summary) { this.visit = summary.visit; }, \
             isFinished() { return this.visit >= config.enough; }, getVerdictDescription: () => 'enough' });",
        ),
    ];
    for (name, text) in modules {
        let registry = agent("meta:custom", json!({"handlerPath": name, "enough": 2, "maxIterations": 9}));
        let project = registry.project(json!([repeats(5)]));
        project.write(&format!(".agent/agent/{name}"), text);
        assert!(!project.run(&["check", "agent"]).stderr.contains("enough"), "custom keys are passed on");
        let (end, result) = ended(&project.go(&["--json"]), 0);
        assert_eq!(end, "completed: enough", "{text}");
        assert_eq!(result["steps"].as_array().unwrap().len(), 2);
    }
    let registry = agent("meta:custom", json!({"handlerPath": "verdict.mjs"}));
    let project = registry.project(json!([repeats(9)]));
    project.write(".agent/agent/verdict.mjs", "export default () => { throw new Error('no such thing') }");
    let (end, _) = ended(&project.go(&["--json"]), 1);
    assert!(end.contains("`verdict.mjs` failed 3 times in a row"), "{end}");
}

#[test]
fn repeated_handler_failures_fail_the_run() {
    let registry = agent("meta:custom", json!({"handlerPath": "verdict.py"}));
    let project = registry.project(json!([repeats(9)]));
    project.write(".agent/agent/verdict.py", "#!/bin/sh\necho oops >&2\nexit 3\n");
    let (end, result) = ended(&project.go(&["--json"]), 1);
    assert_eq!(end, "failed: the verdict's handler `verdict.py` failed 3 times in a row: exit 3: oops");
    assert_eq!(result["steps"].as_array().unwrap().len(), 3);
}

/// A resumed run uses the handler it started with.
#[test]
fn an_edited_handler_does_not_affect_a_running_run() {
    let registry = agent("meta:custom", json!({"handlerPath": "verdict.sh"}));
    let project = registry.project(json!([says("work", "repeat")]));
    project.write(".agent/agent/verdict.sh", HANDLER);
    // The exhausted script suspends the run.
    assert_eq!(project.go(&[]).code, 4);
    project.write(".agent/agent/verdict.sh", "exit 9\n");
    project.script("script2.json", &json!([repeats(5)]));
    let (end, _) = ended(&project.run(&["resume", "last", "--script", "script2.json", "--json"]), 0);
    assert_eq!(end, "completed: two are enough");
}

#[test]
fn a_verdict_waits_for_a_failing_validator() {
    let registry = agent_of("file", "poll:state", json!({"resourceType": "file"}))
        .validator("test -e proof || { echo unproven; exit 1; }", json!({"action": "retry"}));
    let writes = |file| json!({"kind": "remedy", "writes": [{"path": file, "content": "x"}]});
    let answers = json!([
        says("work", "handoff"),
        says("close", "closing"),
        says_with("work", "handoff", writes("done")),
        says("close", "closing"),
        says_with("work", "handoff", writes("proof")),
        says("close", "closing")
    ]);
    let project = registry.project(answers);
    eager(&project);
    let checked = project.run(&["check", "agent"]);
    assert!(checked.stderr.contains("closure-skipped") || checked.stdout.contains("closure-skipped"));
    let ran = project.go(&["--file", "done", "--json"]);
    let (end, result) = ended(&ran, 0);
    assert_eq!(end, "completed: `close` completed the workflow");
    assert_eq!(result["validated"], true);
    assert_snapshot!(rows(&result), @r"
    work: handoff → close
    close: closing → work
    work (remedy): handoff → close
    close: closing → work
    work (remedy): handoff → close
    close: closing → @completed
    ");
    assert!(project.prompts()[2].contains("unproven"));
    assert!(!project.run(&["report", "last"]).stdout.contains("Validated: no"));
}

#[test]
fn a_composite_verdict_requires_all_parts() {
    let registry = agent_of(
        "file",
        "meta:composite",
        json!({"operator": "and", "maxIterations": 9, "conditions": [
            {"type": "poll:state", "config": {"resourceType": "file", "targetState": "absent"}},
            {"type": "detect:keyword", "config": {"verdictKeyword": "DONE"}}]}),
    );
    let answers = json!([
        {"step": "work", "text": "DONE {\"next_action\": {\"action\": \"repeat\"}}",
            "writes": [{"path": "lock", "content": "x"}]},
        says("work", "repeat"),
        says_with("work", "repeat", json!({"runs": ["rm lock"]}))
    ]);
    let project = registry.project(answers);
    eager(&project);
    let (end, result) = ended(&project.go(&["--file", "lock", "--json"]), 0);
    assert_eq!(end, "completed: `lock` does not exist; `work` said `DONE`");
    assert_eq!(result["iterations"], 3);
}
