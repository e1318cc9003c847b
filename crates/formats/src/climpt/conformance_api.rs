//! Lowers gates without a whole registry.

use cuegate_flow::diagnostics::{Diagnostic, Span};
use serde_json::Value;

use super::generation::Generation;
use super::registry::gate_lowering::{LoweredGate, RegistryContext, lower_step_gate};
use super::registry::step_definition::{StepDefinition, read_step};
use crate::findings::Findings;
use crate::values::json::{Entry, Json};

/// Lowers the gate of a step definition alone: other steps and the kinds of its targets are unknown. `None` when it is
/// not an object. Findings have no place.
pub fn lower_gate(step: &Value, generation: Generation) -> (Option<LoweredGate>, Vec<Diagnostic>) {
    let id = step.get("stepId").and_then(Value::as_str).unwrap_or("step");
    let (mut gates, found) =
        lower_gates(&Value::Object([(id.to_owned(), step.clone())].into_iter().collect()), generation);
    (gates.pop().map(|(_, gate)| gate), found)
}

/// Lowers the gates of all steps of a `steps` object in order, as [`crate::load_agent`] does, without schemas, prompts
/// and validators. Sections have no gates. Findings have no place.
pub fn lower_gates(steps: &Value, generation: Generation) -> (Vec<(String, LoweredGate)>, Vec<Diagnostic>) {
    let found = Findings::default();
    let json = Json::from(steps);
    let entries: Vec<&Entry> = json.pairs().iter().collect();
    let steps: Vec<StepDefinition<'_>> =
        entries.iter().filter_map(|entry| read_step(entry, generation, &found)).collect();
    let world = RegistryContext::new(&steps, &[]);
    let gates = steps
        .iter()
        .filter(|step| !step.section)
        .map(|step| (step.id.to_owned(), lower_step_gate(step, None, &world, &found)))
        .collect();
    let mut found = found.into_parts().0;
    found.iter_mut().for_each(|finding| finding.span = Span::default());
    (gates, found)
}

#[cfg(test)]
mod tests {
    use super::{Generation, lower_gate, lower_gates};
    use cuegate_flow::model::{Gate, Outcome, OutcomeReader, Target};
    use serde_json::json;

    #[test]
    fn a_step_alone_needs_no_kind() {
        let step = json!({"structuredGate": {"allowedIntents": ["next", "closing"], "intentField": "status",
            "intentSchemaRef": "#/test", "handoffFields": ["a.x", "b.x", "c.y"]}});
        let gate = lower_gate(&step, Generation::Closing).0.unwrap();
        let Gate::Readers(readers) = &gate.gate else { panic!("{:?}", gate.gate) };
        let OutcomeReader::Field { words, .. } = &readers[0] else { panic!("{readers:?}") };
        let words: Vec<&str> = words.iter().map(|(word, _)| &**word).collect();
        assert_eq!(words, ["next", "continue", "pass", "closing", "done", "finished", "abort"]);
        let keys: Vec<&str> = gate.handoff.iter().map(|left| &*left.key).collect();
        assert_eq!(keys, ["a.x", "b.x", "y"], "the whole path where the last segment is ambiguous");
    }

    #[test]
    fn gates_of_a_whole_registry_know_each_other() {
        let steps = json!({
            "a": {"stepId": "a", "c2": "initial", "c3": "x", "structuredGate": {"allowedIntents": ["jump"],
                "intentField": "i", "intentSchemaRef": "#/x", "targetField": "t"}, "transitions": {}},
            "b": {"stepId": "b", "c2": "verification", "c3": "x"},
            "c": {"stepId": "c", "c2": "closure", "c3": "x"},
            "section.s": {"stepId": "section.s", "c2": "section", "c3": "s"}
        });
        let (gates, _) = lower_gates(&steps, Generation::Closing);
        assert_eq!(gates.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        let jump = gates[0].1.edges.iter().find(|edge| edge.on == Outcome::Named("jump".into())).unwrap();
        let Target::Jump { among, .. } = &jump.to else { panic!("{:?}", jump.to) };
        let among: Vec<&str> = among.iter().map(|name| &*name.text).collect();
        assert_eq!(among, ["a", "b"], "any work or verification step, never a closure step");
        assert!(lower_gate(&json!("no step"), Generation::Closing).0.is_none());
    }
}
