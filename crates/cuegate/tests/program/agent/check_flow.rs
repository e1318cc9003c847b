//! The check flow of the “Step Flow Design” with checks: its own three steps, run by scripts.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Project, Ran};

/// The example of the document: analyze, implement, review.
pub fn registry() -> Value {
    let step = |id: &str, name: &str, c3: &str, max: u32, check: [&str; 2], pass: Value, fail: Value| {
        json!({
            "id": id, "name": name,
            "prompt": {"c1": "steps", "c2": "phase", "c3": c3},
            "iterations": {"min": 1, "max": max},
            "check": {
                "prompt": {"c1": "checks", "c2": check[0], "c3": check[1]},
                "responseFormat": {"result": "ok|ng", "message": "string"},
                "onPass": pass, "onFail": fail
            }
        })
    };
    json!({
        "version": "2.0.0", "basePath": "prompts", "entryStep": "s_a8f3",
        "steps": {
            "s_a8f3": step("s_a8f3", "Code Analysis", "analyze", 1, ["step", "analyze"],
                json!({"next": "s_b2c1"}), json!({"retry": true, "maxRetries": 2})),
            "s_b2c1": step("s_b2c1", "Implementation", "implement", 5, ["step", "implement"],
                json!({"next": "s_c9d4"}), json!({"fallback": "s_a8f3"})),
            "s_c9d4": step("s_c9d4", "Review", "review", 1, ["completion", "final"],
                json!({"complete": true}), json!({"fallback": "s_b2c1"})),
        }
    })
}

pub fn agent() -> Value {
    json!({
        "name": "code-improver",
        "displayName": "Code Improver",
        "description": "Agent that analyzes and improves code",
        "parameters": {"topic": {"type": "string", "description": "What to improve", "required": true, "cli": "--topic"}},
        "behavior": {
            "systemPromptPath": "prompts/system.md",
            "completionType": "stepFlow",
            "completionConfig": {},
            "allowedTools": ["Read", "Write", "Edit", "Bash", "Glob", "Grep"],
            "permissionMode": "acceptEdits"
        },
        "prompts": {"registry": "steps_registry.json", "fallbackDir": "prompts/"}
    })
}

/// A project with that agent; `registry` and `agent` as they are given.
pub fn project(agent: &Value, registry: &Value) -> Project {
    let project = Project::empty();
    let folder = ".agent/code-improver";
    project.write(&format!("{folder}/agent.json"), &agent.to_string());
    project.write(&format!("{folder}/steps_registry.json"), &registry.to_string());
    project.write(&format!("{folder}/prompts/system.md"), "You improve code.\n");
    for (path, text) in [
        (
            "steps/phase/analyze",
            "Analyze {uv-topic}, execution {uv-iteration} of at most {uv-max_iterations}.",
        ),
        ("steps/phase/implement", "Implement."),
        ("steps/phase/review", "Review."),
        ("checks/step/analyze", "Is it analyzed?"),
        (
            "checks/step/implement",
            "Is it implemented?\n```json\n{ \"result\": \"ok\", \"message\": \"…\" }\n```",
        ),
        ("checks/completion/final", "Is it good?"),
    ] {
        project.write(&format!("{folder}/prompts/{path}/f_default.md"), text);
    }
    project.write(".gitignore", "/script*\n/.cuegate\n");
    project.init();
    project
}

/// A script in which work is always done, and checks answer these texts or objects in turn.
fn script(project: &Project, checks: &[Value]) {
    let mut answers = vec![json!({"kind": "work", "text": "done", "times": 0})];
    for check in checks {
        answers.push(match check {
            Value::String(text) => json!({"kind": "check", "text": text}),
            output => json!({"kind": "check", "output": output}),
        });
    }
    project.script("script.json", &json!(answers));
}

const RUN: [&str; 5] = ["run", "code-improver", "--topic=parsers", "--script", "script.json"];

fn run(project: &Project, more: &[&str]) -> Ran {
    let args: Vec<&str> = RUN.iter().chain(&["--json"]).chain(more).copied().collect();
    project.run(&args)
}

/// Each row: step, visit and attempt, what its check said and how it went on.
fn rows(result: &Value) -> String {
    let rows = result["steps"].as_array().unwrap().iter().map(|row| {
        let check = match row.get("check") {
            Some(check) => format!("{} “{}”", check["result"], check["message"]).replace('"', ""),
            None => "not checked".to_owned(),
        };
        let (step, target) = (row["step"].as_str().unwrap(), row["target"].as_str().unwrap_or("none"));
        let transition = row.get("transition").and_then(Value::as_str).unwrap_or("–");
        format!("{step} {}.{}: {check} {transition} → {target}", row["visit"], row["attempt"])
    });
    rows.collect::<Vec<_>>().join("\n")
}

pub fn ok(message: &str) -> Value {
    json!({"result": "ok", "message": message})
}

pub fn ng(message: &str) -> Value {
    json!({"result": "ng", "message": message})
}

#[test]
fn the_documents_own_example() {
    let project = project(&agent(), &registry());
    let checks = [
        ng("no tests named"),
        ok("analyzed"),
        ng("does not build"),
        ok("implemented"),
        ng("names are poor"),
        ok("implemented again"),
        ok("all good"),
    ];
    script(&project, &checks);
    let ran = run(&project, &[]);
    let result = ran.json();
    assert_eq!((ran.code, &result["state"]), (0, &json!("completed")), "{}", ran.stderr);
    assert_eq!(result["dialect"], "registry-check");
    assert_eq!((&result["final_step"], &result["asks"]["check"]), (&json!("s_c9d4"), &json!(7)));
    assert!(result["completion_reason"].as_str().unwrap().contains("s_c9d4"), "{result}");
    insta::assert_snapshot!(rows(&result), @"
    s_a8f3 1.1: ng “no tests named” retry → s_a8f3
    s_a8f3 2.1: ok “analyzed” next → s_b2c1
    s_b2c1 1.1: ng “does not build” retry → s_b2c1
    s_b2c1 1.2: ok “implemented” next → s_c9d4
    s_c9d4 1.1: ng “names are poor” fallback → s_b2c1
    s_b2c1 2.1: ok “implemented again” next → s_c9d4
    s_c9d4 2.1: ok “all good” complete → @completed
    ");
    let log = project.events("answered");
    assert_eq!(log[0]["prompt"], "Analyze parsers, execution 1 of at most 100.");
    let goes_on = &log[1]["put"]["session"];
    assert_ne!(goes_on, "new", "a check goes on in the conversation of its work");
    let tools = project.run(&["show", "code-improver"]).stdout;
    assert!(tools.contains("tools Read, Write, Edit, Bash, Glob, Grep"), "{tools}");
    let status = project.run(&["status", "last"]).stdout;
    assert!(status.contains("ng → s_b2c1: names are poor"), "{status}");
    let told = ran.stderr;
    assert!(told.contains("no tests named → ng → s_a8f3"), "{told}");
    let report = project.run(&["report", "last"]).stdout;
    assert!(report.contains("ok → done: all good"), "{report}");
}

#[test]
fn retries_are_counted_and_end_in_failure() {
    let project = project(&agent(), &registry());
    script(&project, &[ng("a"), ng("b"), ng("c"), ok("never asked")]);
    let ran = run(&project, &[]);
    let result = ran.json();
    assert_eq!((ran.code, &result["state"]), (1, &json!("failed")), "{}", ran.stderr);
    assert_eq!(result["completion_reason"], "the check of `s_a8f3` did not pass after 2 retries");
    insta::assert_snapshot!(rows(&result), @"
    s_a8f3 1.1: ng “a” retry → s_a8f3
    s_a8f3 2.1: ng “b” retry → s_a8f3
    s_a8f3 3.1: ng “c” fail → @failed
    ");
}

#[test]
fn after_the_retries_the_fallback_runs_and_the_counter_restarts() {
    let mut registry = registry();
    let fail = json!({"retry": true, "maxRetries": 1, "fallback": "s_b2c1"});
    registry["steps"]["s_a8f3"]["check"]["onFail"] = fail;
    registry["steps"]["s_b2c1"]["check"]["onPass"] = json!({"next": "s_a8f3"});
    registry["steps"]["s_a8f3"]["check"]["onPass"] = json!({"complete": true, "next": "s_b2c1"});
    registry["steps"].as_object_mut().unwrap().remove("s_c9d4");
    let project = project(&agent(), &registry);
    script(&project, &[ng("a"), ng("b"), ok("c"), ng("d"), ng("e"), ok("f"), ok("g")]);
    let result = run(&project, &[]).json();
    insta::assert_snapshot!(rows(&result), @"
    s_a8f3 1.1: ng “a” retry → s_a8f3
    s_a8f3 2.1: ng “b” fallback → s_b2c1
    s_b2c1 1.1: ok “c” next → s_a8f3
    s_a8f3 3.1: ng “d” retry → s_a8f3
    s_a8f3 4.1: ng “e” fallback → s_b2c1
    s_b2c1 2.1: ok “f” next → s_a8f3
    s_a8f3 5.1: ok “g” complete → @completed
    ");
}

#[test]
fn a_round_is_executed_min_times_and_at_most_max_times() {
    let mut registry = registry();
    registry["steps"]["s_a8f3"]["iterations"] = json!({"min": 2, "max": 4});
    registry["steps"]["s_a8f3"]["check"]["onFail"] = json!({"retry": true, "maxRetries": 1});
    registry["steps"]["s_a8f3"]["check"]["onPass"] = json!({"complete": true});
    let project = project(&agent(), &registry);
    script(&project, &[ng("a"), ng("b"), ng("c"), ng("d"), ok("e")]);
    let result = run(&project, &[]).json();
    insta::assert_snapshot!(rows(&result), @"
    s_a8f3 1.1: not checked – → s_a8f3
    s_a8f3 1.2: ng “a” retry → s_a8f3
    s_a8f3 1.3: ng “b” retry → s_a8f3
    s_a8f3 1.4: ng “c” retry → s_a8f3
    s_a8f3 2.1: not checked – → s_a8f3
    s_a8f3 2.2: ng “d” retry → s_a8f3
    s_a8f3 2.3: ok “e” complete → @completed
    ");
}

#[test]
fn at_most_100_executions_run_and_the_last_is_checked() {
    let mut registry = registry();
    registry["steps"]["s_a8f3"]["check"]["onFail"] = json!({"retry": true});
    let project = project(&agent(), &registry);
    let answers = json!([
        {"kind": "work", "text": "done", "times": 0},
        {"kind": "check", "output": ng("never good"), "times": 0}
    ]);
    project.script("script.json", &answers);
    let ran = run(&project, &["--durability", "relaxed"]);
    let result = ran.json();
    assert_eq!((ran.code, &result["state"]), (5, &json!("exhausted")), "{}", ran.stderr);
    assert_eq!((&result["asks"]["work"], &result["asks"]["check"]), (&json!(100), &json!(100)));
    assert_eq!(result["steps"].as_array().unwrap().len(), 100);
    let lower = run(&project, &["--max-iterations", "3"]).json();
    assert_eq!((&lower["asks"]["work"], &lower["asks"]["check"]), (&json!(3), &json!(3)));
}

/// What the answer of a check may look like, and what it then means: result and message.
#[test]
fn answers_of_checks() {
    let project = project(&agent(), &registry());
    let cases = [
        (json!({"result": "ok", "message": "m"}), "ok", "m"),
        (json!({"result": "PASS"}), "ok", "null"),
        (json!({"result": true, "message": "m"}), "ok", "m"),
        (
            json!("Well:\n```json\n{ \"result\": \"Ok\", \"message\": \"fenced\" }\n```\nThat is all."),
            "ok",
            "fenced",
        ),
        (json!("{\"result\":\"pass\",\"message\":\"alone\"}"), "ok", "alone"),
        (json!("I think result: OK"), "ok", "I think result: OK"),
        (json!("ok"), "ok", "ok"),
        (json!({"result": "ng", "message": "bad"}), "ng", "bad"),
        (json!({"result": false}), "ng", "null"),
        (json!("Result: FAIL, two tests"), "ng", "Result: FAIL, two tests"),
        (json!("looks good"), "ng", "could not be read: the answer has no JSON object"),
        (json!({"result": "maybe"}), "ng", "could not be read: `result` is `maybe`, allowed are `ok`, `ng`"),
        (
            json!({"result": "ok", "message": 5}),
            "ng",
            "could not be read: 5 is not of type \"string\" (at `/message`)",
        ),
        (json!("result: ok or result: ng?"), "ng", "could not be read: the answer has no JSON object"),
    ];
    for (answer, result, message) in cases {
        script(&project, std::slice::from_ref(&answer));
        let seen = run(&project, &["--max-iterations", "1"]).json();
        let check = &seen["steps"][0]["check"];
        let said = check["message"].as_str().unwrap_or("null");
        assert_eq!((check["result"].as_str().unwrap(), said), (result, message), "{answer}");
        assert_eq!(seen["asks"]["repair"], 0, "no check is asked again: {answer}");
    }
}

#[test]
fn scripts_name_checks_by_their_steps() {
    let project = project(&agent(), &registry());
    let answers = json!([
        {"step": "s_a8f3", "kind": "check", "output": ok("by step")},
        {"step": "s_a8f3", "kind": "work", "text": "done", "writes": [{"path": "plan.md", "content": "p"}]}
    ]);
    project.script("script.json", &answers);
    let ran = run(&project, &[]);
    let result = ran.json();
    assert_eq!((ran.code, &result["waiting"]["kind"]), (4, &json!("environment")), "{}", ran.stderr);
    let row = &result["steps"][0];
    assert_eq!((&row["check"]["message"], &row["changed_files"]), (&json!("by step"), &json!(["plan.md"])));
}

#[test]
fn a_missing_required_parameter_is_a_usage_error() {
    let project = project(&agent(), &registry());
    script(&project, &[]);
    let ran = project.run(&["run", "code-improver", "--script", "script.json"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("parameter `topic` is required"), "{}", ran.stderr);
    let set = project.run(&["run", "code-improver", "--set", "topic=x", "--script", "script.json"]);
    assert_eq!(set.code, 4, "the script is used up: {}", set.stderr);
}

/// A run with an exhausted script resumes at its position and ends with the same rows.
#[test]
fn resumes_in_the_middle_of_a_round() {
    let whole = project(&agent(), &registry());
    let checks = [ng("a"), ok("b"), ng("c"), ok("d"), ok("e")];
    script(&whole, &checks);
    let expected = rows(&run(&whole, &[]).json());
    let cut = project(&agent(), &registry());
    script(&cut, &checks[..3]);
    assert_eq!(run(&cut, &[]).code, 4);
    let mut rest = vec![json!({"kind": "work", "text": "done", "times": 0})];
    rest.extend(checks[3..].iter().map(|check| json!({"kind": "check", "output": check})));
    cut.script("script-rest.json", &json!(rest));
    let resumed = cut.run(&["resume", "last", "--script", "script-rest.json", "--json"]);
    assert_eq!((resumed.code, rows(&resumed.json())), (0, expected), "{}", resumed.stderr);
}

/// The library gives the same result in another program.
#[test]
fn the_library_runs_it() {
    let project = project(&agent(), &registry());
    script(&project, &[ng("no tests named"), ok("analyzed"), ok("implemented"), ok("all good")]);
    let example =
        std::path::Path::new(env!("CARGO_BIN_EXE_cuegate")).with_file_name("examples").join("library");
    let run = |args: &[&str]| {
        let output = Command::new(&example)
            .args(args)
            .current_dir(project.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .output()
            .expect("the example is built: `cargo nextest run -p cuegate` without `--test` does it");
        Ran::of(output)
    };
    let ran = run(&[".", "code-improver", "Refactoring", "script.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    insta::assert_snapshot!(ran.stdout, @"
    Success: true
    Final Step: s_c9d4
    Completion: `s_c9d4` completed the workflow
    s_a8f3: retry (no tests named)
    s_a8f3: next (analyzed)
    s_b2c1: next (implemented)
    s_c9d4: complete (all good)
    ");
    assert_eq!(project.status()["state"], "completed", "it is a run like any other");
    // An agent without declared parameters accepts them as well.
    let mut bare = agent();
    bare.as_object_mut().unwrap().remove("parameters");
    project.write(".agent/code-improver/agent.json", &bare.to_string());
    let ran = run(&[".", "code-improver", "Refactoring", "script.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let nobody = run(&[".", "nobody", "Refactoring", "script.json"]);
    assert_eq!(nobody.code, 2, "{}", nobody.stderr);
    project.all_gone();
}

/// The programs of action blocks are those of the other definitions.
#[test]
fn actions_of_a_check_flow_work() {
    let mut agent = agent();
    let actions = json!({"enabled": true, "types": ["note"], "handlers": {"note": "exec:note.sh"}});
    agent["actions"] = actions;
    let mut registry = registry();
    registry["steps"].as_object_mut().unwrap().retain(|id, _| id == "s_a8f3");
    registry["steps"]["s_a8f3"]["check"]["onPass"] = json!({"complete": true});
    let project = project(&agent, &registry);
    project.write(".agent/code-improver/note.sh", "#!/bin/sh\ncat > noted.json\n");
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "note"]);
    let block = "```json\n{\"action\": \"note\", \"text\": \"seen\"}\n```\n";
    project.script(
        "script.json",
        &json!([{"kind": "work", "text": block}, {"kind": "check", "output": ok("analyzed")}]),
    );
    let ran = run(&project, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(project.read("noted.json").contains("seen"), "{}", ran.stderr);
}
