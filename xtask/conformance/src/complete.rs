//! Completes a recorded registry: adds what its case omits, and changes nothing that is there.

use std::collections::BTreeMap;

use cuegate_formats::{StepKind, infer_kind};
use serde_json::{Map, Value, json};

use super::project::Project;

/// The file for added schemas.
const SCHEMAS: &str = "case.schema.json";

/// The prefix of sections, which are not steps.
const SECTION: &str = "section.";

/// The prefix of initial steps.
const INITIAL: &str = "initial.";

/// The entry for a registry without initial steps.
const ENTRY: &str = "entry.added";

/// The default closure step for handoffs.
const CLOSURE: &str = "closure.added";

/// The default value that selects a target.
const SELECTS: &str = "selects";

/// The words that a gate can allow.
const INTENTS: [&str; 7] = ["next", "repeat", "jump", "closing", "abort", "escalate", "handoff"];

/// Variables that only some verdicts provide.
const OF_VERDICTS: [&str; 3] = ["completion_keyword", "check_count", "max_checks"];

/// An agent for a registry, with the parameters of the case. Only `closing` completes it, unless a step reads a
/// variable of another verdict.
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
            "verdict": verdict(registry),
            "boundaries": {"allowedTools": ["Read"], "permissionMode": "acceptEdits"},
        },
    })
}

fn verdict(registry: &Value) -> Value {
    let steps = registry["steps"].as_object().into_iter().flatten();
    let mut read = steps.flat_map(|(_, step)| step["uvVariables"].as_array().into_iter().flatten());
    if !read.any(|name| OF_VERDICTS.iter().any(|of| name == of)) {
        return json!({"type": "detect:graph", "config": {"maxIterations": 10}});
    }
    let conditions = [
        json!({"type": "detect:keyword", "config": {"verdictKeyword": "DONE"}}),
        json!({"type": "count:check", "config": {"maxChecks": 3}}),
    ];
    json!({"type": "meta:composite", "config": {"operator": "and", "conditions": conditions}})
}

/// Which incomplete parts stay incomplete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    /// None.
    Nothing,
    /// The keys of steps: the case tests which are required.
    Keys,
}

/// A complete registry, and the files of its steps.
pub(super) fn complete(registry: &Value, leave: Leave, project: &mut Project) -> Value {
    let mut registry = registry.clone();
    let guarded: Vec<String> = names(&registry["validationSteps"]);
    let has_entry = registry.get("entryStep").is_some() || registry.get("entryStepMapping").is_some();
    let Some(steps) = registry.get_mut("steps").and_then(Value::as_object_mut) else { return registry };
    let written: Vec<String> = steps.keys().cloned().collect();
    for id in guarded {
        steps.entry(id).or_insert_with(|| json!({"stepKind": "closure"}));
    }
    if !has_entry && !steps.is_empty() && !steps.keys().any(|id| id.starts_with(INITIAL)) {
        steps.insert(ENTRY.to_owned(), json!({"stepKind": "work"}));
    }
    let chain = chain(steps);
    let mut schemas = Map::new();
    for (id, step) in steps.iter_mut().filter(|(_, step)| step.is_object()) {
        if leave != Leave::Keys || !written.contains(id) {
            describe(id, step);
        }
        project.put(&path_of(step), prompt(id, step));
        if !id.starts_with(SECTION) {
            gate(id, step, chain.get(id).map(String::as_str));
            if step.get("outputSchemaRef").is_none() {
                step["outputSchemaRef"] = json!({"file": SCHEMAS, "schema": id});
                schemas.insert(id.clone(), schema(&step["structuredGate"]));
            }
        }
    }
    project.put(&format!("schemas/{SCHEMAS}"), Value::Object(schemas).to_string());
    enter(&mut registry);
    registry
}

fn names(object: &Value) -> Vec<String> {
    object.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// The default next step of each step: in order, initial steps first; the last leads to an added closure step.
fn chain(steps: &mut Map<String, Value>) -> BTreeMap<String, String> {
    let leads = |step: &Value| step["transitions"].as_object().is_some_and(|ways| !ways.is_empty());
    let is_closure = |step: &Value| infer_kind(step) == Some(StepKind::Closure);
    let mut open: Vec<String> = steps
        .iter()
        .filter(|(id, step)| {
            step.is_object() && !id.starts_with(SECTION) && !leads(step) && !is_closure(step)
        })
        .map(|(id, _)| id.clone())
        .collect();
    // Steps that read handoff values come after the steps that write them.
    open.sort_by_key(|id| (id != ENTRY, !id.starts_with(INITIAL), steps[id].get("inputs").is_some()));
    if !open.is_empty() {
        steps.insert(CLOSURE.to_owned(), json!({"stepKind": "closure"}));
    }
    let next = open.iter().skip(1).cloned().chain([CLOSURE.to_owned()]);
    open.iter().cloned().zip(next).collect()
}

/// Adds the keys that identify a step.
fn describe(id: &str, step: &mut Value) {
    let mut parts = id.splitn(2, '.');
    let (c2, c3) = (parts.next().unwrap_or("work"), parts.next().unwrap_or("case"));
    let keys = [("stepId", id), ("name", id), ("c2", c2), ("c3", c3), ("edition", "default")];
    for (key, value) in keys {
        if step.get(key).is_none() {
            step[key] = json!(value);
        }
    }
}

/// Sets the entry: the first mapped step, or the first initial step if the registry maps none.
fn enter(registry: &mut Value) {
    if registry.get("entryStep").is_some() {
        return;
    }
    let mapped = registry["entryStepMapping"].as_object().and_then(|mapping| mapping.values().next());
    let mut steps = registry["steps"].as_object().into_iter().flatten().map(|(id, _)| id);
    let first = steps.clone().find(|id| id.starts_with(INITIAL)).or_else(|| steps.find(|id| *id == ENTRY));
    if let Some(entry) = mapped.cloned().or_else(|| first.map(|id| json!(id))) {
        registry["entryStep"] = entry;
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

/// Adds a kind, a gate for the transitions, and transitions for the gate, if they are missing.
fn gate(id: &str, step: &mut Value, next: Option<&str>) {
    if infer_kind(step).is_none() {
        step["stepKind"] = json!(StepKind::Work.as_str());
    }
    let transitions = step["transitions"].as_object().cloned().unwrap_or_default();
    if step.get("structuredGate").is_none() {
        let mut allowed: Vec<&str> = transitions.keys().map(String::as_str).collect();
        allowed.retain(|intent| INTENTS.contains(intent));
        if allowed.is_empty() {
            allowed.push(match next {
                None => "closing",
                Some(CLOSURE) => "handoff",
                Some(_) => "next",
            });
        }
        step["structuredGate"] = json!({
            "allowedIntents": allowed,
            "intentSchemaRef": "#/properties/next_action/properties/action",
            "intentField": "next_action.action",
        });
    }
    if transitions.is_empty() {
        let allowed = step["structuredGate"]["allowedIntents"].as_array().into_iter().flatten();
        let ways = allowed.filter_map(Value::as_str).map(|intent| {
            let target = match intent {
                "closing" => Value::Null,
                "handoff" => json!(CLOSURE),
                "next" => json!(next.filter(|next| *next != CLOSURE).unwrap_or(id)),
                _ => json!(id),
            };
            (intent.to_owned(), json!({"target": target}))
        });
        step["transitions"] = Value::Object(ways.collect());
    }
    condition(step);
}

/// Adds a condition on a handoff value to targets without one.
fn condition(step: &mut Value) {
    let mut added = false;
    for (_, way) in step["transitions"].as_object_mut().into_iter().flatten() {
        if way.get("targets").is_some() && way.get("condition").is_none() {
            way["condition"] = json!(SELECTS);
            added = true;
        }
    }
    if added && step["structuredGate"].get("handoffFields").is_none() {
        step["structuredGate"]["handoffFields"] = json!([SELECTS]);
    }
}

/// A schema with the fields that a gate reads.
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

/// Adds a property at a dotted path.
fn put(schema: &mut Value, field: &str, value: &Value) {
    let mut at = schema;
    for key in field.split('.') {
        at["type"] = json!("object");
        at = &mut at["properties"][key];
    }
    *at = value.clone();
}
