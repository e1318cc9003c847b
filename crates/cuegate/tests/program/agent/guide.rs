//! The flows of "14. Steps Registry" and the keys of the runner reference, each in a complete run.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::agent::registry::{Registry, says, says_with, small};
use crate::support::Project;

/// The targets of the last run's visits, in order.
fn way(project: &Project) -> Vec<String> {
    let status = project.status();
    let steps = status["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|row| format!("{} {}", row["step"].as_str().unwrap(), row["outcome"].as_str().unwrap()))
        .collect()
}

fn to(target: &str) -> Value {
    json!({"target": target})
}

#[test]
fn the_linear_flow() {
    let project = Registry::new()
        .step(
            "initial.issue",
            "work",
            json!({"next": to("continuation.issue"), "repeat": to("initial.issue")}),
        )
        .step(
            "continuation.issue",
            "work",
            json!({"next": to("continuation.issue"), "handoff": to("closure.issue")}),
        )
        .step("closure.issue", "closure", json!({"closing": {"target": null}, "repeat": to("closure.issue")}))
        .project(json!([
            says("initial.issue", "repeat"),
            says("initial.issue", "next"),
            says("continuation.issue", "next"),
            says("continuation.issue", "handoff"),
            says("closure.issue", "repeat"),
            says("closure.issue", "closing"),
        ]));
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        way(&project),
        [
            "initial.issue repeat",
            "initial.issue next",
            "continuation.issue next",
            "continuation.issue handoff",
            "closure.issue repeat",
            "closure.issue closing"
        ]
    );
}

#[test]
fn the_branching_flow() {
    let (prepare, review, again, closing) = (
        "initial.project.preparation",
        "initial.project.review",
        "initial.project.again",
        "initial.project.closure",
    );
    let (more, reviews, agains) =
        ("continuation.project.preparation", "continuation.project.review", "continuation.project.again");
    let project = Registry::new()
        .step(prepare, "work", json!({"next": to(more), "handoff": to(review)}))
        .step(more, "work", json!({"next": to(more), "handoff": to(review)}))
        .step(review, "work", json!({"next": to(reviews), "repeat": to(again), "handoff": to(closing)}))
        .step(reviews, "work", json!({"next": to(reviews), "repeat": to(again), "handoff": to(closing)}))
        .step(again, "work", json!({"next": to(agains), "handoff": to(review)}))
        .step(agains, "work", json!({"handoff": to(review)}))
        .step(closing, "closure", json!({"closing": {"target": null}}))
        .project(json!([
            says(prepare, "next"),
            says(more, "next"),
            says(more, "handoff"),
            says(review, "repeat"),
            says(again, "next"),
            says(agains, "handoff"),
            says(review, "next"),
            says(reviews, "next"),
            says(reviews, "repeat"),
            says(again, "handoff"),
            says(review, "handoff"),
            says(closing, "closing"),
        ]));
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(way(&project).len(), 12);
}

#[test]
fn the_recovery_flow() {
    let project =
        small().validator("cat proof.txt", json!({"action": "retry", "maxAttempts": 3})).project(json!([
            says("work", "handoff"),
            says("close", "closing"),
            says_with(
                "work",
                "handoff",
                json!({"kind": "remedy", "writes": [{"path": "proof.txt", "content": "ok"}]})
            ),
            says("close", "closing"),
        ]));
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(way(&project), ["work handoff", "close closing", "work handoff", "close closing"]);
    assert_eq!(project.status()["asks"]["remedy"], 1);
}

#[test]
fn the_minimal_registry() {
    let project = Registry::new()
        .step("initial.issue", "work", json!({"next": to("continuation.issue")}))
        .step("continuation.issue", "work", json!({"handoff": to("closure.issue")}))
        .step("closure.issue", "closure", json!({"closing": {"target": null}}))
        .project(json!([
            says("initial.issue", "next"),
            says("continuation.issue", "handoff"),
            says("closure.issue", "closing"),
        ]));
    let ran = project.go(&[]);
    assert_eq!((ran.code, way(&project).len()), (0, 3), "{}", ran.stderr);
}

#[test]
fn a_built_in_prompt_replaces_a_missing_file() {
    let project = small()
        .with("work", json!({"c3": "nowhere", "fallbackKey": "initial_iterate", "usesStdin": true}))
        .project(json!([says("work", "handoff"), says("close", "closing")]));
    let ran = project.go(&["mend the roof"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let prompt = &project.prompts()[0];
    assert!(prompt.contains("at most 20 iterations") && prompt.contains("mend the roof"), "{prompt}");
}

#[test]
fn a_question_is_answered_by_the_definition() {
    let project =
        small().runner(json!({"flow": {"askUserAutoResponse": "Take the red one."}})).project(json!([
            {"step": "work", "asks_user": "Red or blue?"}, says("work", "handoff"), says("close", "closing"),
        ]));
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(project.prompts()[1].contains("Take the red one."));
    let answered = project.events("question_answered");
    assert_eq!((answered.len(), &answered[0]["question"]), (1, &json!("Red or blue?")));
    let system = project.events("answered")[0]["system_prompt"].as_str().unwrap().to_owned();
    assert!(system.contains("Take the red one."), "{system}");
}

/// A handler that appends its input, one line per call.
fn with_handler(project: &Project, code: u8) {
    let script = format!(
        "#!/bin/sh\ncat >> told.txt\necho >> told.txt\necho \"$CUEGATE_EFFECT_KEY\" >> keys.txt\nexit {code}\n"
    );
    project.write(".agent/agent/act.sh", &script);
    let path = project.path().join(".agent/agent/act.sh");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn acting(code: u8) -> Project {
    let actions = json!({"actions": {
        "enabled": true, "types": ["post", "note"], "outputFormat": "json",
        "handlers": {"post": "exec:act.sh", "note": "log"}
    }});
    let block = "```json\n{\"action\": \"post\", \"n\": 1}\n```\n```note\nfine\n```\n```json\n{\"action\": \"drop\"}\n```";
    let project = Project::empty();
    small().runner(actions).write(&project);
    with_handler(&project, code);
    project.write(".gitignore", "/script*\n");
    project.init();
    let answers = json!([says("work", "handoff"), says_with("close", "closing", json!({"text": block})),]);
    project.script("script.json", &answers);
    project
}

#[test]
fn action_blocks_in_answers_are_executed() {
    let project = acting(0);
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told: Value = serde_json::from_str(project.read("told.txt").trim()).unwrap();
    assert_eq!(
        (&told["action"], &told["value"]["n"], &told["step"]),
        (&json!("post"), &json!(1), &json!("close"))
    );
    let status = project.status();
    let effects: Vec<(&Value, &Value)> =
        status["effects"].as_array().unwrap().iter().map(|row| (&row["kind"], &row["state"])).collect();
    assert_eq!(effects, [(&json!("exec"), &json!("done")), (&json!("log"), &json!("done"))]);
    assert_eq!(status["effects"][0]["key"].as_str().unwrap(), project.read("keys.txt").trim());
    assert_eq!(status["effects"][0]["changed_files"], json!(["keys.txt", "told.txt"]));
    assert!(
        status["steps"].as_array().unwrap().iter().all(|row| row["changed_files"] == json!([])),
        "{status:#}"
    );
    assert_eq!(project.events("action_found").len(), 3, "what may not be asked for is noted, too");
}

#[test]
fn a_failed_handler_is_recorded_and_the_run_continues() {
    let project = acting(3);
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.status()["effects"][0]["state"], "failed");
    assert_eq!(project.status()["effects"][0]["said"], "exit 3");
}

/// A resumed run uses the handler it started with, even one that is not executable.
#[test]
fn an_edited_handler_does_not_affect_a_started_run() {
    let project = acting(0);
    let path = project.path().join(".agent/agent/act.sh");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    project.script("script.json", &json!([says("work", "handoff")]));
    // The exhausted script suspends the run.
    assert_eq!(project.go(&[]).code, 4);
    project.write(".agent/agent/act.sh", "#!/bin/sh\necho edited > told.txt\nexit 9\n");
    let block = "```json\n{\"action\": \"post\", \"n\": 7}\n```";
    project.script("script2.json", &json!([says_with("close", "closing", json!({"text": block}))]));
    let ran = project.run(&["resume", "last", "--script", "script2.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told: Value = serde_json::from_str(project.read("told.txt").trim()).unwrap();
    assert_eq!(told["value"]["n"], 7);
    assert_eq!(project.status()["effects"][0]["state"], "done");
}

#[test]
fn inspected_answers_are_in_the_result() {
    let project = small().runner(json!({"flow": {"schemas": {"inspection": true}}})).project(json!([
        {"step": "work", "output": {"next_action": {}}}, says_with("work", "handoff", json!({"kind": "repair"})), says("close", "closing"),
    ]));
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let status = project.status();
    let inspections = status["inspections"].as_array().unwrap();
    let fits: Vec<&Value> = inspections.iter().map(|row| &row["fits"]).collect();
    assert_eq!(fits, [&json!(false), &json!(true), &json!(true)]);
    assert!(!inspections[0]["problems"].as_array().unwrap().is_empty());
}

#[test]
fn a_log_file_is_written_for_each_run() {
    let project = small()
        .runner(json!({"logging": {"directory": "tmp/logs", "format": "jsonl", "maxFiles": 2}}))
        .project(json!([says("work", "handoff"), says("close", "closing")]));
    project.write("tmp/logs/mine.jsonl", "not ours\n");
    for _ in 0..3 {
        assert_eq!(project.go(&[]).code, 0);
    }
    let mut names: Vec<String> = std::fs::read_dir(project.path().join("tmp/logs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.iter().filter(|name| name.starts_with("cuegate-")).count(), 2, "{names:?}");
    assert!(names.contains(&"mine.jsonl".to_owned()), "{names:?}");
    let run = project.status()["run"].as_str().unwrap().to_owned();
    let log = project.read(&format!("tmp/logs/cuegate-{run}.jsonl"));
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!((&last["schema"], &last["event"]), (&json!("cuegate/event/v1"), &json!("ended")));
    assert_eq!(project.git(&["status", "--porcelain"]).trim(), "?? tmp/", "only what is not ours is seen");
}

#[test]
fn a_log_file_can_have_the_text_format() {
    let project = small()
        .runner(json!({"logging": {"format": "text"}}))
        .project(json!([says("work", "handoff"), says("close", "closing")]));
    assert_eq!(project.go(&[]).code, 0);
    let run = project.status()["run"].as_str().unwrap().to_owned();
    let log = project.read(&format!("logs/cuegate-{run}.log"));
    assert!(log.contains("close completed the workflow") || log.contains("completed"), "{log}");
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_log_folder_stays_in_the_project() {
    let project = small()
        .runner(json!({"logging": {"directory": "out/logs", "format": "text"}}))
        .project(json!([says("work", "handoff"), says("close", "closing")]));
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), project.path().join("out")).unwrap();
    let ran = project.go(&[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("leads out of the project"), "{}", ran.stderr);
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn the_log_is_not_written_through_links() {
    let project = small()
        .runner(json!({"logging": {}}))
        .project(json!([says("work", "handoff"), says("close", "closing")]));
    let elsewhere = tempfile::tempdir().unwrap();
    let ignore = elsewhere.path().join("escaped");
    std::fs::create_dir(project.path().join("logs")).unwrap();
    std::os::unix::fs::symlink(&ignore, project.path().join("logs/.gitignore")).unwrap();
    assert_eq!(project.go(&[]).code, 0);
    assert!(!ignore.exists(), "a link that leads nowhere is not followed");
}

#[test]
fn the_log_folder_cannot_be_in_git_or_cuegate_folders() {
    for directory in [".git/logs", ".cuegate/logs", "a/.GIT"] {
        let project = small()
            .runner(json!({"logging": {"directory": directory}}))
            .project(json!([says("work", "handoff"), says("close", "closing")]));
        let ran = project.go(&[]);
        assert_eq!(ran.code, 2, "{directory}: {}", ran.stderr);
        assert!(ran.stderr.contains("which is not for log files"), "{}", ran.stderr);
    }
}

#[test]
fn a_parameter_value_must_satisfy_its_validation() {
    let declared = |kind: &str, validation: Value| json!({"type": kind, "description": "Of a test", "required": true, "validation": validation});
    let mut count = declared("number", json!({"min": 1, "max": 9}));
    let mut branch = declared("string", json!({"pattern": "^fix/"}));
    let mut tone = declared("string", json!({"enum": ["calm", "sharp"]}));
    for (param, flag) in [(&mut count, "--count"), (&mut branch, "--branch-name"), (&mut tone, "--tone")] {
        param["cli"] = json!(flag);
    }
    let project = small()
        .agent(json!({"parameters": {"count": count, "branch": branch, "tone": tone}}))
        .prompt("work", "Do {uv-count} on {uv-branch}, {uv-tone}.\n")
        .project(json!([says("work", "handoff"), says("close", "closing")]));
    let go = |count: &str, branch: &str, tone: &str| {
        project.go(&["--count", count, "--branch-name", branch, "--tone", tone])
    };
    for (count, branch, tone, why) in [
        ("10", "fix/a", "calm", "`10` of `count` is more than 9"),
        ("0", "fix/a", "calm", "`0` of `count` is less than 1"),
        ("9", "main", "calm", "`main` of `branch`"),
        ("9", "fix/a", "loud", "`loud` of `tone`"),
    ] {
        let ran = go(count, branch, tone);
        assert!(ran.code == 2 && ran.stderr.contains(why), "{why}: {}", ran.stderr);
    }
    assert_eq!(project.runs(), 0);
    assert_eq!(go("9", "fix/a", "sharp").code, 0);
    assert_eq!(project.prompts()[0].trim_end(), "Do 9 on fix/a, sharp.");
}

#[test]
fn a_validator_reads_values_of_the_run_as_words() {
    let topic = json!({"type": "string", "description": "Of a test", "required": true, "cli": "--topic"});
    let command = "printf '%s\\n' ${topic} > made.txt; echo \"[${context.topic}]\" >> made.txt; test ${topic} = \"a b; \\$(touch bad) 'c'\"";
    let project = small()
        .agent(json!({"parameters": {"topic": topic}}))
        .validator(command, json!({"action": "abort"}))
        .project(json!([says("work", "handoff"), says("close", "closing")]));
    let ran = project.go(&["--topic", "a b; $(touch bad) 'c'"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.read("made.txt"), "a b; $(touch bad) 'c'\n[a b; $(touch bad) 'c']\n");
    assert!(!project.path().join("bad").exists(), "no part of a value is a command");
    assert_eq!(project.go(&["--topic", "other"]).code, 1);
}

#[test]
fn a_validator_does_not_run_without_a_value_that_it_reads() {
    let topic = json!({"type": "string", "description": "Of a test", "cli": "--topic"});
    let project = small()
        .agent(json!({"parameters": {"topic": topic}}))
        .validator("test \"${topic}\" != bad", json!({"action": "abort"}))
        .project(json!([says("work", "handoff"), says("close", "closing")]));
    assert_eq!(project.go(&["--topic", "good"]).code, 0);
    let ran = project.go(&[]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let errors = project.run(&["log", "--json"]).stdout;
    assert!(project.events("command_finished").iter().any(|event| event["passed"] == false), "{errors}");
}

#[test]
fn defaults_and_list_items_are_validated() {
    let tags = |default: Value| {
        let validation = json!({"enum": ["a", "b"]});
        let tags = json!({"type": "array", "description": "Of a test", "default": default, "cli": "--tags",
            "validation": validation});
        small()
            .agent(json!({"parameters": {"tags": tags}}))
            .prompt("work", "Tags: {uv-tags}.\n")
            .project(json!([says("work", "handoff"), says("close", "closing")]))
    };
    let unfit = tags(json!(["a", "c"])).go(&[]);
    assert!(unfit.code == 2 && unfit.stderr.contains("the default of `tags`"), "{}", unfit.stderr);
    let project = tags(json!(["a"]));
    let refused = project.go(&["--tags", "a", "--tags", "b,x"]);
    assert!(refused.code == 2 && refused.stderr.contains("has the item `x`"), "{}", refused.stderr);
    assert_eq!(project.go(&["--tags", "a", "--tags", "b"]).code, 0);
    assert_eq!(project.prompts()[0].trim_end(), "Tags: a,b.");
}
