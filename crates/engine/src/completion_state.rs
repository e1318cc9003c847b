//! The completion state of a run: the state of its verdict, and how an answer changes it.

use std::collections::BTreeMap;

use cuegate_flow::{
    Str,
    model::{Field, FieldPath, Gate, OutcomeReader, Selector, Signal, Step, StepId, Target, Verdict},
};
use serde_json::Value;

use crate::{
    answers::action_blocks::{ActionBlock, find_action_blocks},
    command::CommandId,
    event::Event,
    event_types::PendingEntry,
    run::{Run, Work},
};

/// The counter of checking answers.
pub(crate) const CHECKS: &str = "verdict checks";

/// The maximum number of polls of one resource in a run (`VERDICT_FALLBACK_MAX_ITERATIONS` in the runner reference,
/// section 11.3.4).
pub(crate) const LOOKS_MAX: u32 = 100;

/// The default interval between polls of a resource, in milliseconds.
pub const POLL_INTERVAL_MS: u64 = 60_000;

/// The number of consecutive failed evaluations of a handler after which the run fails.
pub(crate) const FAILURES_MAX: u32 = 3;

/// The state of one part of a verdict.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConditionState {
    /// Why it was detected in some answer, or decided first. Only inside `and` an earlier answer counts.
    pub met: Option<String>,
    /// Why it was detected in an answer of the current visit.
    pub now: Option<String>,
    /// The number of polls.
    pub looks: u32,
    /// The time of the last poll, in milliseconds since 1970.
    pub looked_ms: i64,
    /// Why it held at the last poll; `None` = it did not hold.
    pub holds: Option<String>,
    /// The number of consecutive failed polls.
    pub failures: u32,
}

/// The pending polls between two visits.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingProbes {
    /// The record that requested them.
    pub seq: u64,
    /// The parts of the verdict still to be polled, by the index of the poll.
    pub open: BTreeMap<u16, Str>,
    /// The target if the run is not complete.
    pub next: PendingEntry,
}

impl Run {
    /// The number of checking answers counted for the verdict.
    pub fn checks(&self) -> u32 {
        count_checks(self)
    }

    /// Applies an event to the verdict.
    pub(crate) fn looked_around(&mut self, event: &Event) {
        match event {
            Event::ConditionMet { condition, why } => {
                let state = self.checks.conditions.entry(condition.clone()).or_default();
                state.now = Some(why.clone());
                state.met = Some(why.clone());
            }
            Event::ProbesRequested { probes, next } => {
                let open = (0..).zip(probes.iter().cloned()).collect();
                let probing = PendingProbes { seq: self.seq, open, next: next.clone() };
                if let Some(node) = &mut self.progress.node {
                    node.work = Work::Probing(probing);
                }
            }
            Event::Probed { probe, condition, holds, failed, said, at_ms, tree, .. } => {
                let known = self.checks.conditions.entry(condition.clone()).or_default();
                known.looks += 1;
                known.looked_ms = *at_ms;
                known.holds = holds.then(|| said.clone());
                known.failures = if *failed { known.failures + 1 } else { 0 };
                if let (Some(Work::Probing(probing)), CommandId::Poll { index, .. }) =
                    (self.progress.node.as_mut().map(|node| &mut node.work), probe)
                {
                    probing.open.remove(index);
                }
                self.saw(&[], tree);
            }
            _ => {}
        }
    }
}

/// Why a verdict holds; `None` if it does not. `finished` counts iterations, including the one that ends now. The last
/// poll of a part that is `due` does not count, because the part is polled again.
pub(crate) fn find_verdict_reason(
    run: &Run,
    verdict: &Verdict,
    place: &str,
    finished: u32,
    due: &[Str],
) -> Option<String> {
    holds_in(run, verdict, place, finished, due, false)
}

/// As [`find_verdict_reason`]. `kept`: whether the part is inside `and`, where detections in earlier answers count.
fn holds_in(
    run: &Run,
    verdict: &Verdict,
    place: &str,
    finished: u32,
    due: &[Str],
    kept: bool,
) -> Option<String> {
    let known = run.checks.conditions.get(place);
    let met = || known.and_then(|known| known.met.clone());
    let kept = kept || matches!(verdict, Verdict::Every(_));
    let part = |(index, part): (usize, &Verdict)| {
        holds_in(run, part, &format!("{place}.{}", index + 1), finished, due, kept)
    };
    match verdict {
        Verdict::Flow => None,
        Verdict::Iterations(max) => {
            has_reached_max(finished, *max).then(|| describe_count(*max, "iteration"))
        }
        Verdict::Checks { max, .. } => {
            has_reached_max(count_checks(run), *max).then(|| describe_count(*max, "check"))
        }
        Verdict::Keyword(_) | Verdict::Signal(_) if kept => met(),
        Verdict::Keyword(_) | Verdict::Signal(_) => known.and_then(|known| known.now.clone()),
        Verdict::Poll(_) | Verdict::Handler(_) if due.iter().any(|due| **due == *place) => None,
        Verdict::Poll(_) | Verdict::Handler(_) => known.and_then(|known| known.holds.clone()),
        Verdict::Every(all) => {
            let all: Option<Vec<String>> = all.iter().enumerate().map(part).collect();
            all.map(|all| all.join("; "))
        }
        Verdict::Any(all) => all.iter().enumerate().find_map(part),
        Verdict::First(all) => met().or_else(|| all.iter().enumerate().find_map(part)),
    }
}

/// Whether a count has reached its maximum.
pub fn has_reached_max(count: u32, max: u32) -> bool {
    count >= max
}

/// The number of counted checking answers.
pub(crate) fn count_checks(run: &Run) -> u32 {
    run.progress.counters.get(CHECKS).copied().unwrap_or(0)
}

fn describe_count(max: u32, what: &str) -> String {
    let plural = if max == 1 { "" } else { "s" };
    format!("{max} {what}{plural} done")
}

/// The parts to poll now, by index: each handler, and each resource whose interval has passed. Parts of a verdict that
/// has already decided are not polled.
pub(crate) fn find_due_parts(run: &Run, verdict: &Verdict, now: i64) -> Vec<Str> {
    let mut found = Vec::new();
    collect_due_parts(run, verdict, "1", now, &mut found);
    found
}

fn collect_due_parts(run: &Run, verdict: &Verdict, place: &str, now: i64, found: &mut Vec<Str>) {
    let known = run.checks.conditions.get(place);
    match verdict {
        Verdict::Handler(_) => found.push(place.into()),
        Verdict::Poll(poll) => {
            let named = run.started().params.contains_key(&poll.param);
            let interval = run.started().poll_interval_ms.unwrap_or(POLL_INTERVAL_MS);
            let free = known.is_none_or(|known| {
                // After the clock was set back, the elapsed time is unknown.
                let since = u64::try_from(now - known.looked_ms).unwrap_or(u64::MAX);
                known.looks < LOOKS_MAX && since >= interval
            });
            if named && free {
                found.push(place.into());
            }
        }
        Verdict::First(_) if known.is_some_and(|known| known.met.is_some()) => {}
        _ => {
            for (index, part) in verdict.parts().iter().enumerate() {
                collect_due_parts(run, part, &format!("{place}.{}", index + 1), now, found);
            }
        }
    }
}

/// Whether an answer contains a keyword in its text or in any string of its structured answer, because a step with a
/// schema has no other place for it. The match is case-sensitive and may be inside a word. Routing fields (`routing`)
/// are not searched, neither in the structured answer nor where the same object occurs in the text.
pub fn has_keyword(keyword: &str, output: Option<&Value>, text: &str, routing: &[FieldPath]) -> bool {
    let plain = output.map(|output| {
        let mut plain = output.clone();
        routing.iter().for_each(|path| path.set(&mut plain, Value::Null));
        plain
    });
    let routes = |object: &Value| routing.iter().any(|path| path.get(object).is_some());
    // The search above covered this object without its routing fields.
    let (words, objects) = split_off_objects(text, routes);
    let said = |value: &Value| texts_of_answer(Some(value), "").iter().any(|text| text.contains(keyword));
    words.contains(keyword)
        || plain.as_ref().is_some_and(said)
        || objects.into_iter().any(|mut object| {
            routing.iter().for_each(|path| path.set(&mut object, Value::Null));
            said(&object)
        })
}

/// The maximum number of opening braces tried in a text, so that a long listing does not take quadratic time.
const STARTS_MAX: usize = 256;

/// Removes the JSON objects accepted by `taken` from a text, and returns the rest and the objects.
fn split_off_objects(text: &str, taken: impl Fn(&Value) -> bool) -> (String, Vec<Value>) {
    let (mut words, mut objects, mut from) = (String::new(), Vec::new(), 0);
    for (at, _) in text.match_indices('{').take(STARTS_MAX) {
        if at < from {
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let Some(Ok(object)) = values.next() else { continue };
        if taken(&object) {
            words.push_str(&text[from..at]);
            from = at + values.byte_offset();
            objects.push(object);
        }
    }
    words.push_str(&text[from..]);
    (words, objects)
}

/// The fields of a step's answers that route: its intent, the selector of a target, and its own name.
pub(crate) fn routing_fields_of_step(step: &Step<StepId>) -> Vec<FieldPath> {
    let mut found: Vec<FieldPath> = FieldPath::parse("stepId").into_iter().collect();
    if let Gate::Readers(readers) = &step.gate {
        found.extend(readers.iter().filter_map(|reader| match reader {
            OutcomeReader::Field { path, .. } => Some(path.clone()),
            _ => None,
        }));
    }
    found.extend(step.edges.iter().filter_map(|edge| match &edge.to {
        Target::Select { by: Selector::Field(path), .. } | Target::Jump { field: Some(path), .. } => {
            Some(path.clone())
        }
        _ => None,
    }));
    found
}

/// Whether an answer gives a signal: its structured answer names the type in `signal`, `type` or `action`, or one of
/// its texts has an action block of that type, in both cases with all required fields.
pub fn has_signal(signal: &Signal, output: Option<&Value>, text: &str) -> bool {
    let named = output.is_some_and(|output| {
        ["signal", "type", "action"]
            .iter()
            .any(|key| output.get(key).and_then(Value::as_str) == Some(&*signal.kind))
            && has_required_fields(output, &signal.required)
    });
    let wanted = std::slice::from_ref(&signal.kind);
    let has_block = |text: &&str| {
        find_action_blocks(text, &signal.marker, wanted)
            .iter()
            .any(|ActionBlock { value, .. }| has_required_fields(value, &signal.required))
    };
    named || texts_of_answer(output, text).iter().any(has_block)
}

/// Whether an object has all these fields.
pub fn has_required_fields(value: &Value, required: &[Field]) -> bool {
    required.iter().all(|field| match (value.get(&*field.name), &field.value) {
        (Some(found), Some(wanted)) => is_json_equal(found, wanted),
        (found, None) => found.is_some_and(|found| !found.is_null()),
        (None, Some(_)) => false,
    })
}

/// JSON equality with `1` equal to `1.0`.
fn is_json_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_json_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_json_equal(a, b)))
        }
        _ => a == b,
    }
}

pub(crate) fn texts_of_answer<'a>(output: Option<&'a Value>, text: &'a str) -> Vec<&'a str> {
    let mut found = vec![text];
    let mut queue: Vec<&Value> = output.into_iter().collect();
    while let Some(value) = queue.pop() {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(items) => queue.extend(items),
            Value::Object(fields) => queue.extend(fields.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn routing_fields_are_not_searched_for_keywords() {
        let routing: Vec<FieldPath> =
            ["stepId", "next_action.action"].iter().filter_map(|path| FieldPath::parse(path)).collect();
        for (output, text, expected) in [
            (Some(json!({"next_action": {"action": "DONE"}, "stepId": "DONE"})), "", false),
            (Some(json!({"next_action": {"action": "DONE", "reason": "DONE"}})), "", true),
            (
                Some(json!({"next_action": {"action": "x"}})),
                "{\"next_action\": {\"action\": \"DONE\"}}",
                false,
            ),
            (None, "so: {\"next_action\": {\"action\": \"DONE\"}} and on", false),
            (None, "{\"next_action\": {\"action\": \"x\"}, \"note\": \"DONE\"}", true),
            (None, "DONE {\"next_action\": {\"action\": \"x\"}}", true),
            (None, "{\"next_action\": {\"action\": \"x\"}} DONE", true),
            (None, "{ broken { DONE", true),
        ] {
            assert_eq!(has_keyword("DONE", output.as_ref(), text, &routing), expected, "{output:?} {text}");
        }
    }

    #[test]
    fn keywords_are_found_in_texts_and_structured_answers() {
        for (output, text, expected) in [
            (None, "all DONE.", true),
            (None, "done", false),
            (None, "", false),
            (Some(json!({"a": ["x", {"b": "so: DONE"}]})), "", true),
            (Some(json!({"DONE": true})), "", false),
        ] {
            assert_eq!(has_keyword("DONE", output.as_ref(), text, &[]), expected, "{output:?} {text}");
        }
    }

    #[test]
    fn signals_are_found_in_answers_and_action_blocks() {
        let field = |name: &str, value| Field { name: name.into(), value };
        let signal = |required| Signal { kind: "review".into(), marker: "json".into(), required };
        let there = || vec![field("status", None), field("n", None)];
        let equal = || vec![field("status", Some(json!("ok"))), field("n", Some(json!(1)))];
        let block = "so:\n```json\n{\"action\": \"review\", \"status\": \"ok\", \"n\": 1.0}\n```";
        for (required, output, text, expected) in [
            (vec![], Some(json!({"signal": "review"})), "", true),
            (vec![], Some(json!({"type": "review"})), "", true),
            (vec![], Some(json!({"action": "review"})), "", true),
            (vec![], Some(json!({"action": "reviewed"})), "", false),
            (vec![], None, "review", false),
            (vec![], None, block, true),
            (there(), None, block, true),
            (equal(), None, block, true),
            (equal(), Some(json!({"comment": block})), "", true),
            (there(), Some(json!({"signal": "review", "status": "no", "n": null})), "", false),
            (there(), Some(json!({"signal": "review", "status": "no", "n": false})), "", true),
            (equal(), Some(json!({"signal": "review", "status": "no", "n": 1})), "", false),
            (vec![], None, "```review\nlooks fine\n```", true),
            (there(), None, "```review\nlooks fine\n```", false),
            // A signal must have its fields in the same object.
            (
                equal(),
                Some(json!({"signal": "review"})),
                "```json\n{\"status\": \"ok\", \"n\": 1}\n```",
                false,
            ),
        ] {
            let signal = signal(required);
            assert_eq!(has_signal(&signal, output.as_ref(), text), expected, "{signal:?} {output:?} {text}");
        }
    }
}
