//! Adds to a recorded registry what its case leaves out, and never changes what it holds.

use cuegate_dialect::{StepKind, infer_kind};
use serde_json::{Map, Value, json};

use super::project::Project;

/// The file that schemas are added to.
const SCHEMAS: &str = "case.schema.json";

/// How sections are called, which are no steps.
const SECTION: &str = "section.";

/// The types of verdicts but for the one that the agent has.
const OTHER_VERDICTS: [&str; 7] = [
    "count:iteration",
    "count:check",
    "poll:state",
    "detect:keyword",
    "detect:structured",
    "meta:composite",
    "meta:custom",
];

/// The closure step that is handed off to where a case says nothing.
const CLOSURE: &str = "closure.added";

/// An agent for a registry: one that only `closing` completes, with the parameters that the case declares.
pub(super) fn agent_for(registry: &Value, declared: &Value) -> Value {
    let parameters: Map<String, Value> = declared["parameters"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, parameter)| {
            let mut parameter = parameter.clone();
            for (key, value) in [("type", "string"), ("description", name), ("cli", &format!("--{name}"))] {
                if parameter.get(key).is_none() {
                    parameter[key] = json!(value);
                }
            }
            (name.clone(), parameter)
        })
        .collect();
    json!({
        "version": "1.0.0", "name": registry["agentId"].as_str().unwrap_or("case"),
        "displayName": "Case", "description": "A case",
        "parameters": parameters,
        "runner": {
            "flow": {
                "systemPromptPath": "prompts/system.md",
                "prompts": {"registry": "steps_registry.json", "fallbackDir": "prompts"},
            },
            "verdict": {"type": "detect:graph", "config": {"maxIterations": 10}},
            "boundaries": {"allowedTools": ["Read"], "permissionMode": "acceptEdits"},
        },
    })
}

/// A registry with all that its steps need, and their files.
pub(super) fn complete(registry: &Value, project: &mut Project) -> Value {
    let mut registry = registry.clone();
    let Some(steps) = registry.get_mut("steps").and_then(Value::as_object_mut) else { return registry };
    let mut schemas = Map::new();
    let mut needs_closure = false;
    for (id, step) in steps.iter_mut().filter(|(_, step)| step.is_object()) {
        let mut parts = id.splitn(2, '.');
        let (c2, c3) = (parts.next().unwrap_or("work"), parts.next().unwrap_or("case").to_owned());
        for (key, value) in [
            ("stepId", json!(id)),
            ("name", json!(id)),
            ("c2", json!(c2)),
            ("c3", json!(c3)),
            ("edition", json!("default")),
        ] {
            if step.get(key).is_none() {
                step[key] = value;
            }
        }
        project.put(&path_of(step), prompt(id, step));
        if !id.starts_with(SECTION) {
            needs_closure |= gate(id, step);
            if step.get("outputSchemaRef").is_none() {
                step["outputSchemaRef"] = json!({"file": SCHEMAS, "schema": id});
                schemas.insert(id.clone(), schema(&step["structuredGate"]));
            }
        }
    }
    if needs_closure {
        let mut closure = json!({"stepId": CLOSURE, "name": CLOSURE, "c2": "closure", "c3": "added", "edition": "default"});
        gate(CLOSURE, &mut closure);
        closure["outputSchemaRef"] = json!({"file": SCHEMAS, "schema": CLOSURE});
        schemas.insert(CLOSURE.to_owned(), schema(&closure["structuredGate"]));
        project.put(&path_of(&closure), CLOSURE);
        steps.insert(CLOSURE.to_owned(), closure);
    }
    project.put(&format!("schemas/{SCHEMAS}"), Value::Object(schemas).to_string());
    enter(&mut registry);
    registry
}

/// Makes the first step that a registry maps its entry; in one without any entry every step is one, as far as there
/// are types of verdicts to map them from.
fn enter(registry: &mut Value) {
    if registry.get("entryStep").is_some() {
        return;
    }
    let mapped = registry["entryStepMapping"].as_object();
    if let Some(first) = mapped.and_then(|mapping| mapping.values().next()).cloned() {
        registry["entryStep"] = first;
        return;
    }
    let steps = registry["steps"].as_object().into_iter().flatten();
    let mut steps = steps.map(|(id, _)| id).filter(|id| !id.starts_with(SECTION)).cloned();
    let first = steps.next();
    let others: Map<String, Value> =
        OTHER_VERDICTS.iter().zip(steps).map(|(verdict, step)| ((*verdict).to_owned(), json!(step))).collect();
    if let Some(first) = first {
        registry["entryStep"] = json!(first);
        registry["entryStepMapping"] = Value::Object(others);
    }
}

fn path_of(step: &Value) -> String {
    let part = |key: &str| step[key].as_str().unwrap_or_default();
    format!("prompts/steps/{}/{}/f_{}.md", part("c2"), part("c3"), part("edition"))
}

fn prompt(id: &str, step: &Value) -> String {
    let variables = step["uvVariables"].as_array().into_iter().flatten().filter_map(Value::as_str);
    variables.fold(id.to_owned(), |prompt, name| format!("{prompt} {{uv-{name}}}"))
}

/// Gives a step a kind, a gate for its transitions and transitions for its gate, when it has none. Says whether that
/// needs a closure step to hand off to.
fn gate(id: &str, step: &mut Value) -> bool {
    if infer_kind(step).is_none() {
        step["stepKind"] = json!(StepKind::Work.as_str());
    }
    if step.get("structuredGate").is_none() {
        let transitions = step["transitions"].as_object().into_iter().flatten();
        let mut allowed: Vec<String> = transitions.map(|(intent, _)| intent.clone()).collect();
        if allowed.is_empty() {
            let ends = if infer_kind(step) == Some(StepKind::Closure) { "closing" } else { "handoff" };
            allowed.push(ends.to_owned());
        }
        step["structuredGate"] = json!({
            "allowedIntents": allowed,
            "intentSchemaRef": "#/properties/next_action/properties/action",
            "intentField": "next_action.action",
        });
    }
    if step["transitions"].as_object().is_some_and(|transitions| !transitions.is_empty()) {
        return false;
    }
    let allowed = step["structuredGate"]["allowedIntents"].as_array().into_iter().flatten();
    let allowed: Vec<&str> = allowed.filter_map(Value::as_str).collect();
    let hands_off = allowed.contains(&"handoff");
    let transitions: Map<String, Value> = allowed
        .iter()
        .map(|intent| {
            let target = match *intent {
                "closing" => Value::Null,
                "handoff" => json!(CLOSURE),
                _ => json!(id),
            };
            ((*intent).to_owned(), json!({"target": target}))
        })
        .collect();
    step["transitions"] = Value::Object(transitions);
    hands_off
}

/// A schema in which a gate finds what it reads.
fn schema(gate: &Value) -> Value {
    let mut schema = json!({"type": "object"});
    let text = json!({"type": "string"});
    for field in gate["handoffFields"].as_array().into_iter().flatten().chain(gate.get("targetField")) {
        if let Some(field) = field.as_str() {
            put(&mut schema, field, &text);
        }
    }
    let intents = json!({"type": "string", "enum": gate["allowedIntents"]});
    if let Some(field) = gate["intentField"].as_str() {
        put(&mut schema, field, &intents);
    }
    let pointer = gate["intentSchemaRef"].as_str().and_then(|pointer| pointer.strip_prefix('#'));
    if let Some(pointer) = pointer.filter(|pointer| schema.pointer(pointer).is_none()) {
        let mut at = &mut schema;
        for key in pointer.split('/').skip(1) {
            at = &mut at[key];
        }
        *at = intents;
    }
    schema
}

/// Puts a property at a dotted path.
fn put(schema: &mut Value, field: &str, value: &Value) {
    let mut at = schema;
    for key in field.split('.') {
        at["type"] = json!("object");
        at = &mut at["properties"][key];
    }
    *at = value.clone();
}
