//! Agent settings: the limits, tools and permission of its runs.

use cuegate_flow::model::{Act, Boundary, Flow, Tools, Verdict};
use serde_json::{Value, json};

use super::{
    compare::{Got, member, text},
    complete::{Leave, agent_for, complete},
    project::{Project, registry_path, system_path},
};

/// The step with the settings.
const STEP: &str = "initial.case";

/// The effective settings of a run, including defaults.
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

/// Equal settings; features that are off by default are not compared.
pub(super) fn same_defaults(_: &Value, theirs: &Value, ours: &Value) -> bool {
    let runner = &theirs["runner"];
    *ours
        == json!({
            "verdict": runner["verdict"],
            "boundaries": runner["boundaries"],
            "worktree": runner["execution"]["worktree"]["enabled"],
        })
}

/// Whether a step of a kind may run a command, if it may run commands. The command itself is ignored: the sandbox
/// limits what it can do.
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

/// Equal permission; reasons are not compared.
pub(super) fn same_command(_: &Value, theirs: &Value, ours: &Value) -> bool {
    theirs["allowed"] == ours["allowed"]
}

/// The flow of an agent with one step besides the required ones, and whether it uses a worktree.
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

/// The value as an agent file contains it.
fn boundaries(boundary: &Boundary) -> Value {
    let tools: Vec<&str> = match &boundary.tools {
        Tools::All => vec!["*"],
        Tools::Only(tools) => tools.iter().map(|tool| &**tool).collect(),
    };
    json!({"allowedTools": tools, "permissionMode": boundary.permission.as_str()})
}
