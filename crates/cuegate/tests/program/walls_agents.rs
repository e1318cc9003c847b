//! The real agents behind a wall, talking to stand-ins of their APIs.

use cuegate_testkit::offline;
use serde_json::{Value, json};

use crate::{
    agents::{ROWS, Set, fixer},
    support::{Project, rows},
    walls::stands,
};

/// The example's project, with a definition that demands a wall.
fn walled(sandbox: &Value) -> Project {
    let project = Project::example();
    let mut agent: Value = serde_json::from_str(&project.read(".agent/fixer/agent.json")).unwrap();
    agent["runner"]["boundaries"]["sandbox"] = sandbox.clone();
    project.write(".agent/fixer/agent.json", &agent.to_string());
    project.git(&["commit", "--quiet", "--all", "--message", "walled"]);
    project
}

fn behind_a_wall(provider: &'static str) -> Set {
    let set = Set::of(provider, walled(&json!({"network": {"mode": "none"}})), fixer());
    let ran = set.run(&["run", "fixer", "The test fails. Make it pass.", "--json", "--provider", provider]);
    let asked = set.standin.requests().len();
    assert_eq!(ran.code, 0, "{asked} requests, unmatched {:?}\n{}", set.standin.unmatched(), ran.stderr);
    let result = ran.json();
    assert_eq!(rows(&result), ROWS, "{}", ran.stderr);
    assert_eq!(set.standin.unmatched(), [""; 0]);
    let log = "Multiply by 9/5\nFix the conversion\nwalled\nbegin\n";
    assert_eq!(set.project.git(&["log", "--format=%s"]), log);
    assert!(ran.stderr.contains("reaches nothing"), "{}", ran.stderr);
    set.project.all_gone();
    set
}

#[test]
fn claude_works_behind_a_wall() {
    if !stands() || !offline::inside() {
        return;
    }
    let set = behind_a_wall("claude");
    let told: Vec<Value> =
        set.project.events("wall_refused").iter().map(|event| event["to"].clone()).collect();
    assert_eq!(told, [""; 0], "it asks for nothing but its service");
}

#[test]
fn codex_works_behind_a_wall() {
    if !stands() || !offline::inside() {
        return;
    }
    let set = behind_a_wall("codex");
    let told: Vec<Value> =
        set.project.events("wall_refused").iter().map(|event| event["to"].clone()).collect();
    assert_eq!(told, [""; 0], "it asks for nothing but its service");
}
