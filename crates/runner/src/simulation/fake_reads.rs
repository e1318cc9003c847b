//! What a fake world lets a step read: values for which the wanted outcome holds, if chance finds some.

use std::collections::BTreeMap;

use cuegate_engine::{Completion, ReadCommand, ReadResult};
use cuegate_flow::{
    Str,
    model::{Case, Comparison, Flow, Gate, Operand, Predicate, ReadKind, StepId},
};
use serde_json::{Value, json};

use super::{fake_world::FakeWorld, random::SimulationRng};

/// How often values are drawn for a wanted outcome.
const DRAWS_MAX: u32 = 200;
/// The duration of reading, in simulated milliseconds.
const READ_MS: u64 = 1_000;

impl FakeWorld {
    pub(super) fn read(&mut self, command: &ReadCommand) -> Completion {
        if let Some(moment) = command.not_before_ms {
            self.clock.wait_until(moment);
        }
        self.clock.pass(READ_MS);
        let flow = self.flow.clone();
        let step = flow.find(&command.step);
        let wanted = self.wish(None).map(|choice| choice.outcome);
        let mut values = self.draw(&flow, step, command);
        if let (Some(wanted), Some(Gate::Cases(cases))) = (wanted, step.map(|id| &flow.step(id).gate)) {
            for _ in 0..DRAWS_MAX {
                if self.leads_to(cases, &command.step, &values).is_some_and(|outcome| *outcome == wanted) {
                    break;
                }
                values = self.draw(&flow, step, command);
            }
        }
        let result = ReadResult::Done { values: Some(values), duration_ms: READ_MS };
        Completion::Read { id: command.id, result }
    }

    /// Values of the reads by name.
    fn draw(&mut self, flow: &Flow, step: Option<StepId>, command: &ReadCommand) -> Value {
        let mut values = json!({});
        for read in &command.reads {
            values[&*read.name] = match &read.what {
                ReadKind::PullRequests(_) | ReadKind::Issues { .. } => {
                    let items = self.dice.below(4);
                    (1..=items).map(|number| json!({ "number": number })).collect()
                }
                kind => {
                    let fields = kind.fields().iter().map(|field| {
                        let key = format!("context.{}.{field}", read.name);
                        let value = self.draw_value(flow, step, &key, field);
                        ((*field).to_owned(), value)
                    });
                    Value::Object(fields.collect())
                }
            };
        }
        values
    }

    /// A value near those with which the definition compares it.
    fn draw_value(&mut self, flow: &Flow, step: Option<StepId>, key: &str, field: &str) -> Value {
        let name = step.map(|id| flow.step(id).name.clone()).unwrap_or_default();
        let mut compared = Vec::new();
        for step in &flow.steps {
            let Gate::Cases(cases) = &step.gate else { continue };
            cases.iter().for_each(|case| collect_compared(&case.when, &name, key, &mut compared));
        }
        if let Some(value) = self.dice.pick(&compared) {
            return value.clone();
        }
        match field {
            "exists" | "managed_by_takt" | "same_repository" | "draft" => json!(self.dice.one_in(2)),
            "number" => json!(1 + self.dice.below(9)),
            count if count.ends_with("_count") => json!(self.dice.below(3)),
            "labels" | "comments" => json!([]),
            other => json!(format!("simulated {other}")),
        }
    }

    /// The outcome to which these values lead.
    fn leads_to<'c>(
        &self,
        cases: &'c [Case],
        step: &Str,
        values: &Value,
    ) -> Option<&'c cuegate_flow::model::Outcome> {
        let read: BTreeMap<&str, &Value> = BTreeMap::from([("context", values)]);
        let value = |of: &str, key: &str| -> Option<Value> {
            if of != &**step || !key.starts_with("context.") {
                return self.run.value_of_handoff(of, key);
            }
            let path = cuegate_flow::model::FieldPath::parse(key)?;
            let all = json!(read);
            path.get(&all).cloned().or_else(|| path.count(&all).map(Value::from))
        };
        cases.iter().find(|case| case.when.holds(&value) == Ok(true)).map(|case| &case.outcome)
    }

    /// How an effect of a step ends.
    pub(super) fn draw_step_effect(dice: &mut SimulationRng) -> cuegate_engine::EffectResult {
        use cuegate_engine::EffectResult;
        let said = "as simulated".to_owned();
        match dice.below(4) {
            0 => EffectResult::Failed { said },
            1 => EffectResult::Conflicted { said, files: "[]".to_owned() },
            _ => EffectResult::Done { said, url: None },
        }
    }
}

/// The literals with which a condition compares a value, and their neighbours.
fn collect_compared(predicate: &Predicate, step: &str, key: &str, found: &mut Vec<Value>) {
    let is_meant = |operand: &Operand| matches!(operand, Operand::Handoff { step: of, key: known } if **of == *step && **known == *key);
    match predicate {
        Predicate::Always => {}
        Predicate::Not(inner) => collect_compared(inner, step, key, found),
        Predicate::All(parts) | Predicate::Any(parts) => {
            parts.iter().for_each(|part| collect_compared(part, step, key, found));
        }
        Predicate::Exists(operand) | Predicate::IsTrue(operand) if is_meant(operand) => {
            found.extend([json!(true), json!(false)]);
        }
        Predicate::Compare { left, how, right } => {
            let literal = match (left, right) {
                (Operand::Literal(literal), other) | (other, Operand::Literal(literal))
                    if is_meant(other) =>
                {
                    literal
                }
                _ => return,
            };
            match (literal, how) {
                (Value::Bool(_), _) => found.extend([json!(true), json!(false)]),
                (Value::Number(number), _) => {
                    let number = number.as_i64().unwrap_or_default();
                    found.extend([json!((number - 1).max(0)), json!(number), json!(number + 1)]);
                }
                (other, Comparison::Equal | Comparison::NotEqual) => {
                    found.extend([other.clone(), json!("other")])
                }
                _ => {}
            }
        }
        Predicate::Exists(_) | Predicate::IsTrue(_) => {}
    }
}
