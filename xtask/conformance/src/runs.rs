//! Whole runs: an agent with its registry and schemas, the answers in order, and the result.
//!
//! A recorded agent references prompts that were not recorded. The adapter adds each with the name of its step and the
//! step's variables. A verification step without a recorded answer that leads to a closure step, which we reject, is
//! changed to lead to itself.

use std::collections::BTreeMap;

use cuegate_formats::{StepKind, infer_kind};
use serde_json::{Map, Value, json};

use super::{
    compare::{Got, member},
    drive::{Course, drive},
    project::{Project, registry_path, system_path},
};

/// The marker for remedies after a failed validator.
const REMEDY: &str = "remedy";

/// Loads, checks and runs an agent with recorded answers.
pub(super) fn run(input: &Value) -> Result<Got, String> {
    let agent = member(input, "agent")?;
    let script = member(input, "script")?.as_array().ok_or("its `script` is no list")?;
    let registry = &made_sound(member(input, "registry")?, script);
    let mut project = Project::of(agent);
    project.put(registry_path(agent), registry.to_string());
    project.put("schemas/s.json", member(input, "schemas")?.to_string());
    project.put(system_path(agent), "You are probed.");
    for (path, text) in input["prompts"].as_object().into_iter().flatten() {
        project.put(&format!("prompts/steps/{path}"), text.as_str().unwrap_or_default());
    }
    for (id, step) in member(registry, "steps")?.as_object().into_iter().flatten() {
        project.put(&format!("prompts/steps/{}", path_of(step)), prompt(id, step));
    }
    let args: BTreeMap<String, String> = input["args"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), as_text(value)))
        .collect();
    project.give(args.keys());
    let checked = project.check();
    let errors = checked.errors();
    let Some(flow) = checked.flow else { return Ok(Got::Refused(errors)) };
    let course = drive(&flow, &args, script)?;
    Ok(Got::Value(told(&course)))
}

/// The registry, with unvisited verification steps redirected away from closure steps.
fn made_sound(registry: &Value, script: &[Value]) -> Value {
    let mut registry = registry.clone();
    let steps = registry["steps"].as_object().cloned().unwrap_or_default();
    let of_kind = |id: &str, wanted| steps.get(id).is_some_and(|step| infer_kind(step) == Some(wanted));
    let unseen = steps.keys().filter(|id| {
        of_kind(id, StepKind::Verification) && !script.iter().any(|said| said["so"]["stepId"] == id.as_str())
    });
    for id in unseen {
        let next = &mut registry["steps"][id]["transitions"]["next"]["target"];
        if next.as_str().is_some_and(|target| of_kind(target, StepKind::Closure)) {
            *next = json!(id);
        }
    }
    registry
}

/// The prompt path of a step. Only the default edition was recorded.
fn path_of(step: &Value) -> String {
    let part = |key: &str| step[key].as_str().unwrap_or_default();
    format!("{}/{}/f_default.md", part("c2"), part("c3"))
}

fn prompt(id: &str, step: &Value) -> String {
    let variables = step["uvVariables"].as_array().into_iter().flatten().filter_map(Value::as_str);
    variables.fold(id.to_owned(), |prompt, name| format!("{prompt} {{uv-{name}}}"))
}

fn told(course: &Course) -> Value {
    let steps: Vec<&str> =
        course.asked.iter().map(|asked| if asked.remedy { REMEDY } else { &asked.step }).collect();
    json!({
        "success": course.completed,
        "iterations": course.iterations,
        "asks": course.asked.len(),
        "steps": steps,
        "left": course.left,
        "end": course.end,
    })
}

/// Whether the original program rejected the definition at run time. Its definition errors have codes, except for
/// inputs that no step writes; `SR-TRANS-010` is about an answer.
pub(super) fn refused(theirs: &Value) -> bool {
    let of_definition = ["[SR-", "[PR-", "Required input "];
    theirs["error"].as_str().is_some_and(|error| {
        of_definition.iter().any(|begin| error.starts_with(begin)) && !error.starts_with("[SR-TRANS-010]")
    })
}

/// Equal success, iterations, asks, steps in order, and handoff values.
pub(super) fn same(input: &Value, theirs: &Value, ours: &Value) -> bool {
    ours["success"] == theirs["success"]
        && ours["iterations"] == theirs["iterations"]
        && ours["asks"] == theirs["llmCalls"]
        && ours["steps"] == json!(steps(input, theirs))
        // After a failed run nothing reads the handoff values.
        && (ours["success"] == false || left(theirs).iter().all(|(step, data)| ours["left"][step] == *data))
}

/// The steps that the original program asked, identified by the recorded prompts.
fn steps<'v>(input: &'v Value, theirs: &'v Value) -> Vec<&'v str> {
    let asked = theirs["stepSequence"].as_array().into_iter().flatten().filter_map(Value::as_str);
    asked.map(|prompt| step_of(input, prompt)).collect()
}

fn step_of<'v>(input: &'v Value, prompt: &'v str) -> &'v str {
    let steps = input["registry"]["steps"].as_object();
    let known = |prompt: &str| steps.is_some_and(|steps| steps.contains_key(prompt));
    if known(prompt) {
        return prompt;
    }
    // A recorded prompt starts like its file, up to the first variable.
    let of_case = steps.into_iter().flatten().find(|(_, step)| {
        let own = input["prompts"][path_of(step)].as_str().and_then(|text| text.split('{').next());
        own.is_some_and(|begin| prompt.starts_with(begin))
    });
    of_case.map_or(REMEDY, |(id, _)| id)
}

/// The handoff values. The original program stores them in place of the whole answer.
fn left(theirs: &Value) -> Map<String, Value> {
    let kept = theirs["stepContext"].as_object().into_iter().flatten();
    kept.filter(|(_, kept)| kept.get("sessionId").is_none())
        .map(|(step, kept)| {
            let data = kept.as_object().into_iter().flatten();
            let data: Map<String, Value> =
                data.map(|(key, value)| (key.clone(), json!(as_text(value)))).collect();
            (step.clone(), Value::Object(data))
        })
        .collect()
}

/// Handoff values are text; other values are stored as JSON.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
