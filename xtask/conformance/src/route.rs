//! The target of an intent.
//!
//! The recorded registries contain only what the original program reads for the tested intent. The adapter adds what
//! we require: a kind for steps whose `c2` implies none, a gate that allows the intent, an answer with it, and a
//! transition for every other allowed intent.

use cuegate_engine::{EndState, Event};
use cuegate_flow::diagnostics::Severity;
use cuegate_formats::{Generation, infer_kind, lower_gates};
use serde_json::{Map, Value, json};

use super::{
    compare::{Got, member, text},
    world::{World, flow, step, straight},
};

/// The default closure step for handoffs.
const CLOSURE: &str = "somewhere.closure";

/// Routes an intent from a step.
pub(super) fn route(input: &Value) -> Result<Got, String> {
    let current = text(input, "currentStepId")?;
    let said = member(input, "interpretation")?;
    let intent = text(said, "intent")?;
    let recorded = member(member(input, "registry")?, "steps")?.as_object().ok_or("it has no steps")?;
    let mut steps: Map<String, Value> = recorded
        .iter()
        .map(|(id, step)| (id.clone(), with_kind(step, if id == current { kind_of(intent) } else { "work" })))
        .collect();
    steps.insert(CLOSURE.to_owned(), json!({"stepId": CLOSURE, "c2": "closure", "c3": "case"}));
    let here = steps.get_mut(current).ok_or_else(|| format!("it has no step `{current}`"))?;
    complete(here, said, intent);
    let answer = answer(here, said, intent);
    let (gates, found) = lower_gates(&Value::Object(steps), Generation::Closing);
    let of_severity = |severity| {
        // The added gate has a `targetField` whether it allows `jump` or not.
        let mine = found
            .iter()
            .filter(|finding| finding.step.as_deref() == Some(current) && finding.code != "unused-key");
        mine.filter(move |finding| finding.severity == severity).map(|finding| finding.message.as_str())
    };
    let errors: Vec<&str> = of_severity(Severity::Error).collect();
    if !errors.is_empty() {
        return Ok(Got::Refused(errors.join("; ")));
    }
    let steps = gates
        .into_iter()
        .map(|(id, gate)| step(&id, if id == current { gate } else { straight(None) }, Vec::new()))
        .collect();
    let flow = match flow(Some(current), steps) {
        Ok(flow) => flow,
        Err(found) => return Ok(Got::Refused(found)),
    };
    let mut world = World::begin(flow);
    world.answer(&answer)?;
    Ok(went(&world, current, of_severity(Severity::Warning).next()))
}

/// The next step of the run. In the original program a completed run stays at its last step.
fn went(world: &World, current: &str, warning: Option<&str>) -> Got {
    let reason = world.events.iter().find_map(|event| match event {
        Event::Decided { reason, .. } => reason.as_deref(),
        _ => None,
    });
    let went = |next: Option<&str>, closing: bool| {
        Got::Value(
            json!({"nextStepId": next, "signalClosing": closing, "reason": reason, "warning": warning}),
        )
    };
    match world.ended() {
        None => went(world.stands_on(), false),
        Some((EndState::Completed, _)) => went(Some(current), true),
        Some((EndState::Aborted, why)) => Got::Value(json!({"aborted": why})),
        Some((_, why)) => Got::Refused(why.to_owned()),
    }
}

/// Equal step and agent's reason. A reason that the original program generated is not compared. We must warn if it
/// warns; further warnings of `check` are ignored.
pub(super) fn same(input: &Value, theirs: &Value, ours: &Value) -> bool {
    ours["nextStepId"] == theirs["nextStepId"]
        && ours["signalClosing"] == theirs["signalClosing"]
        && ours["reason"] == input["interpretation"]["reason"]
        && (theirs["warning"].is_null() || ours["warning"].is_string())
}

/// A kind that allows an intent.
fn kind_of(intent: &str) -> &'static str {
    match intent {
        "closing" => "closure",
        "escalate" => "verification",
        _ => "work",
    }
}

fn with_kind(step: &Value, kind: &str) -> Value {
    let mut step = step.clone();
    if infer_kind(&step).is_none() {
        step["stepKind"] = json!(kind);
    }
    step
}

/// Adds what the step lacks, except for the transition of the tested intent.
fn complete(step: &mut Value, said: &Value, intent: &str) {
    let mut transitions = step.get("transitions").and_then(Value::as_object).cloned().unwrap_or_default();
    if step.get("structuredGate").is_none() {
        let mut allowed: Vec<&str> = transitions.keys().map(String::as_str).collect();
        if !allowed.contains(&intent) {
            allowed.push(intent);
        }
        let fields: Vec<&String> = said["handoff"].as_object().into_iter().flat_map(Map::keys).collect();
        step["structuredGate"] = json!({
            "allowedIntents": allowed,
            "intentField": "next_action.action",
            "intentSchemaRef": "#/properties/next_action/properties/action",
            "targetField": "next_action.details.target",
            "handoffFields": fields,
        });
    }
    let own = step["stepId"].clone();
    let answer_names_target = step["structuredGate"].get("targetField").is_some();
    let allowed = step["structuredGate"]["allowedIntents"].as_array().into_iter().flatten();
    for other in allowed.filter_map(Value::as_str).filter(|allowed| *allowed != intent) {
        let target = match other {
            "abort" => continue,
            "jump" if answer_names_target => continue,
            "closing" => Value::Null,
            "handoff" => json!(CLOSURE),
            _ => own.clone(),
        };
        transitions.entry(other).or_insert(json!({"target": target}));
    }
    step["transitions"] = Value::Object(transitions);
    if step.get("outputSchemaRef").is_none() {
        step["outputSchemaRef"] = json!({"file": "case.schema.json", "schema": "case"});
    }
}

/// An answer from which the step's gate reads the given interpretation.
fn answer(step: &Value, said: &Value, intent: &str) -> Value {
    let gate = &step["structuredGate"];
    let mut answer = json!({});
    put(&mut answer, gate["intentField"].as_str().unwrap_or_default(), json!(intent));
    if let (Some(field), Some(target)) = (gate["targetField"].as_str(), said.get("target")) {
        put(&mut answer, field, target.clone());
    }
    for (key, value) in said["handoff"].as_object().into_iter().flatten() {
        let mut fields = gate["handoffFields"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(field) = fields.find(|field| field.rsplit('.').next() == Some(key)) {
            put(&mut answer, field, value.clone());
        }
    }
    if let Some(reason) = said.get("reason") {
        put(&mut answer, "reason", reason.clone());
    }
    answer
}

/// Sets a value at a dotted path, creating objects as needed.
fn put(answer: &mut Value, path: &str, value: Value) {
    *path.split('.').fold(answer, |at, segment| &mut at[segment]) = value;
}
