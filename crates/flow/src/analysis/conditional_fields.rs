//! Optional answer fields that the schema requires for certain outcomes.

use std::cell::OnceCell;
use std::collections::HashSet;

use serde_json::Value;

use super::reachability::Reachability;
use crate::{
    Str,
    model::{Act, Flow, Gate, Handoff, Outcome, OutcomeReader, Schema, StepId},
};

/// Finds readers that may miss an optional field.
pub(crate) struct ConditionalFields<'f> {
    flow: &'f Flow,
    live: &'f Reachability,
    /// By step: whether another step waits for its answer and continues by its own outcome.
    inner: OnceCell<Vec<bool>>,
}

impl<'f> ConditionalFields<'f> {
    pub(crate) fn new(flow: &'f Flow, live: &'f Reachability) -> ConditionalFields<'f> {
        ConditionalFields { flow, live, inner: OnceCell::new() }
    }

    /// Whether some run reaches `to` after an answer of `producer` without the value. If the outcome is read from a
    /// field with listed values, each outcome is checked by its values; otherwise every outcome counts.
    pub(crate) fn may_lack(&self, producer: StepId, left: &Handoff, to: StepId) -> bool {
        let step = self.flow.step(producer);
        let Act::Ask(ask) = &step.act else { return true };
        let Some(schema) = ask.schema.map(|schema| self.flow.schema(schema)) else { return true };
        let Some(lacking) = find_lacking_outcomes(schema, &step.gate, left) else { return true };
        let inner = self.inner.get_or_init(|| {
            let mut inner = vec![false; self.flow.steps.len()];
            let ways = self.live.ways.iter().flatten().filter(|way| way.inner);
            ways.for_each(|way| inner[way.to.0 as usize] = true);
            inner
        });
        inner[producer.0 as usize] || self.comes_behind(producer, &lacking, to)
    }

    /// Whether a path leads from `from`, by one of some outcomes, to `to` without passing `from` again.
    fn comes_behind(&self, from: StepId, outcomes: &HashSet<Outcome>, to: StepId) -> bool {
        let (ways, edges) = (&self.live.ways, &self.flow.step(from).edges);
        let leads = |edge: usize| outcomes.contains(&edges[edge].on);
        let begins = ways[from.0 as usize].iter().filter(|way| way.edge.is_none_or(leads));
        let mut open: Vec<StepId> = begins.map(|way| way.to).collect();
        let mut seen = vec![false; self.flow.steps.len()];
        seen[from.0 as usize] = true;
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            if !std::mem::replace(&mut seen[at.0 as usize], true) {
                open.extend(ways[at.0 as usize].iter().map(|way| way.to));
            }
        }
        false
    }
}

/// The outcomes whose answers may lack a value; `None` if all may, or if they cannot be distinguished.
fn find_lacking_outcomes(schema: &Schema, gate: &Gate<StepId>, left: &Handoff) -> Option<HashSet<Outcome>> {
    let Gate::Readers(readers) = gate else { return None };
    let mut read = readers.iter().filter(|reader| !falls_back(reader));
    let (Some(OutcomeReader::Field { path, words, .. }), None) = (read.next(), read.next()) else {
        return None;
    };
    let of_value = |value: &Value| outcomes_of(words, value);
    let may_lack = |value: &Value| !schema.always_has_given(&left.path, path, value);
    let (lacking, having): (Vec<Value>, Vec<Value>) = schema.values_at(path)?.into_iter().partition(may_lack);
    (!having.is_empty()).then(|| lacking.iter().flat_map(of_value).collect())
}

/// A fallback leaves no values in any case; that is checked separately.
fn falls_back(reader: &OutcomeReader<StepId>) -> bool {
    match reader {
        OutcomeReader::Otherwise(_)
        | OutcomeReader::Fallback(_)
        | OutcomeReader::FirstFallback(_)
        | OutcomeReader::Silence(_) => true,
        OutcomeReader::Field { .. }
        | OutcomeReader::Tag { .. }
        | OutcomeReader::Judge { .. }
        | OutcomeReader::Said { .. } => false,
    }
}

/// The outcomes of a value: by its exact text, or by its normalized word.
fn outcomes_of(words: &[(Str, Outcome)], value: &Value) -> Vec<Outcome> {
    let word = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_lowercase());
    let is_it = |(name, means): &&(Str, Outcome)| **name == *word || value == &*means.to_string();
    words.iter().filter(is_it).map(|(_, means)| means.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::checks::testing::{codes_of, draft, hand_on, need, schema};
    use crate::model::Draft;

    /// `c` reads the plan of `a`, whose schema also contains `beside`.
    fn reads(text: &str, beside: Value) -> Vec<&'static str> {
        codes_of(reading(text, beside))
    }

    fn reading(text: &str, beside: Value) -> Draft {
        let mut draft = draft(text);
        let mut whole = json!({"type": "object", "required": ["action"], "properties":
            {"action": {"enum": ["next", "other"]}, "plan": {"type": "string"}}});
        whole.as_object_mut().expect("one").extend(beside.as_object().expect("one").clone());
        hand_on(&mut draft, 0, "plan");
        schema(&mut draft, 0, whole);
        let last = draft.steps.len() - 1;
        need(&mut draft, last, "a", "plan");
        draft
    }

    const BY_NEXT: &str = "a: next → c, other → b\nb: done → end\nc: done → end";
    const BY_BOTH: &str = "a: next → c, other → b\nb: done → c\nc: done → end";
    const AGAIN: &str = "a: next → c, other → b\nb: done → a\nc: done → end";

    fn says(word: &str) -> Value {
        json!({"properties": {"action": {"const": word}}})
    }

    #[test]
    fn fields_required_for_an_outcome_exist_behind_it() {
        let plan = json!({"required": ["plan"]});
        let with = |word: &str| json!({"properties": {"action": {"const": word}}, "required": ["plan"]});
        for beside in [
            json!({"if": says("next"), "then": plan}),
            json!({"if": says("other"), "else": plan}),
            json!({"if": {"not": says("next")}, "then": {}, "else": plan}),
            json!({"allOf": [{"if": says("next"), "then": plan}]}),
            json!({"oneOf": [with("next"), says("other")]}),
            json!({"anyOf": [with("next"), says("other")]}),
            json!({"if": says("next"), "then": {"if": says("other"), "else": plan}}),
        ] {
            assert!(reads(BY_NEXT, beside.clone()).is_empty(), "{beside}");
            assert!(reads(AGAIN, beside.clone()).is_empty(), "{beside}");
            assert_eq!(reads(BY_BOTH, beside.clone()), ["maybe-unassigned"], "{beside}");
        }
        for beside in [
            json!({"if": says("other"), "then": plan}),
            json!({"if": says("next"), "else": plan}),
            json!({"if": {"required": ["plan"]}, "then": plan}),
            json!({"oneOf": [with("other"), says("next")]}),
            json!({"anyOf": [with("next"), plan, {}]}),
            json!({"$schema": "http://json-schema.org/draft-06/schema#", "if": says("next"), "then": plan}),
            json!({"if": says("next"), "then": {"properties": {"plan": {"type": "string"}}}}),
        ] {
            assert_eq!(reads(BY_NEXT, beside.clone()), ["maybe-unassigned"], "{beside}");
        }
    }

    #[test]
    fn null_counts_as_missing() {
        let beside = |kind: Value| {
            json!({"properties": {"action": {"enum": ["next", "other"]}, "plan": {"type": ["string", "null"]}},
                "if": says("next"), "then": {"required": ["plan"], "properties": {"plan": {"type": kind}}}})
        };
        assert!(reads(BY_NEXT, beside(json!("string"))).is_empty());
        assert_eq!(reads(BY_NEXT, beside(json!(["null", "string"]))), ["maybe-unassigned"]);
    }
}
