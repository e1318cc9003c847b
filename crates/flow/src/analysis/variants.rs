//! Possible outcomes, targets and steps of a flow, for other crates.

use std::collections::HashSet;

use crate::analysis::graph;
use crate::analysis::{reachability, reachability::Live};
use serde_json::Value;

use crate::{
    Str,
    model::{Act, Edge, FieldPath, Flow, Gate, Outcome, Reader, Schema, Step, StepId},
};

/// Every possible outcome of a step's gate, including those of its judges, sorted.
pub fn outcomes(flow: &Flow, step: &Step<StepId>) -> Vec<Outcome> {
    reachability::outcomes(flow, step).into_iter().collect()
}

/// The steps that a gate asks when it cannot read an outcome by itself, in order.
pub fn judges(gate: &Gate<StepId>) -> Vec<StepId> {
    graph::judges(gate).collect()
}

/// The possible target steps of an edge, each once, in definition order; empty for an end.
pub fn targets(edge: &Edge<StepId>) -> Vec<StepId> {
    let (mut found, mut seen) = (graph::targets(&edge.to), HashSet::new());
    found.retain(|step| seen.insert(*step));
    found
}

/// Whether an edge can ever be taken on its outcome: its bound is not 0, and no earlier edge always takes that outcome.
pub fn is_takeable(step: &Step<StepId>, edge: usize) -> bool {
    graph::is_takeable(step, edge)
}

/// The indices of the edges of a step for which [`is_takeable`] holds.
pub fn takeable(step: &Step<StepId>) -> Vec<usize> {
    graph::takeable(step)
}

/// By step id: whether control can be at the step. Members and judges are asked while control stays at the step that
/// waits for them; their own edges are not followed.
pub fn walked(flow: &Flow) -> Vec<bool> {
    let live = Live::of(flow, &[flow.entry], true);
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
pub fn visited(flow: &Flow) -> Vec<bool> {
    Live::of(flow, &[flow.entry], true).steps
}

/// By monitor index: whether it can ever act, because runs can complete its cycle.
pub fn acting(flow: &Flow) -> Vec<bool> {
    Live::of(flow, &[flow.entry], true).monitors
}

/// The possible outcomes of a schema-valid answer of a step; `None` if the step has no answer, so that every outcome is
/// possible. Fallback outcomes need no valid answer; a first-iteration fallback applies to the entry only.
pub fn sayable(flow: &Flow, id: StepId) -> Option<HashSet<Outcome>> {
    let Gate::Readers(readers) = &flow.step(id).gate else { return None };
    Some(readers.iter().flat_map(|reader| told(flow, id, reader)).collect())
}

/// The outcomes that a reader of a step's answers can yield.
pub(crate) fn told(flow: &Flow, id: StepId, reader: &Reader<StepId>) -> HashSet<Outcome> {
    match reader {
        Reader::Field { path, words, .. } => {
            let schema = match &flow.step(id).act {
                Act::Ask(ask) => ask.schema.map(|schema| flow.schema(schema)),
                _ => None,
            };
            named(schema, path, words)
        }
        Reader::Tag { outcomes, .. } => outcomes.iter().cloned().collect(),
        Reader::Said { words, .. } => words.iter().map(|(_, means)| means.clone()).collect(),
        // Without an answer, any outcome is possible.
        Reader::Judge { step } => sayable(flow, *step)
            .unwrap_or_else(|| reachability::outcomes(flow, flow.step(*step)).into_iter().collect()),
        Reader::Otherwise(falls) | Reader::Fallback(falls) => HashSet::from([falls.clone()]),
        Reader::FirstFallback(falls) => HashSet::from_iter((flow.entry == id).then(|| falls.clone())),
        Reader::Silence(_) => HashSet::new(),
    }
}

/// The outcomes whose words a field may hold, as written or normalized.
fn named(schema: Option<&Schema>, path: &FieldPath, words: &[(Str, Outcome)]) -> HashSet<Outcome> {
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
    use crate::checks::{check, testing::draft};

    fn flow(text: &str) -> Flow {
        let checked = check(draft(text));
        checked.flow.or(checked.unsound).expect("its names lead somewhere")
    }

    #[test]
    fn steps_that_control_can_reach() {
        let flow = flow("a: next → b, other → c\nb: done → end\nc: done → end\nd: next → b");
        let names = |seen: Vec<bool>| -> Vec<&str> {
            flow.steps.iter().zip(seen).filter(|(_, seen)| *seen).map(|(step, _)| &*step.name).collect()
        };
        assert_eq!(names(walked(&flow)), ["a", "b", "c"]);
        assert_eq!(names(visited(&flow)), ["a", "b", "c"]);
    }

    #[test]
    fn a_closed_edge_is_not_takeable() {
        let mut flow = flow("a: next → b, next → c\nb: done → end\nc: done → end");
        let step = flow.steps[0].clone();
        assert!(is_takeable(&step, 0) && !is_takeable(&step, 1), "the first takes all");
        flow.steps[0].edges[0].bound =
            Some(crate::model::Bound { counter: crate::model::CounterId(0), max: 0 });
        let step = flow.steps[0].clone();
        assert!(!is_takeable(&step, 0) && is_takeable(&step, 1), "the first is closed");
        assert_eq!(walked(&flow), [true, false, true]);
    }
}
