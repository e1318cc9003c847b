//! The handoff values that a step's prompt reads.

use std::collections::BTreeMap;

use cuegate_engine::{PromptPart, render_template};
use cuegate_flow::{
    diagnostics::{Severity, Span},
    model::{FieldPath, Handoff, Piece, Source, Template},
};
use cuegate_formats::expand_inputs;
use serde_json::{Map, Value, json};

use super::{
    compare::{Got, member},
    world::{World, flow, step, straight},
};

/// The reading step.
const READER: &str = "reader";

/// The variables that a step's `inputs` set in its prompt, after the earlier steps wrote their handoff values.
pub(super) fn variables(input: &Value) -> Result<Got, String> {
    let call = member(input, "call")?;
    let outputs = member(call, "outputs")?.as_object().ok_or("its `outputs` are no object")?;
    let names: Vec<&str> = outputs.keys().map(String::as_str).collect();
    let (declared, found) = expand_inputs(member(call, "inputs")?, &names);
    if let Some(finding) = found.iter().find(|finding| finding.severity == Severity::Error) {
        return Ok(Got::Refused(finding.message.clone()));
    }
    // The steps that an input references exist and may write the value; the case decides whether they did.
    let mut left: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, output) in outputs {
        left.entry(name)
            .or_default()
            .extend(output.as_object().into_iter().flat_map(Map::keys).map(|key| &**key));
    }
    for declared in &declared {
        left.entry(&declared.input.step).or_default().push(&declared.input.key);
    }
    let order: Vec<&str> = left.keys().copied().chain([READER]).collect();
    let mut steps = Vec::new();
    for (index, name) in left.keys().enumerate() {
        let mut gate = straight(order.get(index + 1).copied());
        gate.handoff = left[name].iter().map(|key| handoff(key)).collect::<Result<_, _>>()?;
        steps.push(step(name, gate, Vec::new()));
    }
    steps.push(step(
        READER,
        straight(None),
        declared.iter().map(|declared| declared.input.clone()).collect(),
    ));
    let mut world = World::begin(flow(order.first().copied(), steps)?);
    for name in left.keys() {
        world.answer(outputs.get(*name).unwrap_or(&json!({})))?;
    }
    if let Some((_, why)) = world.ended() {
        return Ok(Got::Refused(why.to_owned()));
    }
    let variables: Map<String, Value> = declared
        .iter()
        .filter_map(|declared| {
            let value = Source::Input(declared.input.name.clone());
            Some((declared.variable.clone(), json!(filled(&world, value)?)))
        })
        .collect();
    Ok(Got::Value(Value::Object(variables)))
}

fn handoff(key: &str) -> Result<Handoff, String> {
    let path = FieldPath::parse(key).ok_or_else(|| format!("`{key}` is no path"))?;
    Ok(Handoff::new(key, path, Span::default()))
}

/// The value in the reader's prompt, without the fence around it; `None` if there is none.
fn filled(world: &World, value: Source) -> Option<String> {
    let reader = world.flow.step(world.flow.find(READER)?);
    let template = Template { pieces: vec![Piece::Value(value)] };
    let parts = render_template(&world.run, reader, &template, None);
    (!parts.is_empty()).then(|| {
        let texts = parts.iter().map(|part| match part {
            PromptPart::Text(text) => &**text,
            PromptPart::Blob { blob, .. } => world.text(blob),
        });
        texts.collect()
    })
}
