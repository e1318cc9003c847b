//! The real agents inside a sandbox, with stand-ins of their APIs.

use cuegate_testkit::offline;
use serde_json::{Value, json};

use crate::{
    agents::{ROWS, Set, fixer},
    sandbox::stands,
    support::{Project, rows},
};

/// The example's project, with a definition that requires a sandbox.
fn sandboxed(sandbox: &Value) -> Project {
    let project = Project::example();
    let mut agent: Value = serde_json::from_str(&project.read(".agent/fixer/agent.json")).unwrap();
    agent["runner"]["boundaries"]["sandbox"] = sandbox.clone();
    project.write(".agent/fixer/agent.json", &agent.to_string());
    project.git(&["commit", "--quiet", "--all", "--message", "sandboxed"]);
    project
}

fn in_a_sandbox(provider: &'static str) -> Set {
    let set = Set::of(provider, sandboxed(&json!({"network": {"mode": "none"}})), fixer());
    let ran = set.run(&["run", "fixer", "The test fails. Make it pass.", "--json", "--provider", provider]);
    let asked = set.standin.requests().len();
    assert_eq!(ran.code, 0, "{asked} requests, unmatched {:?}\n{}", set.standin.unmatched(), ran.stderr);
    let result = ran.json();
    assert_eq!(rows(&result), ROWS, "{}", ran.stderr);
    assert_eq!(set.standin.unmatched(), [""; 0]);
    let log = "Multiply by 9/5\nFix the conversion\nsandboxed\nbegin\n";
    assert_eq!(set.project.git(&["log", "--format=%s"]), log);
    assert!(ran.stderr.contains("reaches nothing"), "{}", ran.stderr);
    set.project.all_gone();
    set
}

#[test]
fn claude_works_in_a_sandbox() {
    if !stands() || !offline::inside() {
        return;
    }
    let set = in_a_sandbox("claude");
    let told: Vec<Value> =
        set.project.events("sandbox_denied").iter().map(|event| event["to"].clone()).collect();
    assert_eq!(told, [""; 0], "it asks for nothing but its service");
}

#[test]
fn codex_works_in_a_sandbox() {
    if !stands() || !offline::inside() {
        return;
    }
    let set = in_a_sandbox("codex");
    let told: Vec<Value> =
        set.project.events("sandbox_denied").iter().map(|event| event["to"].clone()).collect();
    assert_eq!(told, [""; 0], "it asks for nothing but its service");
}
