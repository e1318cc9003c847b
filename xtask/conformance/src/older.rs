//! Steps of the "complete" generation: the decision from an answer, and its target.
//!
//! As in the recorded calls, the step is alone at the start of a run. The adapter adds a transition for every other
//! allowed intent; the case gives the transition of the decided intent.

use cuegate_engine::{EndState, Event};
use cuegate_flow::diagnostics::Severity;
use cuegate_formats::{Generation, lower_gates};
use serde_json::{Map, Value, json};

use super::{
    compare::{Got, member, text},
    world::{World, flow, step, straight},
};

/// Answers a step and follows its decision.
pub(super) fn decide(input: &Value) -> Result<Got, String> {
    let current = text(input, "currentStepId")?;
    let output = member(input, "structuredOutput")?;
    let recorded = member(member(input, "registry")?, "steps")?.as_object().ok_or("it has no steps")?;
    let mut steps: Map<String, Value> = recorded.clone();
    let here = steps.get_mut(current).ok_or_else(|| format!("it has no step `{current}`"))?;
    complete(here, current, output);
    let (gates, found) = lower_gates(&Value::Object(steps), Generation::Complete);
    let errors: Vec<&str> = found
        .iter()
        .filter(|finding| finding.severity == Severity::Error && finding.step.as_deref() == Some(current))
        // These cases do not test the schema of an answer.
        .filter(|finding| !finding.message.contains("outputSchemaRef"))
        .map(|finding| finding.message.as_str())
        .collect();
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
    world.answer(output)?;
    Ok(went(&world, current))
}

/// Adds a transition for every other allowed intent.
fn complete(step: &mut Value, current: &str, output: &Value) {
    let decided = output["next_action"]["action"].as_str().unwrap_or("next").to_owned();
    let allowed = step["structuredGate"]["allowedIntents"].as_array().cloned().unwrap_or_default();
    for other in allowed.iter().filter_map(Value::as_str) {
        if other != decided && !matches!(other, "jump" | "abort") && step["transitions"].get(other).is_none()
        {
            step["transitions"][other] = json!({"target": current});
        }
    }
}

fn went(world: &World, current: &str) -> Got {
    let decided = world.events.iter().find_map(|event| match event {
        Event::Decided { outcome, fallback, .. } => Some((outcome, *fallback)),
        _ => None,
    });
    let Some((intent, fallback)) = decided else {
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
    let (next, completes) = match world.ended() {
        None => (json!(world.stands_on()), false),
        Some((EndState::Completed, _)) => (json!(current), true),
        Some((_, why)) => (json!({"ended": why}), false),
    };
    Got::Value(json!({"intent": **intent, "usedFallback": fallback, "handoff": handoff,
        "nextStepId": next, "signalCompletion": completes}))
}

/// Equal intent, target and data. The original program generates its reasons, so they are not compared.
pub(super) fn same(_: &Value, theirs: &Value, ours: &Value) -> bool {
    let handoff = theirs.get("handoff").cloned().unwrap_or_else(|| json!({}));
    let keys = ["intent", "usedFallback", "nextStepId", "signalCompletion"];
    keys.iter().all(|key| ours[*key] == theirs[*key]) && ours["handoff"] == handoff
}

/// A case that records both calls separately, in the common shape; `None` for a case of another shape.
pub(super) fn common(subject: &str, written: &Value) -> Option<Value> {
    let (name, read) = (written["name"].as_str()?, written.get("interpretation")?);
    let id = format!("{subject}#{name}");
    if let Some(error) = written.get("error") {
        return Some(json!({"id": id, "input": written["input"], "expectError": error}));
    }
    let mut expected = read.clone();
    for key in ["nextStepId", "signalCompletion"] {
        expected[key] = written["routing"][key].clone();
    }
    Some(json!({"id": id, "input": written["input"], "expect": expected}))
}
