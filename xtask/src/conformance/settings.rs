//! What an agent's own file comes to: which limits, tools and permission its runs have.

use cuegate_flow::model::{Act, Boundary, Flow, Tools, Verdict};
use serde_json::{Value, json};

use super::{
    compare::{Got, member, text},
    complete::{Leave, agent_for, complete},
    project::{Project, registry_path, system_path},
};

/// The step that has them.
const STEP: &str = "initial.case";

/// What a run goes by of what an agent says, and of what holds where it says nothing.
pub(super) fn defaults(input: &Value) -> Result<Got, String> {
    let agent = member(input, "raw")?;
    let step = json!({"stepKind": "work"});
    Ok(match flow(agent, &step) {
        Ok((flow, worktree)) => {
            let limit = flow.limits.iterations_max;
            let verdict = match &flow.verdict {
                Verdict::Iterations(max) => {
                    json!({"type": "count:iteration", "config": {"maxIterations": max}})
                }
                _ => json!({"config": {"maxIterations": limit}}),
            };
            Got::Value(json!({
                "verdict": verdict,
                "boundaries": boundaries(boundary(&flow)?),
                "worktree": worktree,
            }))
        }
        Err(found) => Got::Refused(found),
    })
}

/// The same settings. What is off unless a definition asks for it is not among them.
pub(super) fn same_defaults(_: &Value, theirs: &Value, ours: &Value) -> bool {
    let runner = &theirs["runner"];
    *ours
        == json!({
            "verdict": runner["verdict"],
            "boundaries": runner["boundaries"],
            "worktree": runner["execution"]["worktree"]["enabled"],
        })
}

/// Whether a step of a kind may run a command, when it may run commands. What it is does not matter: what a command
/// may do is the sandbox's business.
pub(super) fn command(input: &Value) -> Result<Got, String> {
    text(input, "command")?;
    let step = json!({"stepKind": text(input, "stepKind")?});
    let mut agent = agent_for(&Value::Null, &Value::Null);
    agent["runner"]["boundaries"]["allowedTools"] = json!(["Bash"]);
    Ok(match flow(&agent, &step) {
        Ok((flow, _)) => {
            let allowed = match &boundary(&flow)?.tools {
                Tools::All => true,
                Tools::Only(tools) => tools.iter().any(|tool| **tool == *"Bash"),
            };
            Got::Value(json!({"allowed": allowed}))
        }
        Err(found) => Got::Refused(found),
    })
}

/// The same leave; why there is none is a text.
pub(super) fn same_command(_: &Value, theirs: &Value, ours: &Value) -> bool {
    theirs["allowed"] == ours["allowed"]
}

/// The flow of an agent with one step besides those that it needs, and whether it works in a worktree.
fn flow(agent: &Value, step: &Value) -> Result<(Flow, bool), String> {
    let mut project = Project::of(agent);
    let registry = json!({
        "agentId": agent["name"], "version": "1.0.0", "c1": "steps", "entryStep": STEP, "steps": {STEP: step},
    });
    let registry = complete(&registry, Leave::Nothing, &mut project);
    project.put(registry_path(agent), registry.to_string());
    project.put(system_path(agent), "You are at work.");
    let checked = project.check();
    let errors = checked.errors();
    checked.flow.map(|flow| (flow, checked.worktree)).ok_or(errors)
}

fn boundary(flow: &Flow) -> Result<&Boundary, String> {
    let step = flow.steps.iter().find(|step| *step.name == *STEP && matches!(step.act, Act::Ask(_)));
    step.map(|step| &step.boundary).ok_or_else(|| format!("`{STEP}` is not there"))
}

/// As an agent writes it.
fn boundaries(boundary: &Boundary) -> Value {
    let tools: Vec<&str> = match &boundary.tools {
        Tools::All => vec!["*"],
        Tools::Only(tools) => tools.iter().map(|tool| &**tool).collect(),
    };
    json!({"allowedTools": tools, "permissionMode": boundary.permission.as_str()})
}
