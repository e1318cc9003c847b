//! `agent.json` in the shape of the runner reference, with what was a default written out.

use serde_json::{Map, Value, json};

use super::{Migration, Source};

/// Writes the agent.
pub(super) fn migrate(agent: Option<Value>, source: &Source<'_, '_, '_>, migration: &mut Migration) {
    let mut agent = match agent {
        Some(Value::Object(agent)) => agent,
        _ => alone(source, migration),
    };
    let mut runner = match agent.shift_remove("runner") {
        Some(Value::Object(runner)) => runner,
        _ => Map::new(),
    };
    let mut flow = match runner.shift_remove("flow") {
        Some(Value::Object(flow)) => flow,
        _ => Map::new(),
    };
    flow.insert("systemPromptPath".into(), json!("system.md"));
    flow.insert("prompts".into(), json!({"registry": "steps_registry.json", "fallbackDir": "prompts/"}));
    if let Some(Value::Object(schemas)) = flow.get_mut("schemas") {
        schemas.shift_remove("base");
        if schemas.is_empty() {
            flow.shift_remove("schemas");
        }
    }
    let mut newer = Map::new();
    newer.insert("flow".into(), Value::Object(flow));
    newer.insert("verdict".into(), verdict(runner.shift_remove("verdict"), source));
    newer.extend(runner);
    outside("runner", &Value::Object(newer.clone()), migration);
    agent.insert("runner".into(), Value::Object(newer));
    migration.write("agent.json", &Value::Object(agent));
}

/// An agent for a registry that stood alone.
fn alone(source: &Source<'_, '_, '_>, migration: &mut Migration) -> Map<String, Value> {
    let name = source.registry.agent_id.map_or("agent", |id| id.text);
    migration.note(
        "agent.json",
        "written for a registry that had no agent: say in `system.md` who it is",
        false,
    );
    let agent = json!({
        "version": "1.0.0", "name": name, "displayName": name, "description": "",
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

/// Programs in the agent's folder, which are not copied.
fn outside(place: &str, value: &Value, migration: &mut Migration) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                outside(&format!("{place}.{key}"), value, migration);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| outside(place, item, migration)),
        Value::String(text) => {
            let program = text.strip_prefix("exec:").or(place.ends_with(".handlerPath").then_some(text));
            if let Some(path) = program {
                migration.note(
                    place,
                    format!("copy `{path}` into the new folder: programs are not copied"),
                    true,
                );
            }
        }
        _ => {}
    }
}
