//! `agent.json` in the shape of the runner reference, with what was a default written out.

use serde_json::{Map, Value, json};

use super::{Migration, Source};

/// Writes the agent, whose system prompt comes to lie at `system`.
pub(super) fn migrate(
    agent: Option<Value>,
    system: &str,
    source: &Source<'_, '_, '_>,
    migration: &mut Migration,
) {
    write(agent, system, source, migration, |written| verdict(written, source));
}

/// Writes the agent of a check flow, which ends with its flow and after so many visits.
pub(super) fn of_check_flow(
    agent: Option<Value>,
    system: &str,
    visits_max: u32,
    source: &Source<'_, '_, '_>,
    migration: &mut Migration,
) {
    let verdict = json!({"type": "detect:graph", "config": {"maxIterations": visits_max}});
    write(agent, system, source, migration, |_| verdict);
}

fn write(
    agent: Option<Value>,
    system: &str,
    source: &Source<'_, '_, '_>,
    migration: &mut Migration,
    verdict: impl FnOnce(Option<Value>) -> Value,
) {
    let mut agent = match agent {
        Some(Value::Object(agent)) => agent,
        _ => alone(source, migration),
    };
    agent.insert("name".into(), json!(migration.name));
    let mut runner = match agent.shift_remove("runner") {
        Some(Value::Object(runner)) => runner,
        _ => Map::new(),
    };
    let mut flow = match runner.shift_remove("flow") {
        Some(Value::Object(flow)) => flow,
        _ => Map::new(),
    };
    flow.insert("systemPromptPath".into(), json!(system));
    flow.insert("prompts".into(), json!({"registry": "steps_registry.json", "fallbackDir": "prompts/"}));
    if let Some(Value::Object(schemas)) = flow.get_mut("schemas") {
        schemas.shift_remove("base");
        if schemas.is_empty() {
            flow.shift_remove("schemas");
        }
    }
    if let Some(Value::Object(logging)) = runner.get_mut("logging") {
        move_logs(logging, source, migration);
    }
    let mut newer = Map::new();
    newer.insert("flow".into(), Value::Object(flow));
    newer.insert("verdict".into(), verdict(runner.shift_remove("verdict")));
    newer.extend(runner);
    agent.insert("runner".into(), Value::Object(newer));
    migration.write("agent.json", &Value::Object(agent));
}

/// Logs of both agents in one folder would be pruned as one's: a folder called after the agent is called after the
/// newer one.
fn move_logs(logging: &mut Map<String, Value>, source: &Source<'_, '_, '_>, migration: &Migration) {
    let Some(Value::String(directory)) = logging.get_mut("directory") else { return };
    let trimmed = directory.trim_end_matches('/');
    let last = trimmed.rsplit('/').next().unwrap_or(trimmed);
    if source.agent.name == Some(last) {
        let above = &trimmed[..trimmed.len() - last.len()];
        *directory = format!("{above}{}", migration.name);
    }
}

/// An agent for a registry that stood alone.
fn alone(source: &Source<'_, '_, '_>, migration: &mut Migration) -> Map<String, Value> {
    let title = source.registry.agent_id.map_or("agent", |id| id.text);
    migration.note(
        "agent.json",
        "written for a registry that had no agent; `system.md` is the built-in prompt that it was run with",
        false,
    );
    let agent = json!({
        "version": "1.0.0", "name": migration.name, "displayName": title, "description": "",
        "parameters": {}, "runner": {}
    });
    match agent {
        Value::Object(agent) => agent,
        _ => Map::new(),
    }
}

/// The verdict, with the limit that held.
fn verdict(written: Option<Value>, source: &Source<'_, '_, '_>) -> Value {
    let mut verdict = match written {
        Some(Value::Object(verdict)) => verdict,
        _ => {
            let kind = source.registry.completion_type.map_or("detect:graph", |(kind, _)| kind);
            let mut verdict = Map::new();
            verdict.insert("type".into(), json!(kind));
            verdict
        }
    };
    let config = verdict.entry("config").or_insert_with(|| json!({}));
    if let Value::Object(config) = config {
        let max = source.loaded.draft.limits.iterations_max;
        config.entry("maxIterations").or_insert(json!(max));
        if config.contains_key("registryPath") {
            config.insert("registryPath".into(), json!("steps_registry.json"));
        }
    }
    Value::Object(verdict)
}
