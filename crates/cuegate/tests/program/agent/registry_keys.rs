//! Keys of `agent.json` outside steps: the arguments of the agent program, the place of a run, and the displayed names.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::{
    agent::registry::{Registry, begin, says, says_with, small},
    support::{Project, Ran},
};

/// A program called `claude` that answers at once: `handoff` to who is asked to work, `closing` to all others. What it was
/// started with stands in `asked.txt`: its arguments, and the text of its system prompt.
const STAND_IN: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo '99.1.0 (Claude Code)'; exit 0; }
for word; do
  case "$word" in
    --append-system-prompt-file=*) echo "system: $(cat "${word#*=}")" >> "$ASKED" ;;
    --model=* | --permission-mode=* | --tools=* | --disallowedTools=*) echo "$word" >> "$ASKED" ;;
  esac
done
case "$(cat)" in *"Do work"*) way=handoff ;; *) way=closing ;; esac
echo '{"type":"system","subtype":"init","session_id":"s1","model":"m"}'
echo '{"type":"result","subtype":"success","is_error":false,"session_id":"s1","result":"","structured_output":{"next_action":{"action":"'$way'"}},"usage":{"input_tokens":1,"output_tokens":1},"total_cost_usd":0}'
"#;

/// What the stand-in was started with, ask by ask, in a run of this agent.
fn asked(registry: &Registry) -> Vec<String> {
    let project = registry.project(json!([])).outside();
    let bin = tempfile::tempdir().unwrap();
    let program = bin.path().join("claude");
    fs::write(&program, STAND_IN).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let told = bin.path().join("asked.txt");
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap());
    let mut command = project.command(&["run", "agent", "--provider", "claude", "--unlimited"]);
    command.env("PATH", path).env("ASKED", &told).env("ANTHROPIC_API_KEY", "of-a-test");
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    fs::read_to_string(told).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn an_agent_is_started_with_the_model_permission_and_system_prompt_of_its_step() {
    assert_eq!(
        asked(&small()),
        [
            "--permission-mode=acceptEdits",
            "--model=opus",
            "system: You are an agent.",
            "--permission-mode=acceptEdits",
            "--model=opus",
            "system: You are an agent."
        ],
        "`opus` where nobody names a model"
    );
    let registry = small()
        .runner(json!({"flow": {"defaultModel": "sonnet", "askUserAutoResponse": "Decide yourself."},
            "boundaries": {"permissionMode": "bypassPermissions", "allowedTools": ["Read", "Bash"]}}))
        .with("work", json!({"model": "haiku", "permissionMode": "plan"}));
    let system = "system: You are an agent.";
    let told = asked(&registry);
    let lines: Vec<&str> = told.iter().map(String::as_str).collect();
    for line in [
        "--permission-mode=dontAsk",
        "--model=haiku",
        "--tools=Read,Bash",
        "--disallowedTools=AskUserQuestion",
        system,
    ] {
        assert!(lines.contains(&line), "{line}: {lines:#?}");
    }
    let second = lines.iter().rposition(|line| line.starts_with("--permission-mode")).unwrap();
    assert_eq!(
        lines[second..second + 2],
        ["--permission-mode=bypassPermissions", "--model=sonnet"],
        "{lines:#?}"
    );
}

/// The four permission modes, each with an agent that writes.
#[test]
fn each_permission_mode_allows_or_forbids_edits() {
    for (mode, may_write) in
        [("plan", false), ("default", false), ("acceptEdits", true), ("bypassPermissions", true)]
    {
        let writes = json!({"writes": [{"path": "a.txt", "content": "two\n"}]});
        let project = small()
            .runner(json!({"boundaries": {"permissionMode": mode}}))
            .project(json!([says_with("work", "handoff", writes), says("close", "closing")]))
            .outside();
        let ran = project.go(&["--json", "--durability", "relaxed"]);
        let result = ran.json();
        let expected = if may_write { "completed" } else { "failed" };
        assert_eq!(result["state"], expected, "{mode}: {}", ran.stderr);
        if !may_write {
            let reason = format!("`work` may not write (permission `{mode}`), but changed `a.txt`");
            assert_eq!(result["reason"], json!(reason));
        }
    }
}

fn working(worktree: Value) -> (Project, Value) {
    let writes = json!({"writes": [{"path": "a.txt", "content": "two\n"}]});
    let project = small()
        .runner(json!({"execution": {"worktree": worktree, "finalize": {"autoMerge": false}}}))
        .project(json!([says_with("work", "handoff", writes), says("close", "closing")]));
    let ran = project.go(&["--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (project, ran.json())
}

#[test]
fn a_definition_configures_the_worktrees_of_its_runs() {
    let (project, result) = working(json!({"enabled": false}));
    assert_eq!((project.read("a.txt"), &result["place"]["branch"]), ("two\n".to_owned(), &Value::Null));

    let (project, result) = working(json!({"enabled": true}));
    assert_eq!(project.read("a.txt"), "one\n", "the main tree stays as it is");
    let work = result["place"]["work"].as_str().unwrap();
    assert!(work.starts_with(project.path().join(".cuegate/worktrees").to_str().unwrap()), "{work}");
    assert_eq!(fs::read_to_string(format!("{work}/a.txt")).unwrap(), "two\n");

    let elsewhere = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(elsewhere.path()).unwrap().join("trees");
    let (project, result) = working(json!({"enabled": true, "root": root}));
    let work = result["place"]["work"].as_str().unwrap();
    assert!(work.starts_with(root.to_str().unwrap()), "{work}");
    assert_eq!(fs::read_to_string(format!("{work}/a.txt")).unwrap(), "two\n");
    assert_eq!(project.read("a.txt"), "one\n");
}

/// `name` is how results and lists call it; `displayName` and `description` are for people; steps have names for people
/// too, and a validation's is that of its commands.
#[test]
fn names_appear_in_results_and_display_names_in_help() {
    let project = small()
        .agent(json!({"displayName": "The Mender", "description": "Mends what is broken."}))
        .with("work", json!({"name": "Look and mend"}))
        .validator("true", json!({"action": "retry"}))
        .project(json!([says("work", "handoff"), says("close", "closing")]));
    let ran = project.run(&begin(&["--json"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["agent"].as_str().or(ran.json()["flow"].as_str()), Some("agent"), "{}", ran.stdout);
    let shown = project.run(&["show", "agent"]).stdout;
    for part in ["Look and mend", "Proof"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let help = project.run(&["run", "agent", "--help"]).stdout;
    assert!(help.starts_with("Run The Mender: Mends what is broken.\n"), "{help}");
    assert!(project.run(&["runs"]).stdout.contains("agent"));
}

fn logging(settings: Value) -> Project {
    let project = small()
        .runner(json!({ "logging": settings }))
        .project(json!([says("work", "handoff"), says("close", "closing")]));
    assert_eq!(project.go(&[]).code, 0);
    project
}

#[test]
fn logging_defaults_to_jsonl_in_logs() {
    let project = logging(json!({}));
    let run = project.status()["run"].as_str().unwrap().to_owned();
    let log = project.read(&format!("logs/cuegate-{run}.jsonl"));
    let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(first["schema"], "cuegate/event/v1");
}

#[test]
fn without_logging_there_is_no_log_file() {
    let project = small().project(json!([says("work", "handoff"), says("close", "closing")]));
    assert_eq!(project.go(&[]).code, 0);
    assert!(!project.path().join("logs").exists());
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

/// The places of agents before `runner`: what they say of worktrees, logs and who is asked holds in a run as well.
#[test]
fn settings_beside_behavior_act_in_a_run() {
    let writes = json!({"writes": [{"path": "a.txt", "content": "two\n"}]});
    let project = small().project(json!([says_with("work", "handoff", writes), says("close", "closing")]));
    let agent = json!({
        "version": "1.0.0", "name": "agent", "displayName": "Agent",
        "behavior": {"systemPromptPath": "prompts/system.md", "completionType": "stepMachine",
            "permissionMode": "acceptEdits"},
        "worktree": {"enabled": true}, "logging": {"directory": "tmp/logs", "format": "text", "maxFiles": 1}
    });
    project.write(".agent/agent/agent.json", &agent.to_string());
    for _ in 0..2 {
        let ran = project.go(&["--json"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let work = ran.json()["place"]["work"].as_str().unwrap().to_owned();
        assert_eq!(fs::read_to_string(format!("{work}/a.txt")).unwrap(), "two\n");
    }
    assert_eq!(project.read("a.txt"), "one\n");
    let logs: Vec<String> = fs::read_dir(project.path().join("tmp/logs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("cuegate-"))
        .collect();
    let run = project.status()["run"].as_str().unwrap().to_owned();
    assert_eq!(logs, [format!("cuegate-{run}.log")]);
}

#[test]
fn custom_variables_are_available_to_prompts() {
    let prompt = "---\ncustomVariables: [summary_section, remaining_text, iteration, nobodys]\n---\n\
                  {iteration}: S=[{summary_section}] R=[{remaining_text}] N=[{nobodys}]\n";
    let again = json!({"step": "work", "text": "I began. {\"next_action\": {\"action\": \"repeat\"}}"});
    let answers = json!([again, says("work", "handoff"), says("close", "closing")]);
    let project = small().prompt("work", prompt).project(answers);
    let ran = project.go(&["--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let prompts = project.prompts();
    let told = |text: &str| text.trim_end().to_owned();
    let remaining =
        |text: &str| text.split("R=[").nth(1).unwrap().split(' ').next().unwrap().parse::<u32>().unwrap();
    assert!(told(&prompts[0]).starts_with("1: S=[] R=["), "{}", prompts[0]);
    assert!(prompts[1].contains("2: S=[## Previous Iteration Summary\n\n<data"), "{}", prompts[1]);
    assert!(prompts[1].contains(">I began."), "{}", prompts[1]);
    assert_eq!(remaining(&prompts[0]), remaining(&prompts[1]) + 1);
    assert!(prompts[1].contains("iteration(s) remaining.] N=[]"), "{}", prompts[1]);
}
