//! What a gate reads from an answer: the intent, the jump target, the handoff values and the agent's reason.
//!
//! The original program does not check the step definition first. So findings about the definition are ignored, and
//! every allowed intent gets a transition.

use cuegate_engine::Event;
use cuegate_flow::model::FieldPath;
use cuegate_formats::{Generation, lower_gates};
use serde_json::{Map, Value, json};

use super::{
    compare::{Got, member, text},
    world::{World, flow, step, straight},
};

/// The target of the intents.
const ELSEWHERE: &str = "elsewhere";

/// Reads an answer with a step's gate.
pub(super) fn interpret(input: &Value) -> Result<Got, String> {
    let definition = member(input, "stepDef")?;
    let output = member(input, "structuredOutput")?;
    let id = text(definition, "stepId")?;
    let mut others = vec![ELSEWHERE];
    others.extend(named_target(definition, output));
    let registry: Map<String, Value> = [(id.to_owned(), with_ways(definition))]
        .into_iter()
        .chain(others.iter().map(|name| ((*name).to_owned(), work_step(name))))
        .collect();
    let (gates, _) = lower_gates(&Value::Object(registry), Generation::Closing);
    let gate = gates.into_iter().find(|(name, _)| name == id).ok_or("it has no gate")?.1;
    let steps = std::iter::once(step(id, gate, Vec::new()))
        .chain(others.iter().map(|name| step(name, straight(None), Vec::new())))
        .collect();
    let mut world = World::begin(flow(Some(id), steps)?);
    world.answer(output)?;
    Ok(read(&world))
}

/// The decision of the run.
fn read(world: &World) -> Got {
    let decided = world.events.iter().find_map(|event| match event {
        Event::Decided { outcome, reason, fallback, .. } => Some((outcome, reason, *fallback)),
        _ => None,
    });
    let Some((intent, reason, fallback)) = decided else {
        return Got::Refused(world.ended().map_or("nothing was decided", |(_, why)| why).to_owned());
    };
    let handoff: Map<String, Value> = world
        .events
        .iter()
        .filter_map(|event| match event {
            Event::HandedOff { key, value, .. } => Some((key.to_string(), json!(world.text(value)))),
            _ => None,
        })
        .collect();
    Got::Value(json!({
        "intent": **intent,
        "target": if **intent == *"jump" { json!(world.stands_on()) } else { Value::Null },
        "handoff": handoff,
        "usedFallback": fallback,
        // The reason of a fallback is our own text.
        "reason": if fallback { Value::Null } else { json!(reason) },
    }))
}

/// Equal intent, target, data and reason. A reason that the original program generated is not compared.
pub(super) fn same(input: &Value, theirs: &Value, ours: &Value) -> bool {
    let handoff: Map<String, Value> = theirs["handoff"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), json!(as_text(value))))
        .collect();
    let own_reason = theirs["reason"].as_str().filter(|reason| says(&input["structuredOutput"], reason));
    *ours
        == json!({
            "intent": theirs["intent"],
            "target": theirs["target"],
            "handoff": handoff,
            "usedFallback": theirs["usedFallback"],
            "reason": own_reason,
        })
}

/// Handoff values are text; other values are stored as JSON.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether an answer contains a text.
fn says(answer: &Value, text: &str) -> bool {
    match answer {
        Value::String(said) => said == text,
        Value::Array(items) => items.iter().any(|item| says(item, text)),
        Value::Object(map) => map.values().any(|value| says(value, text)),
        _ => false,
    }
}

/// The step definition, with a transition for every allowed intent. The answer names the target of a jump.
fn with_ways(definition: &Value) -> Value {
    let mut definition = definition.clone();
    let Some(gate) = definition.get("structuredGate") else { return definition };
    let answer_names_target = gate.get("targetField").is_some();
    let mut transitions = Map::new();
    for intent in gate["allowedIntents"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let target = match intent {
            "abort" => continue,
            "jump" if answer_names_target => continue,
            "closing" => Value::Null,
            _ => json!(ELSEWHERE),
        };
        transitions.insert(intent.to_owned(), json!({"target": target}));
    }
    definition["transitions"] = Value::Object(transitions);
    definition
}

fn work_step(name: &str) -> Value {
    json!({"stepId": name, "stepKind": "work", "c2": "initial", "c3": "case"})
}

/// The step that an answer names as jump target; it is added.
fn named_target<'v>(definition: &'v Value, output: &'v Value) -> Option<&'v str> {
    let field = definition.get("structuredGate")?.get("targetField")?.as_str()?;
    FieldPath::parse(field)?.get(output)?.as_str()
}
