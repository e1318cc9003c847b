//! What was edited in a workflow, by step.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::{
    analysis::flow_queries::mark_reachable_steps,
    model::{Act, Flow, Step, StepId},
};
use cuegate_view::show_json;
use serde_json::{Value, json};

/// A step that differs in an edited workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepEdit {
    /// Empty for the workflow as a whole.
    pub(crate) step: String,
    /// What was edited: `prompt`, `transitions` and so on; or `new`, `gone`.
    pub(crate) what: Vec<String>,
    /// Whether the run can still get there.
    pub(crate) matters: bool,
}

/// The steps that differ between two workflows; `at` is the step that the run is at.
pub(crate) fn list_step_edits(recorded: &Flow, edited: &Flow, at: Option<&str>) -> Vec<StepEdit> {
    let (was, is) = (describe_steps(recorded), describe_steps(edited));
    let [ahead, ahead_before] = [edited, recorded].map(|flow| list_steps_ahead(flow, at));
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let edits = names.into_iter().filter_map(|name| {
        let what: Vec<String> = match (was.get(name), is.get(name)) {
            (Some(was), Some(is)) => {
                let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
                let others = keys.into_iter().filter(|key| was.get(*key) != is.get(*key));
                others.map(|key| word_for_key(key).to_owned()).collect()
            }
            (None, _) => vec!["new".to_owned()],
            (_, None) => vec!["gone".to_owned()],
        };
        // What is gone no longer follows in the edited workflow, but in that of the run it does.
        let ahead = if is.contains_key(name) { &ahead } else { &ahead_before };
        let matters = ahead.as_ref().is_none_or(|ahead| ahead.contains(name));
        (!what.is_empty()).then(|| StepEdit { step: name.clone(), what, matters })
    });
    let whole = list_workflow_edits(recorded, edited);
    let whole = (!whole.is_empty()).then(|| StepEdit { step: String::new(), what: whole, matters: true });
    edits.chain(whole).collect()
}

/// What differs in the workflow as a whole: limits, monitors, parameters and so on.
fn list_workflow_edits(recorded: &Flow, edited: &Flow) -> Vec<String> {
    let [was, is] = [recorded, edited].map(show_json);
    let keys = is.as_object().into_iter().flatten().map(|(key, _)| key);
    let others = keys.filter(|key| *key != "steps" && was.get(key.as_str()) != is.get(key.as_str()));
    others.map(|key| if key == "entry" { "first step" } else { key.as_str() }.to_owned()).collect()
}

/// The steps that can follow on this one, itself included; `None` if it is not there.
fn list_steps_ahead(flow: &Flow, at: Option<&str>) -> Option<BTreeSet<String>> {
    let entry = flow.find(at?)?;
    let flow = Flow { entry, ..flow.clone() };
    let reached = mark_reachable_steps(&flow);
    let steps = flow.steps.iter().zip(reached).filter(|(_, reached)| *reached);
    Some(steps.map(|(step, _)| step.name.to_string()).collect())
}

/// Each step by its name, as values that can be compared.
fn describe_steps(flow: &Flow) -> BTreeMap<String, BTreeMap<String, Value>> {
    let shown = show_json(flow);
    let shown = shown["steps"].as_array().cloned().unwrap_or_default();
    let steps = flow.steps.iter().zip(shown).map(|(step, shown)| {
        let mut values: BTreeMap<String, Value> = match shown {
            Value::Object(object) => object.into_iter().collect(),
            _ => BTreeMap::new(),
        };
        values.extend(describe_texts(flow, step));
        (step.name.to_string(), values)
    });
    steps.collect()
}

/// What `show` describes and does not copy.
fn describe_texts(flow: &Flow, step: &Step<StepId>) -> Vec<(String, Value)> {
    match &step.act {
        Act::Ask(ask) => vec![
            ("prompt".to_owned(), json!(format!("{:?}", ask.prompt))),
            ("system".to_owned(), json!(format!("{:?}", ask.system))),
            ("schema".to_owned(), json!(ask.schema.map(|schema| flow.schema(schema).value().clone()))),
        ],
        Act::Person { question } => vec![("question".to_owned(), json!(format!("{question:?}")))],
        Act::System(work) => vec![("system step".to_owned(), json!(format!("{work:?}")))],
        Act::All { .. } | Act::Exec { .. } => Vec::new(),
    }
}

fn word_for_key(key: &str) -> &str {
    match key {
        "edges" => "transitions",
        "system" => "system prompt",
        "gate" => "outcomes",
        key => key,
    }
}

/// In one line each: ``the prompt and the transitions of `fix` ``.
pub(crate) fn describe_step_edits(edits: &[StepEdit]) -> Vec<String> {
    let line = |edit: &StepEdit| {
        let what: Vec<&str> = edit.what.iter().map(String::as_str).collect();
        match what.as_slice() {
            ["new"] => format!("new step `{}`", edit.step),
            ["gone"] => format!("`{}` is gone", edit.step),
            what if edit.step.is_empty() => format!("{} of the workflow", what.join(", ")),
            what => format!("{} of `{}`", what.join(", "), edit.step),
        }
    };
    edits.iter().map(line).collect()
}
