//! What checking finds: validators of definitions, each of which looks at one thing.
//!
//! A case holds an agent, or a registry, and only as much of it as its validator looks at. The rest is added: a
//! prompt and a schema for every step, a gate that allows what the step has transitions for. Then it is checked as
//! `check` does it, and of what is found only what the validator is about counts.

use cuegate_flow::Severity;
use serde_json::{Value, json};

use super::{
    compare::{Got, member},
    complete::{agent_for, complete},
    project::{Found, Project, registry_path, system_path},
};

/// What a validator is about.
struct Subject {
    /// The findings that belong to it.
    about: fn(&Found) -> bool,
}

/// Checks the registry of a case.
fn check_registry(input: &Value, subject: &Subject) -> Result<Got, String> {
    let registry = member(input, "registry")?;
    let agent = agent_for(registry, &input["agentDef"]);
    let mut project = Project::of(&agent);
    let registry = complete(registry, &mut project);
    project.put(registry_path(&agent), registry.to_string());
    project.put(system_path(&agent), "You are checked.");
    Ok(told(&project, subject))
}

fn told(project: &Project, subject: &Subject) -> Got {
    let found = project.check().found;
    let of = |severity| -> Vec<Value> {
        let found = found.iter().filter(|found| found.finding.severity == severity && (subject.about)(found));
        found
            .map(|Found { finding, .. }| {
                json!({"code": finding.code, "step": finding.step.as_deref(), "message": finding.message})
            })
            .collect()
    };
    Got::Value(json!({"errors": of(Severity::Error), "warnings": of(Severity::Warning)}))
}

pub(super) fn all(input: &Value) -> Result<Got, String> {
    check_registry(input, &Subject { about: |_| true })
}
