//! The step of an iteration: the entry first, then the target of each transition.

use cuegate_formats::{LoweredGate, entry_step};
use serde_json::{Value, json};

use super::{
    compare::{Got, member, text},
    world::{World, flow, step, straight},
};

/// The step that a run asks in an iteration.
pub(super) fn step_of_iteration(input: &Value) -> Result<Got, String> {
    let state = member(input, "state")?;
    let iteration = member(state, "iteration")?.as_u64().ok_or("its `iteration` is no number")?;
    let mapping = state["entryStepMapping"].as_object().into_iter().flatten();
    let mapping = mapping.filter_map(|(kind, step)| Some((kind.as_str(), step.as_str()?)));
    let entry = entry_step(text(state, "verdictType")?, mapping, state["entryStep"].as_str());
    let routed = state["currentStepId"].as_str();
    let mut steps = Vec::new();
    if let Some(entry) = entry {
        let gate = match (iteration, routed) {
            (1, _) => straight(None),
            (_, Some(routed)) => straight(Some(routed)),
            // The case gives no next step.
            (_, None) => LoweredGate { edges: Vec::new(), ..straight(None) },
        };
        steps.push(step(entry, gate, Vec::new()));
    }
    if let Some(routed) = routed.filter(|routed| entry != Some(routed)) {
        steps.push(step(routed, straight(Some(routed)), Vec::new()));
    }
    let flow = match flow(entry, steps) {
        Ok(flow) => flow,
        Err(found) => return Ok(Got::Refused(found)),
    };
    let mut world = World::begin(flow);
    for _ in 1..iteration {
        world.answer(&json!({}))?;
    }
    Ok(Got::Value(json!(world.stands_on())))
}
