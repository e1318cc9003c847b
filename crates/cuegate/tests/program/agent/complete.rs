//! Complete runs of agents of the "complete" generation.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::support::{Project, Ran, copy};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// A step of the flow, with a schema that lists these words.
fn step(id: &str, transitions: Value, words: &[&str]) -> (String, Value, Value) {
    let (stage, domain) = id.split_once('.').unwrap();
    let intents: Vec<&String> = transitions.as_object().unwrap().keys().collect();
    let step = json!({
        "stepId": id, "name": id, "c2": stage, "c3": domain,
        "outputSchemaRef": {"file": "fix.json", "schema": format!("#/definitions/{id}")},
        "structuredGate": {"allowedIntents": intents, "fallbackIntent": intents[0], "handoffFields": ["found"]},
        "transitions": transitions
    });
    let schema = json!({"type": "object", "required": ["stepId", "next_action"], "properties": {
        "stepId": {"const": id}, "found": {"type": "string"},
        "next_action": {"type": "object", "required": ["action"], "properties": {"action": {"enum": words}}}}});
    (id.to_owned(), step, schema)
}

/// An agent that plans, works and reports; the file `done` must exist at the end.
pub fn project(answers: Value) -> Project {
    let project = Project::empty();
    let agent = json!({
        "version": "1.0.0", "name": "solver", "displayName": "Solver", "description": "Of a test",
        "behavior": {"systemPromptPath": "prompts/system.md", "completionType": "stepMachine",
            "completionConfig": {"maxIterations": 9}, "allowedTools": ["*"], "permissionMode": "acceptEdits"},
    });
    let parts = [
        step(
            "initial.fix",
            json!({"next": {"target": "continuation.fix"}, "repeat": {"target": "initial.fix"},
                "complete": {"target": "complete.fix"}}),
            &["continue", "retry", "complete", "escalate"],
        ),
        step(
            "continuation.fix",
            json!({"next": {"target": "continuation.fix"}, "complete": {"target": "complete.fix"}}),
            &["continue", "complete", "escalate"],
        ),
    ];
    let (_, _, last) = step("complete.fix", json!({"complete": {"target": "complete.fix"}}), &["complete"]);
    let schema = |id: &str| json!({"file": "fix.json", "schema": format!("#/definitions/{id}")});
    let mut definitions = json!({"complete.fix": last});
    let mut registry = json!({
        "agentId": "solver", "entryStepMapping": {"stepMachine": "initial.fix"},
        "completionPatterns": {"undone": {"description": "no file", "edition": "failed", "adaptation": "undone"}},
        "validators": {"done": {"type": "command", "command": "test -e done", "successWhen": "exitCode:0",
            "failurePattern": "undone"}},
        "completionSteps": {"complete.fix": {"stepId": "complete.fix", "name": "Done", "c2": "retry", "c3": "fix",
            "completionConditions": [{"validator": "done"}], "onFailure": {"action": "retry", "maxAttempts": 2},
            "outputSchemaRef": schema("complete.fix")}},
        "steps": {}
    });
    for (id, step, schema) in parts {
        registry["steps"][&id] = step;
        definitions[&id] = schema;
    }
    let pretty = |value: &Value| format!("{value:#}\n");
    project.write(".agent/solver/agent.json", &pretty(&agent));
    project.write(".agent/solver/steps_registry.json", &pretty(&registry));
    project.write(".agent/solver/schemas/fix.json", &pretty(&json!({"definitions": definitions})));
    for (path, text) in [
        ("system.md", "You solve things.\n"),
        ("steps/initial/fix/f_default.md", "Plan.\n"),
        ("steps/continuation/fix/f_default.md", "Go on with {uv-initial_fix_found}.\n"),
        ("steps/complete/fix/f_default.md", "Report; found was {uv-initial_fix_found}.\n"),
        ("steps/retry/fix/f_failed_undone.md", "There is no file `done`: write it.\n"),
    ] {
        project.write(&format!(".agent/solver/prompts/{path}"), text);
    }
    project.write("a.txt", "one\n");
    project.write(".gitignore", "/script*\n");
    project.init();
    project.script("script.json", &answers);
    project
}

pub fn says(step: &str, word: &str, more: Value) -> Value {
    let mut entry =
        json!({"step": step, "output": {"stepId": step, "found": "a leak", "next_action": {"action": word}}});
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    entry
}

/// The work omits the file, gets a remedy prompt and writes it.
pub fn through_a_remedy() -> Value {
    json!([
        says("initial.fix", "continue", json!({})),
        says("continuation.fix", "complete", json!({"kind": "work"})),
        says("complete.fix", "complete", json!({"times": 2})),
        says(
            "continuation.fix",
            "Complete ",
            json!({"kind": "remedy", "writes": [{"path": "done", "content": ""}]})
        ),
    ])
}

pub fn rows(ran: &Ran) -> String {
    let result = ran.json();
    let rows: Vec<String> = result["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let remedy = if row["remedy"] == true { " (remedy)" } else { "" };
            format!("{}{remedy} → {}", row["step"].as_str().unwrap(), row["target"].as_str().unwrap_or("-"))
        })
        .collect();
    format!("{}: {}", result["state"].as_str().unwrap(), rows.join(", "))
}

fn go(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&["run", "solver", "--script", "script.json", "--json"], more].concat())
}

#[test]
fn complete_leads_to_the_final_step_after_its_validators() {
    let project = project(through_a_remedy());
    let checked = project.run(&["check", "solver"]);
    // Its prompts read fields that its schemas do not require.
    assert_eq!(checked.stderr.matches("maybe-unassigned").count(), 2, "{}", checked.stderr);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    let ran = go(&project, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_snapshot!(rows(&ran), @"completed: initial.fix → continuation.fix, continuation.fix → complete.fix, complete.fix → continuation.fix, continuation.fix (remedy) → complete.fix, complete.fix → @completed");
    assert_eq!(
        (ran.json()["dialect"].as_str(), ran.json()["validated"].as_bool()),
        (Some("registry-complete"), Some(true))
    );
    let prompts = project.prompts();
    assert!(
        prompts.iter().any(|prompt| prompt.contains("Report; found was") && prompt.contains("a leak")),
        "{prompts:?}"
    );
}

#[test]
fn a_fallback_applies_only_in_the_first_iteration() {
    let silent = json!({"output": {"summary": "no decision"}, "times": 2});
    let project = project(json!([silent]));
    let ran = go(&project, &["--repairs", "0"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_snapshot!(rows(&ran), @"failed: initial.fix → continuation.fix, continuation.fix → @failed");
    assert_snapshot!(ran.json()["reason"].as_str().unwrap(), @r#"
    [StepFlow] No intent produced for iteration 2 on step "continuation.fix".
    Flow steps must produce structured output with a valid intent.
    Check that the step's schema includes next_action.action and the LLM returns valid JSON. (the answer has no value at `next_action.action`)
    "#);
}

#[test]
fn an_answer_with_another_step_id_is_not_an_empty_answer() {
    let other =
        json!({"output": {"stepId": "continuation.fix", "next_action": {"action": "continue"}}, "times": 0});
    let project = project(json!([other]));
    let ran = go(&project, &["--repairs", "0"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_snapshot!(rows(&ran), @"failed: initial.fix → @failed");
    assert_snapshot!(ran.json()["reason"].as_str().unwrap(), @r#"the answer of `initial.fix` cannot be used: "initial.fix" was expected (at `/stepId`)"#);
}

#[test]
fn escalate_aborts_the_run() {
    let project = project(json!([says("initial.fix", "escalate", json!({}))]));
    let ran = go(&project, &[]);
    assert_eq!((ran.code, ran.json()["state"].as_str()), (1, Some("aborted")), "{}", ran.stderr);
}

#[test]
fn a_registry_that_mixes_generations_is_rejected() {
    let project = project(json!([]));
    let path = ".agent/solver/steps_registry.json";
    let text = project.read(path);
    project.write(path, &text.replacen("\"name\": \"initial.fix\"", "\"stepKind\": \"work\"", 1));
    let ran = go(&project, &[]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("this registry mixes generations")
            && ran.stderr.contains("`stepKind` of `initial.fix`"),
        "{}",
        ran.stderr
    );
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn corpus() -> Option<PathBuf> {
    let given = std::env::var_os("CUEGATE_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = given.unwrap_or(beside).join("corpora/climpt/complete/iterator");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: there is no `{}`", folder.display());
    None
}

/// The real agent without the domains that break the rule of its document, in place, with commands that exist here.
pub fn corrected(corpus: &Path, to: &Path) {
    copy(corpus, to);
    let change = |file: &str, change: &dyn Fn(&mut Value)| {
        let path = to.join(file);
        let mut value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        change(&mut value);
        fs::write(path, value.to_string()).unwrap();
    };
    change("agent.json", &|agent| {
        agent["behavior"]["completionType"] = json!("stepMachine");
        agent["worktree"]["enabled"] = json!(false);
        agent["github"]["enabled"] = json!(false);
    });
    change("steps_registry.json", &|registry| {
        let steps = registry["steps"].as_object_mut().unwrap();
        steps.retain(|id, _| !id.contains(".project.") && !id.ends_with(".iterate"));
        registry["entryStepMapping"] = json!({"stepMachine": "initial.externalState"});
        registry["validators"]["type-check"]["command"] = json!("git rev-parse --verify HEAD");
    });
}

#[test]
fn the_real_iterator_is_rejected_and_completes_when_corrected() {
    let Some(corpus) = corpus() else { return };
    let project = Project::empty();
    copy(&corpus, &project.path().join(".agent/broken"));
    let checked = project.run(&["check", "broken", "--set", "issue_number", "--json"]);
    assert_eq!(checked.code, 2);
    let found = checked.json();
    let errors: Vec<&Value> = found["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|found| found["severity"] == "error")
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["code"], "wrong-direction");
    assert_eq!(errors[0]["places"].as_array().unwrap().len(), 13);

    corrected(&corpus, &project.path().join(".agent/iterator"));
    project.write(".gitignore", "/script*\n/.agent/\n");
    project.init();
    let answer = |step: &str, action: &str, more: Value| {
        let mut output = json!({"stepId": step, "status": "in_progress", "summary": format!("{step} done"),
            "issue": {"issue_number": 7}, "next_action": {"action": action}});
        for (key, value) in more.as_object().unwrap() {
            output[key] = value.clone();
        }
        json!({"step": step, "output": output})
    };
    project.script(
        "script.json",
        &json!([
            answer(
                "initial.externalState",
                "continue",
                json!({"analysis": {"understanding": "u", "approach": "a"}})
            ),
            answer(
                "continuation.externalState",
                "retry",
                json!({"iteration": {"current": 2, "work_done": "w"}})
            ),
            answer(
                "continuation.externalState",
                "complete",
                json!({"iteration": {"current": 3, "work_done": "w"}})
            ),
            answer("complete.externalState", "complete", json!({})),
        ]),
    );
    let args = [
        "run",
        "iterator",
        "--issue",
        "7",
        "--no-github",
        "--set",
        "issue_number=7",
        "--script",
        "script.json",
        "--json",
    ];
    let ran = project.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_snapshot!(rows(&ran), @"completed: initial.externalState → continuation.externalState, continuation.externalState → continuation.externalState, continuation.externalState → complete.externalState, complete.externalState → @completed");
    assert_eq!(ran.json()["validated"], true);
}
