//! A run that asks a real model: a small one on this machine, which `cargo xtask test --local-model` serves.
//!
//! What it says is worth nothing. Each schema leaves it one decision besides giving up, which is always allowed, and the
//! prompt says the answer word by word: so much it can repeat. Looked at is what the run made of that.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

#[path = "program/agent/registry.rs"]
#[expect(dead_code, reason = "the builder of all tests, of which these use a part")]
mod registry;
#[path = "program/support.rs"]
#[expect(dead_code, reason = "the helpers of all tests, of which these use a part")]
mod support;

use registry::Registry;
use serde_json::{Value, json};
use support::{Project, rows};

/// A project whose `openai` is the local model. Nothing is taken from the environment for it: it wants no key.
fn project(registry: &Registry) -> Project {
    let base = std::env::var("CUEGATE_LOCAL_MODEL").expect(
        "CUEGATE_LOCAL_MODEL holds the address of the model; `cargo xtask test --local-model` sets it",
    );
    let project = registry.project(json!([]));
    let toml = format!(
        "[providers.openai]\nbase_url = \"{base}\"\nmodel = \"small\"\nmax_output_tokens = 200\ntemperature = 0\n"
    );
    project.write("cuegate.toml", &toml);
    project.write(".git/info/exclude", "/cuegate.toml\n");
    project
}

/// `work` hands its note on to `close`, which ends. Notes are short, and each step can decide one thing.
fn two_steps() -> Registry {
    let say = |action: &str| {
        let answer = json!({"next_action": {"action": action}, "note": "well done"});
        format!("Repeat this JSON, exactly as it is:\n{answer}\n")
    };
    let note = json!({"note": {"type": "string", "maxLength": 24}});
    Registry::new()
        .step("work", "work", json!({"handoff": {"target": "close"}}))
        .field("work", note.clone())
        .with("work", json!({"structuredGate": {"handoffFields": ["note"]}}))
        .step("close", "closure", json!({"closing": {"target": null}}))
        .field("close", note)
        .prompt("work", &say("handoff"))
        .prompt("close", &say("closing"))
}

fn run(project: &Project) -> Value {
    let ran = project.run(&["run", "agent", "--provider", "openai", "--json"]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran.json()
}

#[test]
#[ignore = "asks a local model; `cargo xtask test --local-model` runs it"]
fn a_gated_flow_completes() {
    let project = project(&two_steps());
    let result = run(&project);
    assert_eq!(result["state"], "completed", "{result:#}");
    assert_eq!(rows(&result), "work: handoff → close\nclose: closing → @completed");
    assert_eq!((&result["asks"]["work"], &result["provider"]), (&json!(2), &json!("openai")));
    for kind in ["input", "output"] {
        assert!(result["tokens"][kind].as_u64().unwrap() > 0, "{result:#}");
    }
    let status = project.run(&["status", "last"]).stdout;
    assert!(status.contains("schema 2 by the provider"), "{status}");
    project.all_gone();
}

/// A model that cannot keep to the schema by itself is held to JSON and told the schema: it answers, and the gate
/// judges that. Whatever it says, the run ends with a result and within its budget.
#[test]
#[ignore = "asks a local model; `cargo xtask test --local-model` runs it"]
fn a_flow_with_a_prompted_schema_ends() {
    let project = project(&two_steps());
    let toml = project.read("cuegate.toml");
    project.write("cuegate.toml", &format!("{toml}schema = \"json_object\"\n"));
    let ran = project.run(&["run", "agent", "--provider", "openai", "--json", "--budget-calls", "3"]);
    let result = ran.json();
    let asks = result["spent"]["asks"].as_u64().unwrap();
    assert!((1..=3).contains(&asks), "{result:#}");
    assert!(result["tokens"]["output"].as_u64().unwrap() > 0, "{result:#}");
    assert!(matches!(ran.code, 0 | 1 | 3), "{}: {}", ran.code, ran.stderr);
    project.all_gone();
}
