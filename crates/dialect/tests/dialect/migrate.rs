//! What a migrated agent is: its files, its steps, its limits, and what scripts say to it.

use std::fmt::Write as _;

use cuegate_dialect::{Migration, OlderAnswers, Options, migrate_agent, migrate_script};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::complete::{COMPLETE, DIR};
use crate::support::{Project, edit, findings, load, project};

fn migrated(files: &Project, dir: &str) -> Migration {
    let options = Options { agent_dir: dir.to_owned(), ..Options::default() };
    migrate_agent(files, &options, None).unwrap()
}

/// What was written, below `new`.
fn written(migration: &Migration) -> Project {
    let file =
        |file: &cuegate_dialect::MigratedFile| (format!("new/{}", file.path), file.text.clone().into_bytes());
    migration.files.iter().map(file).collect()
}

/// What is written is whole: the programs that the agent names are there, and every prompt once.
#[test]
fn a_migrated_agent_has_its_programs_and_each_prompt_once() {
    let verdict = "\"verdict\": { \"type\": \"detect:graph\" }";
    let custom =
        "\"verdict\": { \"type\": \"meta:custom\", \"config\": { \"handlerPath\": \"./bin/judge.sh\" } }";
    let mut files = edit(&project(COMPLETE), verdict, custom);
    files.insert(format!("{DIR}/bin/judge.sh"), b"exit 0\n".to_vec());
    let migration = migrated(&files, DIR);
    let newer = written(&migration);
    assert_eq!(newer.len(), migration.files.len(), "each place once");
    assert_eq!(newer["new/bin/judge.sh"], b"exit 0\n");
    let judge = migration.files.iter().find(|file| file.path == "bin/judge.sh").unwrap();
    assert_eq!(judge.program, Some(format!("{DIR}/bin/judge.sh")));
    assert!(!load(&newer, "new").has_errors(), "{}", findings(&newer, "new"));
    let holders = newer.values().filter(|text| text.starts_with(b"Solve #")).count();
    assert_eq!(holders, 1, "the system prompt is there once");
}

/// A name of its own, in both documents, and logs in a folder of its own.
#[test]
fn a_migrated_agent_is_another_agent() {
    let migration = migrated(&project(COMPLETE), DIR);
    let older = DIR.rsplit('/').next().unwrap();
    assert_eq!(migration.name, format!("{older}-closing"));
    let newer = written(&migration);
    let of = |path: &str| serde_json::from_slice::<Value>(&newer[path]).unwrap();
    assert_eq!(of("new/agent.json")["name"], *migration.name);
    assert_eq!(of("new/steps_registry.json")["agentId"], *migration.name);
    assert!(!findings(&newer, "new").contains("agent-id-mismatch"));
    let options = Options { agent_dir: DIR.to_owned(), ..Options::default() };
    let named = migrate_agent(&project(COMPLETE), &options, Some("other")).unwrap();
    assert_eq!(named.name, "other");
}

/// A registry that stood alone was run with the built-in system prompt, and still is.
#[test]
fn a_registry_alone_gets_an_agent() {
    let flow = json!({"s_0001": step("s_0001", [1, 1], json!({"complete": true}), json!({"retry": true}))});
    let mut files = check_flow(flow, 50);
    files.remove(".agent/checked/agent.json");
    let options = Options {
        agent_dir: ".agent/checked".to_owned(),
        registry: Some(".agent/checked/steps_registry.json".to_owned()),
        ..Options::default()
    };
    let migration = migrate_agent(&files, &options, Some("checked-closing")).unwrap();
    let newer = written(&migration);
    assert_eq!(findings(&newer, "new"), "");
    assert!(!newer["new/system.md"].is_empty());
    assert!(migration.notes.iter().any(|note| note.place == "agent.json"), "{:?}", migration.notes);
}

/// A check flow of steps as given, with the agent's limit.
fn check_flow(steps: Value, limit: u32) -> Project {
    let agent = json!({"name": "checked", "displayName": "Checked", "behavior": {
        "systemPromptPath": "system.md", "completionType": "stepFlow",
        "completionConfig": {"maxIterations": limit}}});
    let registry = json!({"version": "2.0.0", "basePath": "prompts", "entryStep": "s_0001", "steps": steps});
    [
        ("agent.json", agent.to_string()),
        ("steps_registry.json", registry.to_string()),
        ("system.md", "You are an agent.".to_owned()),
        ("prompts/work.md", "---\nstepId: s_0001\nc1: steps\n---\nWork.".to_owned()),
        ("prompts/check.md", "---\nstepId: s_0001\ndescription: of all\n---\nCheck.".to_owned()),
    ]
    .into_iter()
    .map(|(path, text)| (format!(".agent/checked/{path}"), text.into_bytes()))
    .collect()
}

fn step(id: &str, iterations: [u32; 2], pass: Value, fail: Value) -> Value {
    json!({"id": id, "name": format!("Step {id}"), "prompt": {"path": "work.md"},
        "iterations": {"min": iterations[0], "max": iterations[1]},
        "check": {"prompt": {"path": "check.md"}, "onPass": pass, "onFail": fail}})
}

/// Each step with its kind, its words and where they lead.
fn steps(migration: &Migration) -> String {
    let newer = written(migration);
    let registry: Value = serde_json::from_slice(&newer["new/steps_registry.json"]).unwrap();
    let mut text = String::new();
    for (id, step) in registry["steps"].as_object().unwrap() {
        let ways: Vec<String> = step["transitions"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(word, to)| format!("{word} → {}", to["target"].as_str().unwrap_or("end")))
            .collect();
        writeln!(text, "{id} ({}): {}", step["stepKind"].as_str().unwrap(), ways.join(", ")).unwrap();
    }
    text
}

#[test]
fn rounds_are_unrolled() {
    let flow = json!({
        "s_0001": step("s_0001", [2, 3], json!({"next": "s_0002"}), json!({"retry": true, "maxRetries": 1})),
        "s_0002": step("s_0002", [1, 1], json!({"complete": true}), json!({"retry": true})),
    });
    let migration = migrated(&check_flow(flow, 50), ".agent/checked");
    assert_snapshot!(steps(&migration), @"
    initial.s_0001 (work): next → continuation.s_0001.2
    continuation.s_0001.2 (work): next → verification.s_0001.2
    verification.s_0001.2 (verification): next → initial.s_0002, repeat → continuation.s_0001.3
    initial.s_0002 (work): handoff → closure.s_0002
    closure.s_0002 (closure): closing → end, repeat → initial.s_0002
    continuation.s_0001.3 (work): next → verification.s_0001.3
    verification.s_0001.3 (verification): next → initial.s_0002, repeat → continuation.s_0001.retry1
    continuation.s_0001.retry1 (work): next → continuation.s_0001.retry1.2
    continuation.s_0001.retry1.2 (work): next → verification.s_0001.retry1.2
    verification.s_0001.retry1.2 (verification): next → initial.s_0002, repeat → continuation.s_0001.retry1.3
    continuation.s_0001.retry1.3 (work): next → verification.s_0001.retry1.3
    verification.s_0001.retry1.3 (verification): next → initial.s_0002, repeat → failed.verification.s_0001.retry1.3
    failed.verification.s_0001.retry1.3 (work): abort → end
    ");
    let newer = written(&migration);
    let text = |path: &str| String::from_utf8(newer[path].clone()).unwrap();
    assert_snapshot!(text("new/prompts/steps/work/s_0001/f_default.md"), @"Work.");
    assert_snapshot!(text("new/prompts/steps/check/s_0001/f_default.md"), @r#"
    ---
    description: of all
    ---
    Check.

    Say what you found in these words: `"result": "next"` when it passes, `"result": "repeat"` when not. They take the place of `ok` and `ng`, `pass` and `fail`, `true` and `false`.
    "#);
}

/// The limit of executions as one of visits: exact where every execution is checked, or where no run comes to it.
#[test]
fn limits_of_executions_are_limits_of_visits() {
    let back = json!({"fallback": "s_0001"});
    let once = json!({"retry": true, "maxRetries": 1});
    let complete = json!({"complete": true});
    let cases = [
        // Every execution is checked.
        (step("s_0001", [1, 3], complete.clone(), back.clone()), 7, 14, ""),
        // Every other is.
        (step("s_0001", [2, 2], complete.clone(), back.clone()), 7, 10, ""),
        // Now every other is, now each.
        (step("s_0001", [2, 3], back, complete.clone()), 7, 11, "may execute more often"),
        // There is an end to them, before the limit.
        (step("s_0001", [2, 2], complete.clone(), once.clone()), 7, 7, ""),
        // The limit and the last retry meet.
        (step("s_0001", [1, 1], complete, once), 2, 5, ""),
    ];
    for (step, limit, visits, noted) in cases {
        let migration = migrated(&check_flow(json!({"s_0001": step}), limit), ".agent/checked");
        let agent: Value = serde_json::from_slice(&written(&migration)["new/agent.json"]).unwrap();
        let max = &agent["runner"]["verdict"]["config"]["maxIterations"];
        let about = |note: &&cuegate_dialect::MigrationNote| {
            note.changes_runs && note.place.ends_with("maxIterations")
        };
        let notes: Vec<&str> = migration.notes.iter().filter(about).map(|note| &*note.text).collect();
        assert_eq!(*max, visits, "{step}: {notes:?}");
        assert_eq!(notes.is_empty(), noted.is_empty(), "{step}: {notes:?}");
        assert!(notes.iter().all(|note| note.contains(noted)), "{notes:?}");
    }
}

/// Gates of which every text with `ok` in it passes, and whose answers are the whole text.
struct Simple;

impl OlderAnswers for Simple {
    fn object(&self, _: &str, text: &str) -> Option<Value> {
        serde_json::from_str(text.split_once(':').map_or(text, |(_, json)| json)).ok()
    }

    fn passes(&self, _: &str, output: Option<&Value>, text: &str) -> bool {
        output.map_or_else(|| text.to_owned(), ToString::to_string).contains("ok")
    }
}

fn entries(migration: &Migration, script: &Value) -> String {
    let migrated = migrate_script(&script.to_string(), &migration.answers, &Simple).unwrap();
    assert!(migrated.notes.is_empty(), "{:?}", migrated.notes);
    let script: Value = serde_json::from_str(&migrated.text).unwrap();
    let lines = script["answers"].as_array().unwrap().iter().map(ToString::to_string);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn scripts_of_check_flows() {
    let flow = json!({
        "s_0001": step("s_0001", [1, 1], json!({"next": "s_0002"}), json!({"fallback": "s_0001"})),
        "s_0002": step("s_0002", [1, 2], json!({"complete": true}), json!({"fallback": "s_0001"})),
    });
    let migration = migrated(&check_flow(flow, 50), ".agent/checked");
    let script = json!({"answers": [
        {"kind": "work", "text": "did it", "times": 0},
        {"step": "s_0001", "kind": "check", "output": {"result": "ok", "message": "m", "more": 1}},
        {"step": "s_0002", "text": "no"},
        {"output": {"result": "ok"}},
        {"step": "s_0009", "text": "never asked"},
        {"kind": "judge", "text": "never asked"},
        {"step": "s_0001", "error": "crashed"},
    ]});
    let repeated = json!({"answers": [], "on_exhausted": "repeat_last"}).to_string();
    let notes = migrate_script(&repeated, &migration.answers, &Simple).unwrap().notes;
    assert_eq!(notes.len(), 1, "copies repeat their own: {notes:?}");
    assert_snapshot!(entries(&migration, &script), @r#"
    {"step":["initial.s_0001","initial.s_0002","continuation.s_0002.2"],"kind":"work","text":"did it","times":0,"output":{"next_action":{"action":"handoff"}},"at":{"initial.s_0001":{"output":{"next_action":{"action":"next"}},"text":"did it"}}}
    {"step":"verification.s_0001","kind":"work","output":{"result":"next","message":"m"}}
    {"step":["initial.s_0002","closure.s_0002","continuation.s_0002.2","closure.s_0002.2"],"text":"no","output":{"next_action":{"action":"handoff"}},"at":{"closure.s_0002":{"output":{"result":"repeat"},"text":"no"},"closure.s_0002.2":{"output":{"result":"repeat"},"text":"no"}}}
    {"output":{"result":"ok","next_action":{"action":"handoff"},"summary":"{\"result\":\"ok\"}"},"at":{"initial.s_0001":{"output":{"result":"ok","next_action":{"action":"next"},"summary":"{\"result\":\"ok\"}"}},"verification.s_0001":{"output":{"result":"next"}},"closure.s_0002":{"output":{"result":"closing"}},"closure.s_0002.2":{"output":{"result":"closing"}}}}
    {"step":"s_0009","text":"never asked"}
    {"kind":"judge","text":"never asked"}
    {"step":["initial.s_0001","verification.s_0001"],"error":"crashed"}
    "#);
}

/// What meant nothing before means nothing now, and a text that holds an answer is given one in the newer words.
#[test]
fn scripts_of_complete_definitions() {
    let migration = migrated(&project(COMPLETE), DIR);
    let word = |word: &str| json!({"output": {"next_action": {"action": word}}});
    let script = json!([
        {"content": "so: {\"next_action\": {\"action\": \"complete\"}}"},
        {"content": "stuck", "status": "blocked", "persona": "coder"},
    ]);
    assert_snapshot!(entries(&migration, &script), @r#"
    {"text":"so: {\"next_action\": {\"action\": \"complete\"}}","output":{"next_action":{"action":"handoff"}},"at":{"complete.fix":{"output":{"next_action":{"action":"closing"}},"text":"so: {\"next_action\": {\"action\": \"complete\"}}"}}}
    {"persona":"coder","blocked":"stuck","text":"stuck"}
    "#);
    let script = json!({"answers": [word("complete"), word("continue"), word("escalate"), word("handoff"), word("done")]});
    assert_snapshot!(entries(&migration, &script), @r#"
    {"output":{"next_action":{"action":"handoff"}},"at":{"complete.fix":{"output":{"next_action":{"action":"closing"}}}}}
    {"output":{"next_action":{"action":"continue"}}}
    {"output":{"next_action":{"action":"abort"}}}
    {"output":{"next_action":{"action":"no intent: handoff"}},"at":{"complete.fix":{"output":{"next_action":{"action":"handoff"}}}}}
    {"output":{"next_action":{"action":"done"}},"at":{"complete.fix":{"output":{"next_action":{"action":"no intent: done"}}}}}
    "#);
    let repeated = json!({"answers": [], "on_exhausted": "repeat_last"}).to_string();
    assert!(
        migrate_script(&repeated, &migration.answers, &Simple).unwrap().notes.is_empty(),
        "no step has a copy"
    );
    let refused = migrate_script("just words", &migration.answers, &Simple).unwrap_err();
    assert!(refused.contains("`answers`"), "{refused}");
}
