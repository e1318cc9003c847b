//! Answers, validators and edits in small definitions.

use crate::{
    agent::registry::{Registry, begin, says, says_with, small},
    support::{Project, Ran, rows},
};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// A finished run's result.
fn ended(ran: &Ran, code: i32, state: &str) -> Value {
    assert_eq!(ran.code, code, "{}", ran.stderr);
    let result = ran.json();
    assert_eq!(result["state"], state, "{result}");
    assert_eq!(result["exit_code"], code);
    result
}

fn go(registry: &Registry, answers: Value, more: &[&str]) -> (Project, Ran) {
    let project = registry.project(answers);
    let ran = project.go(&[more, &["--json"]].concat());
    (project, ran)
}

/// As [`go`], without a sandbox, which would prevent what a read-only step may not do.
fn go_outside(registry: &Registry, answers: Value, more: &[&str]) -> (Project, Ran) {
    let project = registry.project(answers).outside();
    let ran = project.go(&[more, &["--json"]].concat());
    (project, ran)
}

/// The reasons for rejected answers.
fn rejected(project: &Project) -> Vec<String> {
    project.events("answer_rejected").iter().map(|event| event["why"].as_str().unwrap().to_owned()).collect()
}

fn reason(result: &Value) -> &str {
    result["reason"].as_str().unwrap()
}

// Intents.

#[test]
fn a_missing_intent_is_repaired() {
    let (project, ran) = go(&small(), json!([{"step": "work", "text": "All is well.", "times": 2}]), &[]);
    let result = ended(&ran, 1, "failed");
    assert_snapshot!(reason(&result), @r#"
    [StepFlow] No intent produced for iteration 1 on step "work".
    Flow steps must produce structured output with a valid intent.
    Check that the step's schema includes next_action.action and the LLM returns valid JSON. (the answer has no JSON object)
    "#);
    assert_eq!((&result["asks"]["work"], &result["asks"]["repair"]), (&json!(1), &json!(1)));
    assert_eq!(rejected(&project), ["the answer has no JSON object"; 2]);
    assert_snapshot!(project.prompts()[1], @r#"
    Your answer could not be used: the answer has no JSON object.

    Answer again with all of it corrected. It has to be one JSON object of this JSON Schema:

    ```json
    {"type":"object","required":["next_action"],"properties":{"next_action":{"type":"object","required":["action"],"properties":{"action":{"type":"string","enum":["repeat","handoff","abort"]}},"additionalProperties":false}},"additionalProperties":false}
    ```
    "#);
}

#[test]
fn a_wrong_intent_is_repaired_once() {
    let (project, ran) = go(
        &small(),
        json!([
            {"step": "work", "kind": "work", "output": {"next_action": {"action": "fly"}}},
            {"step": "work", "kind": "repair", "text": "Sorry.\n```json\n{\"next_action\": {\"action\": \" HandOff \"}}\n```"},
            says("close", "done")
        ]),
        &[],
    );
    let result = ended(&ran, 0, "completed");
    assert_eq!((&result["asks"]["work"], &result["asks"]["repair"]), (&json!(2), &json!(1)));
    assert_eq!(result["steps"][0]["asks"], 2);
    assert_eq!(rows(&result), "work: handoff → close\nclose: closing → @completed");
    assert_eq!(
        rejected(&project),
        ["`next_action.action` is `fly`, allowed are `repeat`, `handoff`, `abort`"]
    );
}

#[test]
fn strict_repairs_nothing() {
    let answers = json!([says("work", "fly"), says("work", "handoff")]);
    let (project, ran) = go(&small(), answers, &["--repairs", "0"]);
    let result = ended(&ran, 1, "failed");
    assert_eq!(
        reason(&result),
        "the answer of `work` cannot be used: `next_action.action` is `fly`, allowed are `repeat`, `handoff`, `abort`"
    );
    assert_eq!(project.prompts().len(), 1);
}

#[test]
fn an_answer_that_violates_its_schema_is_repaired() {
    let registry = small().field("work", json!({"size": {"type": "integer"}}));
    let answers = json!([
        {"step": "work", "output": {"next_action": {"action": "handoff"}, "size": "big"}},
        says("work", "handoff"), says("close", "closing")
    ]);
    let (project, ran) = go(&registry, answers, &[]);
    ended(&ran, 0, "completed");
    let why = &rejected(&project)[0];
    assert!(why.contains("size") && why.contains("integer"), "{why}");
}

#[test]
fn fallback_intent_replaces_an_unreadable_intent() {
    let gate = json!({"structuredGate": {"failFast": false, "fallbackIntent": "repeat"}});
    let answers = json!([says("work", "fly"), says("work", "handoff"), says("close", "closing")]);
    let (project, ran) = go(&small().with("work", gate), answers, &["--repairs", "0"]);
    let result = ended(&ran, 0, "completed");
    assert_eq!(rows(&result), "work: repeat → work\nwork: handoff → close\nclose: closing → @completed");
    let fallbacks: Vec<Value> =
        project.events("decided").into_iter().map(|event| event["fallback"].clone()).collect();
    assert_eq!(fallbacks, [true, false, false]);
}

#[test]
fn abort_is_always_allowed() {
    let registry =
        small().field("work", json!({"next_action": {"properties": {"reason": {"type": "string"}}}}));
    let why = json!({"output": {"next_action": {"reason": "It cannot be done."}}});
    let (project, ran) = go(&registry, json!([says_with("work", "abort", why)]), &[]);
    let result = ended(&ran, 1, "aborted");
    assert_eq!(rows(&result), "work: abort → @aborted");
    assert_eq!(project.events("decided")[0]["reason"], "It cannot be done.");
}

#[test]
fn abort_is_allowed_with_any_other_fields() {
    let says_why = json!({"properties": {"action": {"const": "repeat"}}, "required": ["reason"]});
    let leads_on = json!({"properties": {"action": {"const": "handoff"}}});
    let around = json!({"properties": {"reason": {"type": "string"}}, "oneOf": [says_why, leads_on]});
    let registry = small().field("work", json!({ "next_action": around }));
    let answers = json!([says("work", "repeat"), says("work", "abort")]);
    let (project, ran) = go(&registry, answers, &["--repairs", "1"]);
    let result = ended(&ran, 1, "aborted");
    assert_eq!(rows(&result), "work: abort → @aborted");
    assert_eq!(rejected(&project).len(), 1, "it still has to say why it repeats");
}

// Jumps and conditions.

/// `work` jumps; `left` and `right` hand off to `close`.
fn fork(jump: Value, gate: Value) -> Registry {
    let transitions = match jump {
        Value::Null => json!({"handoff": {"target": "close"}}),
        jump => json!({"handoff": {"target": "close"}, "jump": jump}),
    };
    let on = || json!({"handoff": {"target": "close"}, "next": {"target": "work"}});
    Registry::new()
        .step("work", "work", transitions)
        .step("left", "work", on())
        .step("right", "work", on())
        .step("close", "closure", json!({"closing": {"target": null}}))
        .with("work", json!({"structuredGate": {"allowedIntents": ["handoff", "jump"]}}))
        .with("work", json!({ "structuredGate": gate }))
        .field("work", json!({"next_action": {"properties": {"action": {"enum": ["handoff", "jump"]}}}}))
        .field("work", json!({"to": {"type": "string"}}))
}

fn jumps(to: &str) -> Value {
    json!({"step": "work", "output": {"next_action": {"action": "jump"}, "to": to}})
}

#[test]
fn jumps_to_named_steps_only() {
    let registry = fork(json!({"targets": {"a": "left"}}), json!({"targetField": "to"}));
    let answers = json!([jumps("right"), jumps("left"), says("left", "handoff"), says("close", "closing")]);
    let (project, ran) = go(&registry, answers, &[]);
    let result = ended(&ran, 0, "completed");
    assert_eq!(rows(&result), "work: jump → left\nleft: handoff → close\nclose: closing → @completed");
    assert_eq!(rejected(&project), ["cannot jump to `right`, allowed are `left`"]);
}

#[test]
fn jumps_to_any_step_except_the_closure_step() {
    let registry = fork(Value::Null, json!({"targetField": "to"}));
    let answers = json!([
        jumps("right"),
        says("right", "next"),
        jumps("close"),
        jumps("work"),
        jumps("left"),
        says("left", "handoff"),
        says("close", "closing")
    ]);
    let (project, ran) = go(&registry, answers, &[]);
    let result = ended(&ran, 0, "completed");
    assert_snapshot!(rows(&result), @"
    work: jump → right
    right: next → work
    work: jump → work
    work: jump → left
    left: handoff → close
    close: closing → @completed
    ");
    assert_eq!(rejected(&project), ["cannot jump to `close`, allowed are `work`, `left`, `right`"]);
}

#[test]
fn jumps_to_the_target_that_a_value_selects() {
    let registry = fork(
        json!({"targets": {"ui": "left", "db": "right"}}),
        json!({"targetField": "to", "targetMode": "conditional"}),
    );
    let answers = json!([jumps("left"), jumps("db"), says("right", "handoff"), says("close", "closing")]);
    let (project, ran) = go(&registry, answers, &[]);
    let result = ended(&ran, 0, "completed");
    assert_eq!(rows(&result), "work: jump → right\nright: handoff → close\nclose: closing → @completed");
    assert_eq!(rejected(&project), ["`to` is `left`, allowed are `ui`, `db`"]);
}

#[test]
fn a_jump_without_a_target_follows_the_transition() {
    let registry = fork(json!({"target": "right"}), json!({}));
    let answers = json!([jumps("left"), says("right", "handoff"), says("close", "closing")]);
    let (_project, ran) = go(&registry, answers, &[]);
    assert_eq!(
        rows(&ended(&ran, 0, "completed")),
        "work: jump → right\nright: handoff → close\nclose: closing → @completed"
    );
}

#[test]
fn a_handoff_value_selects_the_target() {
    let registry = |targets: Value, kind: Value| {
        let on = || json!({"handoff": {"target": "close"}});
        Registry::new()
            .step("work", "work", json!({"next": {"condition": "area", "targets": targets}}))
            .step("left", "work", on())
            .step("right", "work", on())
            .step("close", "closure", json!({"closing": {"target": null}}))
            .with("work", json!({"structuredGate": {"handoffFields": ["about.area"]}}))
            .field("work", json!({"about": {"type": "object", "properties": {"area": kind}}}))
    };
    let words = || registry(json!({"ui": "left", "default": "right"}), json!({"type": "string"}));
    let booleans = || registry(json!({"true": "left", "false": "right"}), json!({"type": "boolean"}));
    let numbers = || registry(json!({"1": "left", "default": "right"}), json!({"type": "integer"}));
    for (registry, area, way) in [
        (words(), json!("ui"), "left"),
        (words(), json!("db"), "right"),
        (words(), Value::Null, "right"),
        (booleans(), json!(true), "left"),
        (booleans(), json!(false), "right"),
        (numbers(), json!(1), "left"),
        (numbers(), json!(1.0), "left"),
        (numbers(), json!(11), "right"),
    ] {
        let mut output = json!({"next_action": {"action": "next"}});
        if !area.is_null() {
            output["about"] = json!({ "area": area });
        }
        let answers =
            json!([{"step": "work", "output": output}, says(way, "handoff"), says("close", "closing")]);
        let (_project, ran) = go(&registry, answers, &["--durability", "relaxed"]);
        let result = ended(&ran, 0, "completed");
        assert_eq!(result["steps"][0]["target"], way, "{area}");
    }
}

#[test]
fn a_value_without_a_matching_target_is_an_unusable_answer() {
    let registry = Registry::new()
        .step("work", "work", json!({"handoff": {"condition": "area", "targets": {"ui": "close"}}}))
        .step("close", "closure", json!({"closing": {"target": null}}))
        .with("work", json!({"structuredGate": {"handoffFields": ["area"]}}))
        .field("work", json!({"area": {"type": "string"}}));
    let answer = |area: &str| says_with("work", "handoff", json!({"output": {"area": area}}));
    let (project, ran) = go(&registry, json!([answer("db"), answer("ui"), says("close", "closing")]), &[]);
    ended(&ran, 0, "completed");
    assert_eq!(rejected(&project), ["`area` is `db`, allowed are `ui`"]);
}

// Validators.

fn closing_twice() -> Value {
    json!([
        says("work", "handoff"),
        says_with("close", "closing", json!({"times": 0})),
        says_with("work", "handoff", json!({"kind": "remedy", "times": 0}))
    ])
}

#[test]
fn a_failed_validator_leads_to_a_remedy() {
    let registry = small().validator("echo 'it is not done'; test -e done.txt", json!({"action": "retry"}));
    let answers = json!([
        says("work", "handoff"),
        says_with("close", "closing", json!({"times": 2})),
        says_with(
            "work",
            "handoff",
            json!({"kind": "remedy", "writes": [{"path": "done.txt", "content": ""}]})
        )
    ]);
    let (project, ran) = go(&registry, answers, &[]);
    let result = ended(&ran, 0, "completed");
    assert_snapshot!(rows(&result), @"
    work: handoff → close
    close: closing → work
    work (remedy): handoff → close
    close: closing → @completed
    ");
    assert_eq!((&result["validated"], &result["asks"]["remedy"]), (&json!(true), &json!(1)));
    assert_eq!(result["iterations"], 4, "a remedy is an iteration");
    assert!(project.prompts()[2].contains("Mend it. It says:\n"), "{:?}", project.prompts());
    assert!(project.prompts()[2].contains("it is not done"), "{:?}", project.prompts());
}

#[test]
fn remedies_are_limited() {
    let registry = small().validator("exit 3", json!({"action": "retry", "maxAttempts": 2}));
    let (_project, ran) = go(&registry, closing_twice(), &[]);
    let result = ended(&ran, 1, "failed");
    assert_eq!(result["asks"]["remedy"], 2);
    assert_eq!(reason(&result), "validator `proof` still fails after 2 retries");
    assert!(rows(&result).ends_with("close: closing → @failed"), "{}", rows(&result));
}

/// Only its end decides. The report quotes the start and the end of what it printed, a prompt the end.
#[test]
fn a_validator_that_prints_much_is_read_on() {
    let loud = "echo first line; head -c 9000000 /dev/zero | tr '\\0' x; echo; echo last line";
    let answers = json!([says("work", "handoff"), says("close", "closing")]);
    let (_project, ran) = go(&small().validator(loud, json!({"action": "abort"})), answers, &[]);
    assert_eq!(ended(&ran, 0, "completed")["validated"], true);
    let fails = format!("{loud}; exit 3");
    let registry = small().validator(&fails, json!({"action": "retry", "maxAttempts": 1}));
    let (project, ran) = go(&registry, closing_twice(), &[]);
    ended(&ran, 1, "failed");
    let prompts = project.prompts();
    let remedy = prompts.iter().find(|prompt| prompt.contains("Mend it")).expect("a remedy is asked for");
    assert!(remedy.contains("last line"), "{}", remedy.len());
    assert!(remedy.len() < 200_000, "{}", remedy.len());
    let report = project.run(&["report"]).stdout;
    assert!(report.contains("first line") && report.contains("last line"), "{}", report.len());
    assert!(report.len() < 60_000, "{}", report.len());
}

#[test]
fn a_failed_validator_ends_the_run() {
    for on_failure in [json!({"action": "abort"}), json!({"action": "retry", "maxAttempts": 0})] {
        let (_project, ran) = go(&small().validator("exit 3", on_failure), closing_twice(), &[]);
        let result = ended(&ran, 1, "failed");
        assert_eq!(rows(&result), "work: handoff → close\nclose: closing → @failed");
        assert_eq!(result["asks"]["remedy"], 0);
    }
}

#[test]
fn a_failed_validator_can_be_skipped() {
    let registry = small().validator("exit 3", json!({"action": "skip"}));
    let project = registry.project(closing_twice());
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("note        the validators of `close` failed and were skipped"),
        "{}",
        ran.stderr
    );
    let status = project.status();
    assert_eq!((&status["state"], &status["validated"]), (&json!("completed"), &json!(false)));
    assert_eq!(project.events("validation_skipped").len(), 1);
}

#[test]
fn a_validator_that_is_killed_does_not_pass() {
    let registry = small().validator("kill -9 $$", json!({"action": "abort"}));
    let (project, ran) = go(&registry, closing_twice(), &[]);
    ended(&ran, 1, "failed");
    let finished = project.events("command_finished");
    assert_eq!(
        (&finished[0]["passed"], &finished[0]["ended"]),
        (&json!(false), &json!("killed by signal 9"))
    );
}

#[test]
fn an_iteration_count_completes_the_run() {
    let registry = small()
        .validator("exit 3", json!({"action": "abort"}))
        .runner(json!({"verdict": {"type": "count:iteration", "config": {"maxIterations": 2}}}));
    let answers = json!([says_with("work", "repeat", json!({"times": 0}))]);
    let (_project, ran) = go(&registry, answers, &[]);
    let result = ended(&ran, 0, "completed");
    assert_eq!(rows(&result), "work: repeat → work\nwork: repeat → @completed");
    assert_eq!((&result["validated"], reason(&result)), (&json!(false), "2 iterations done"));
}

// The working tree.

/// An answer that writes a file.
fn writes(step: &str, intent: &str, path: &str) -> Value {
    says_with(step, intent, json!({"writes": [{"path": path, "content": "two\n"}]}))
}

fn reader() -> Registry {
    small().with("work", json!({"permissionMode": "plan"}))
}

#[test]
fn a_read_only_step_that_writes_in_place_fails() {
    let answers = json!([writes("work", "handoff", "a.txt"), says("close", "closing")]);
    let (project, ran) = go_outside(&reader(), answers, &[]);
    let result = ended(&ran, 1, "failed");
    assert_eq!(reason(&result), "`work` may not write (permission `plan`), but changed `a.txt`");
    assert_eq!(result["steps"][0]["violations"], json!(["a.txt"]));
    assert_eq!(project.read("a.txt"), "two\n", "in place nothing is undone");
}

#[test]
fn new_files_of_a_read_only_step_can_be_tolerated() {
    let spared = |paths: &[&str], config: &str| {
        let written: Vec<Value> = paths.iter().map(|path| json!({"path": path, "content": "x\n"})).collect();
        let answers =
            json!([says_with("work", "handoff", json!({"writes": written})), says("close", "closing")]);
        let project = reader().project(answers).outside();
        project.write("cuegate.toml", config);
        let result = project.go(&["--json"]).json();
        let row = &result["steps"][0];
        (result["state"].clone(), row["violations"].clone(), row["changed_files"].clone())
    };
    let warn = "[boundary]\nuntracked = \"warn\"\n";
    assert_eq!(spared(&["new.txt"], "").0, "failed");
    assert_eq!(spared(&["new.txt"], "[boundary]\nuntracked = \"violation\"\n").0, "failed");
    let (state, violations, changed) = spared(&["new.txt"], warn);
    assert_eq!((state, violations, changed), (json!("completed"), json!([]), json!(["new.txt"])));
    // Existing files are not new files.
    let (state, violations, _) = spared(&["new.txt", "a.txt"], warn);
    assert_eq!((state, violations), (json!("failed"), json!(["a.txt"])));
}

#[test]
fn writes_of_a_read_only_step_are_reverted_in_a_worktree() {
    let answers = json!([
        says_with(
            "work",
            "handoff",
            json!({"writes": [
            {"path": "a.txt", "content": "two\n"}, {"path": "new/b.txt", "content": "b\n"}]})
        ),
        says_with("work", "handoff", json!({"kind": "repair"})),
        says("close", "closing")
    ]);
    let (project, ran) = go_outside(&reader(), answers, &["--worktree"]);
    let result = ended(&ran, 0, "completed");
    assert_eq!(result["asks"]["repair"], 1);
    assert_eq!(result["steps"][0]["violations"], json!(["a.txt", "new/b.txt"]));
    let work = result["place"]["work"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(format!("{work}/a.txt")).unwrap(), "one\n");
    assert!(!std::path::Path::new(&format!("{work}/new")).exists());
    assert_eq!(project.run(&["diff", "last"]).stdout, "");
    assert!(rejected(&project)[0].contains("may not write"), "{:?}", rejected(&project));
}

#[test]
fn a_read_only_step_may_not_commit() {
    let commit = "git -c user.name=A -c user.email=a@localhost commit --quiet --allow-empty -m empty";
    let answers = json!([says_with("work", "handoff", json!({"runs": [commit]})), says("close", "closing")]);
    let (_project, ran) = go_outside(&reader(), answers, &[]);
    let result = ended(&ran, 1, "failed");
    assert_eq!(result["steps"][0]["violations"], json!(["HEAD"]));
}

#[test]
fn commits_of_a_read_only_step_are_reverted_in_a_worktree() {
    let commit = "git -c user.name=A -c user.email=a@localhost commit --quiet --allow-empty -m mine";
    let elsewhere = "git branch --quiet somebody-else";
    let answers = json!([
        says_with("work", "handoff", json!({"runs": ["echo x >> a.txt; git add a.txt", commit, elsewhere]})),
        says_with("work", "handoff", json!({"kind": "repair"})),
        says("close", "closing")
    ]);
    let (project, ran) = go_outside(&reader(), answers, &["--worktree"]);
    let result = ended(&ran, 0, "completed");
    assert_eq!(result["steps"][0]["violations"], json!(["a.txt", "HEAD"]));
    let branch = result["place"]["branch"].as_str().unwrap();
    assert_eq!(project.git(&["log", "--format=%s", branch]), "begin\n");
    let work = result["place"]["work"].as_str().unwrap();
    assert_eq!(project.git(&["-C", work, "status", "--porcelain"]), "");
    // Other branches of the agent stay in its own git folder.
    assert!(!project.git(&["branch", "--list"]).contains("somebody-else"));
    assert!(result["left_in_git"].to_string().contains("the branch `somebody-else`"), "{result}");
}

#[test]
fn a_read_only_step_may_write_ignored_files() {
    let answers = json!([writes("work", "handoff", "script-notes.txt"), says("close", "closing")]);
    let (_project, ran) = go_outside(&reader(), answers, &[]);
    assert_eq!(ended(&ran, 0, "completed")["steps"][0]["changed_files"], json!([]));
}

#[test]
fn a_worktree_run_does_not_change_the_main_tree() {
    let project = small().project(json!([
        says_with("work", "handoff", json!({
            "writes": [{"path": "a.txt", "content": "two\n"}], "runs": ["git commit --quiet --all --message Two"]})),
        says("close", "closing")
    ]));
    // Uncommitted changes are not in the worktree.
    project.write("mine.txt", "mine\n");
    let before = project.git(&["rev-parse", "HEAD"]);
    let ran = project.go(&["--worktree", "--json"]);
    let result = ended(&ran, 0, "completed");
    assert_eq!(project.read("a.txt"), "one\n");
    assert_eq!(project.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(project.git(&["status", "--porcelain"]), "?? mine.txt\n");
    let branch = result["place"]["branch"].as_str().unwrap();
    assert_eq!(branch, format!("cuegate/{}", result["run"].as_str().unwrap()));
    assert_eq!(project.git(&["log", "--format=%s", branch]), "Two\nbegin\n");
    assert_eq!(project.git(&["show", &format!("{branch}:a.txt")]), "two\n");
    let work = std::path::PathBuf::from(result["place"]["work"].as_str().unwrap());
    assert!(work.starts_with(project.path().join(".cuegate/worktrees")) && !work.join("mine.txt").exists());
    assert_eq!(result["steps"][0]["changed_files"], json!(["a.txt"]));
    let diff = project.run(&["diff", "last"]).stdout;
    assert!(diff.contains("-one\n+two\n"), "{diff}");
}

#[test]
fn earlier_uncommitted_changes_are_not_attributed_to_a_step() {
    let project = small().project(json!([
        says_with(
            "work",
            "handoff",
            json!({"writes": [
            {"path": "b.txt", "content": "b\n"}, {"path": "mine.txt", "content": "mine\n"}]})
        ),
        says("close", "closing")
    ]));
    project.write("a.txt", "mine\n");
    project.write("mine.txt", "mine\n");
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("in place, with uncommitted changes\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nchanged     1 file: b.txt +1\n"), "{}", ran.stderr);
    assert_eq!(project.status()["steps"][0]["changed_files"], json!(["b.txt"]));
    let diff = project.run(&["diff", "last", "--json"]).json();
    assert_eq!(diff["files"], json!([{"path": "b.txt", "added": 1, "removed": 0}]));
}

#[test]
fn outside_git_everything_except_diff_works() {
    let project = Project::empty();
    small().validator("test -e b.txt", json!({"action": "abort"})).write(&project);
    project.script("script.json", &json!([writes("work", "handoff", "b.txt"), says("close", "closing")]));
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("\nundo") && !ran.stderr.contains("cuegate diff"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(", in place, not a git repository: changes are neither recorded nor checked"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("\nchanged     unknown: "), "{}", ran.stderr);
    assert_eq!(project.read("b.txt"), "two\n");
    assert_eq!(project.status()["validated"], true);
    for command in ["status", "log", "report", "runs"] {
        let args = if command == "runs" { vec![command] } else { vec![command, "last"] };
        assert_eq!(project.run(&args).code, 0, "{command}");
    }
    let diff = project.run(&["diff", "last"]);
    assert_eq!((diff.code, &*diff.stdout), (2, ""));
    assert!(
        diff.stderr.contains(" worked outside of git") && diff.stderr.contains("\nhint: "),
        "{}",
        diff.stderr
    );
    let before = project.runs();
    let worktree = project.run(&begin(&["--worktree"]));
    assert_eq!(worktree.code, 2);
    assert!(worktree.stderr.contains("not in a git repository\nhint: "), "{}", worktree.stderr);
    assert_eq!(project.runs(), before);
}

#[test]
fn a_write_outside_the_worktree_is_a_violation() {
    // Files beside the project are not from this test, so the name must be unique.
    let name = format!("../cuegate-{}-out.txt", std::process::id());
    let answers = json!([writes("work", "handoff", &name), says("close", "closing")]);
    let (project, ran) = go(&small(), answers, &[]);
    let result = ended(&ran, 1, "failed");
    let said = format!("`{name}` leads out of the working tree");
    assert!(reason(&result).contains(&said), "{}", reason(&result));
    assert!(!project.path().join(&name).exists());
}

#[test]
fn writes_of_a_read_only_step_in_place_can_be_undone() {
    let project =
        reader().project(json!([writes("work", "handoff", "a.txt"), says("close", "closing")])).outside();
    let ran = project.go(&[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("\nchanged     1 file: a.txt +1 −1\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nundo        cuegate undo "), "{}", ran.stderr);
    assert!(project.run(&["diff", "last"]).stdout.contains("-one\n+two\n"));
}

#[test]
fn a_long_wrong_intent_is_quoted_briefly() {
    let long = "fly ".repeat(50_000);
    let answers = json!([says_with("work", &long, json!({"times": 2})), says("close", "closing")]);
    let (project, ran) = go(&small(), answers, &[]);
    let result = ended(&ran, 1, "failed");
    assert!(reason(&result).len() < 1_000, "{} characters", reason(&result).len());
    assert!(project.prompts().iter().all(|prompt| prompt.len() < 20_000));
    for event in project.log().iter().filter(|event| event["event"] != "answered") {
        assert!(event.to_string().len() < 10_000, "{}", event["event"]);
    }
}
