//! Possible outcomes, targets and steps of a flow, for other crates.

use std::collections::HashSet;

use crate::analysis::graph;
use crate::analysis::{reachability, reachability::Reachability};
use serde_json::Value;

use crate::{
    Str,
    model::{Act, Edge, FieldPath, Flow, Gate, Outcome, OutcomeReader, Schema, Step, StepId},
};

/// Every possible outcome of a step's gate, including those of its judges, sorted.
pub fn list_step_outcomes(flow: &Flow, step: &Step<StepId>) -> Vec<Outcome> {
    reachability::outcomes_of_step(flow, step).into_iter().collect()
}

/// The steps that a gate asks when it cannot read an outcome by itself, in order.
pub fn list_gate_judges(gate: &Gate<StepId>) -> Vec<StepId> {
    graph::judges_of_gate(gate).collect()
}

/// The possible target steps of an edge, each once, in definition order; empty for an end.
pub fn list_edge_targets(edge: &Edge<StepId>) -> Vec<StepId> {
    let (mut found, mut seen) = (graph::steps_of_target(&edge.to), HashSet::new());
    found.retain(|step| seen.insert(*step));
    found
}

/// Whether an edge can ever be taken on its outcome: its bound is not 0, and no earlier edge always takes that outcome.
pub fn is_takeable(step: &Step<StepId>, edge: usize) -> bool {
    graph::is_takeable(step, edge)
}

/// The indices of the edges of a step for which [`is_takeable`] holds.
pub fn list_takeable_edges(step: &Step<StepId>) -> Vec<usize> {
    graph::takeable_edges_of_step(step)
}

/// By step id: whether control can be at the step. Members and judges are asked while control stays at the step that
/// waits for them; their own edges are not followed.
pub fn mark_control_steps(flow: &Flow) -> Vec<bool> {
    let live = Reachability::of(flow, &[flow.entry], true);
    let mut seen = vec![false; flow.steps.len()];
    let mut queue = vec![flow.entry];
    while let Some(id) = queue.pop() {
        if !std::mem::replace(&mut seen[id.0 as usize], true) {
            queue.extend(live.ways[id.0 as usize].iter().filter(|way| !way.inner).map(|way| way.to));
        }
    }
    seen
}

/// By step id: whether the step can be asked or entered at all: control can be there, or it is a member, or a judge of
/// either.
pub fn mark_reachable_steps(flow: &Flow) -> Vec<bool> {
    Reachability::of(flow, &[flow.entry], true).steps
}

/// By monitor index: whether it can ever act, because runs can complete its cycle.
pub fn mark_acting_monitors(flow: &Flow) -> Vec<bool> {
    Reachability::of(flow, &[flow.entry], true).monitors
}

/// The possible outcomes of a schema-valid answer of a step; `None` if the step has no answer, so that every outcome is
/// possible. Fallback outcomes need no valid answer; a first-iteration fallback applies to the entry only.
pub fn possible_outcomes_of_answer(flow: &Flow, id: StepId) -> Option<HashSet<Outcome>> {
    let Gate::Readers(readers) = &flow.step(id).gate else { return None };
    Some(readers.iter().flat_map(|reader| possible_outcomes_of_reader(flow, id, reader)).collect())
}

/// The outcomes that a reader of a step's answers can yield.
pub(crate) fn possible_outcomes_of_reader(
    flow: &Flow,
    id: StepId,
    reader: &OutcomeReader<StepId>,
) -> HashSet<Outcome> {
    match reader {
        OutcomeReader::Field { path, words, .. } => {
            let schema = match &flow.step(id).act {
                Act::Ask(ask) => ask.schema.map(|schema| flow.schema(schema)),
                _ => None,
            };
            possible_outcomes_of_field(schema, path, words)
        }
        OutcomeReader::Tag { outcomes, .. } => outcomes.iter().cloned().collect(),
        OutcomeReader::Said { words, .. } => words.iter().map(|(_, means)| means.clone()).collect(),
        // Without an answer, any outcome is possible.
        OutcomeReader::Judge { step } => possible_outcomes_of_answer(flow, *step)
            .unwrap_or_else(|| reachability::outcomes_of_step(flow, flow.step(*step)).into_iter().collect()),
        OutcomeReader::Otherwise(falls) | OutcomeReader::Fallback(falls) => HashSet::from([falls.clone()]),
        OutcomeReader::FirstFallback(falls) => HashSet::from_iter((flow.entry == id).then(|| falls.clone())),
        OutcomeReader::Silence(_) => HashSet::new(),
    }
}

/// The outcomes whose words a field may hold, as written or normalized.
fn possible_outcomes_of_field(
    schema: Option<&Schema>,
    path: &FieldPath,
    words: &[(Str, Outcome)],
) -> HashSet<Outcome> {
    let Some(values) = schema.and_then(|schema| schema.values_at(path)) else {
        return words.iter().map(|(_, means)| means.clone()).collect();
    };
    let normal =
        |value: &Value| value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_lowercase());
    let texts: HashSet<String> = values.iter().map(normal).collect();
    let written: HashSet<&str> = values.iter().filter_map(Value::as_str).collect();
    let is_there =
        |(word, means): &&(Str, Outcome)| texts.contains(&**word) || written.contains(&*means.to_string());
    words.iter().filter(is_there).map(|(_, means)| means.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{check_draft, testing::draft};

    fn flow(text: &str) -> Flow {
        let checked = check_draft(draft(text));
        checked.flow.or(checked.unsound).expect("its names lead somewhere")
    }

    #[test]
    fn steps_that_control_can_reach() {
        let flow = flow("a: next → b, other → c\nb: done → end\nc: done → end\nd: next → b");
        let names = |seen: Vec<bool>| -> Vec<&str> {
            flow.steps.iter().zip(seen).filter(|(_, seen)| *seen).map(|(step, _)| &*step.name).collect()
        };
        assert_eq!(names(mark_control_steps(&flow)), ["a", "b", "c"]);
        assert_eq!(names(mark_reachable_steps(&flow)), ["a", "b", "c"]);
    }

    #[test]
    fn a_closed_edge_is_not_takeable() {
        let mut flow = flow("a: next → b, next → c\nb: done → end\nc: done → end");
        let step = flow.steps[0].clone();
        assert!(is_takeable(&step, 0) && !is_takeable(&step, 1), "the first takes all");
        flow.steps[0].edges[0].bound =
            Some(crate::model::EdgeBound { counter: crate::model::CounterId(0), max: 0 });
        let step = flow.steps[0].clone();
        assert!(!is_takeable(&step, 0) && is_takeable(&step, 1), "the first is closed");
        assert_eq!(mark_control_steps(&flow), [true, false, true]);
    }
}
