//! Agents of the generations before `runner`: the same settings in other places.

use crate::support::{DIR, Project, dump, edit, findings, load, sound};

/// The settings of the sound agent in the older places.
const OLDER: &str = r#"{
  "version": "1.0.0",
  "name": "fixer",
  "displayName": "Fixer",
  "description": "Fixes an issue",
  "parameters": {
    "issue": { "type": "number", "description": "The issue", "required": true, "cli": "--issue" },
    "baseBranch": { "type": "string", "description": "Base", "default": "main", "cli": "--base-branch" }
  },
  "behavior": {
    "systemPromptPath": "prompts/system.md",
    "completionType": "stepMachine",
    "completionConfig": { "maxIterations": 7 },
    "allowedTools": ["Read", "Edit"],
    "permissionMode": "acceptEdits"
  },
  "prompts": { "registry": "steps_registry.json", "fallbackDir": "prompts/" },
  "worktree": { "enabled": false, "root": "../trees" }
}"#;

/// The same in the places of today.
const NEWER: &str = r#"{
  "version": "1.0.0",
  "name": "fixer",
  "displayName": "Fixer",
  "description": "Fixes an issue",
  "parameters": {
    "issue": { "type": "number", "description": "The issue", "required": true, "cli": "--issue" },
    "baseBranch": { "type": "string", "description": "Base", "default": "main", "cli": "--base-branch" }
  },
  "runner": {
    "flow": {
      "systemPromptPath": "prompts/system.md",
      "prompts": { "registry": "steps_registry.json", "fallbackDir": "prompts/" }
    },
    "verdict": { "type": "detect:graph", "config": { "maxIterations": 7 } },
    "boundaries": { "allowedTools": ["Read", "Edit"], "permissionMode": "acceptEdits" },
    "execution": { "worktree": { "enabled": false, "root": "../trees" } }
  }
}"#;

fn with(agent: &str) -> Project {
    let mut files = sound();
    files.insert(format!("{DIR}/agent.json"), agent.as_bytes().to_vec());
    files
}

fn older(edits: &[(&str, &str)]) -> Project {
    edits.iter().fold(with(OLDER), |files, (from, to)| edit(&files, from, to))
}

#[test]
fn the_older_places_say_the_same() {
    let (older, newer) = (load(&with(OLDER), DIR), load(&with(NEWER), DIR));
    assert_eq!(dump(&older.draft), dump(&newer.draft));
    assert_eq!(older.run, newer.run);
    assert_eq!(older.run.worktree.root.as_deref(), Some("../trees"));
    let found: Vec<&str> = older.diagnostics.iter().map(|found| &*found.message).collect();
    assert_eq!(found, ["`root` has no effect: `worktree` is switched off"]);
    let dumped = dump(&older.draft);
    assert!(
        dumped.contains("at most 7 iterations") && dumped.contains("Only([\"Read\", \"Edit\"])"),
        "{dumped}"
    );
}

#[test]
fn each_completion_type_is_a_verdict_type() {
    let config = "\"completionConfig\": { \"maxIterations\": 7 }";
    let types = [
        ("externalState", "poll:state", "{ \"maxIterations\": 7 }", "{ \"maxIterations\": 7 }"),
        ("iterationBudget", "count:iteration", "{ \"maxIterations\": 3 }", "{ \"maxIterations\": 3 }"),
        ("checkBudget", "count:check", "{ \"maxChecks\": 2 }", "{ \"maxChecks\": 2 }"),
        (
            "keywordSignal",
            "detect:keyword",
            "{ \"completionKeyword\": \"OK\" }",
            "{ \"verdictKeyword\": \"OK\" }",
        ),
        ("structuredSignal", "detect:structured", "{ \"signalType\": \"s\" }", "{ \"signalType\": \"s\" }"),
        ("stepMachine", "detect:graph", "{}", "{}"),
        (
            "composite",
            "meta:composite",
            "{ \"operator\": \"or\", \"conditions\": [{ \"type\": \"keywordSignal\", \"config\": { \"completionKeyword\": \"OK\" } }] }",
            "{ \"operator\": \"or\", \"conditions\": [{ \"type\": \"detect:keyword\", \"config\": { \"verdictKeyword\": \"OK\" } }] }",
        ),
    ];
    for (word, kind, written, meant) in types {
        let before = older(&[("stepMachine", word), (config, &format!("\"completionConfig\": {written}"))]);
        let direct = older(&[("stepMachine", kind), (config, &format!("\"completionConfig\": {meant}"))]);
        let now = [
            ("detect:graph", kind),
            ("\"config\": { \"maxIterations\": 7 }", &format!("\"config\": {meant}")),
        ];
        let now = now.iter().fold(with(NEWER), |files, (from, to)| edit(&files, from, to));
        let expected = load(&now, DIR);
        for files in [before, direct] {
            let loaded = load(&files, DIR);
            assert_eq!(dump(&loaded.draft), dump(&expected.draft), "{word}");
            assert_eq!(loaded.run, expected.run, "{word}");
            assert!(!loaded.has_errors(), "{word}: {:#?}", loaded.diagnostics);
        }
    }
}

#[test]
fn what_is_wrong_is_said_in_the_older_words() {
    let cases: [(&str, &[(&str, &str)]); 10] = [
        ("both generations", &[("\"behavior\": {", "\"runner\": {},\n  \"behavior\": {")]),
        ("unknown type", &[("stepMachine", "stepMachines")]),
        ("config of no type", &[("\"completionType\": \"stepMachine\",\n", "")]),
        ("no system prompt", &[("    \"systemPromptPath\": \"prompts/system.md\",\n", "")]),
        ("unknown key inside", &[("\"allowedTools\": [", "\"allowedTool\": [")]),
        ("unknown key at the top", &[("\"worktree\": {", "\"worktrees\": {")]),
        ("unknown key of the config", &[("\"maxIterations\": 7", "\"maxIteration\": 7")]),
        ("wrong permission", &[("\"acceptEdits\"", "\"acceptEdit\"")]),
        ("missing in the config", &[("stepMachine", "keywordSignal")]),
        (
            "guards of another program",
            &[(
                "\"permissionMode\": \"acceptEdits\"",
                "\"permissionMode\": \"acceptEdits\",\n    \"preCloseValidation\": { \"enabled\": true, \"validators\": [\"git-clean\"], \"onFailure\": \"block\" }",
            )],
        ),
    ];
    let mut text = String::new();
    for (name, edits) in cases {
        text.push_str(&format!(
            "# {name}\n{}",
            findings(&edit(&older(edits), r#", "root": "../trees""#, ""), DIR)
        ));
    }
    insta::assert_snapshot!(text, @"
    # both generations
    agent.json:11:3 error[mixed-generations]: `behavior` and `runner` belong to different generations of agents
    # unknown type
    agent.json:12:23 error[invalid-value]: unknown `completionType` `stepMachines`
    # config of no type
    agent.json:10:15 error[missing-key]: `completionType` is missing in `behavior`
    # no system prompt
    agent.json:10:15 error[missing-key]: `systemPromptPath` is missing in `behavior`
    # unknown key inside
    agent.json:14:5 error[unknown-key]: unknown key `allowedTool` in `behavior`
    # unknown key at the top
    agent.json:18:3 error[unknown-key]: unknown key `worktrees` in the agent
    # unknown key of the config
    agent.json:13:27 error[unknown-key]: unknown key `maxIteration` in `behavior.completionConfig`
    # wrong permission
    agent.json:15:23 error[invalid-value]: `acceptEdit` is no `permissionMode`
    # missing in the config
    agent.json:13:25 error[missing-key]: `verdictKeyword` is missing in `behavior.completionConfig`
    # guards of another program
    agent.json:16:40 warning[unsupported-yet]: `preCloseValidation` has no effect: nothing but the registry guards the end of a run
    ");
}

#[test]
fn a_part_of_the_older_generation_beside_runner_is_named() {
    let files = edit(&with(NEWER), "\"runner\": {", "\"logging\": {},\n  \"runner\": {");
    insta::assert_snapshot!(findings(&files, DIR), @"agent.json:10:3 error[mixed-generations]: `logging` and `runner` belong to different generations of agents");
}
