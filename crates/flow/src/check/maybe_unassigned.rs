use super::{
    Code,
    live::Live,
    unassigned_value::{Passing, demanded},
};
use crate::{Act, Diagnostic, Flow, Step, StepId};

pub(super) const CODE: Code = Code {
    name: "maybe-unassigned",
    page: "\
maybe-unassigned: a step reads what answers need not have

The step has an input that another step hands on, and every path to it passes that step. But the schema of that
step's answers does not require the field, so that an answer may leave it out. A run in which that happens fails
where the data is needed.

List the field in `required` of the schema, give the input a `default`, or make it `\"required\": false`.
",
};

pub(super) fn check(flow: &Flow, live: &Live, passing: &Passing<'_>, found: &mut Vec<Diagnostic>) {
    for (index, step) in flow.steps.iter().enumerate().filter(|(index, _)| live.steps[*index]) {
        for need in demanded(step) {
            let id = StepId(index as u32);
            let producer = passing.by_name.get(&*need.from).copied();
            let Some(producer) = producer.filter(|producer| *producer != id) else { continue };
            // A path that passes the other step by is an error of its own.
            let around = || passing.dominance.is_avoidable(id, producer);
            if !may_be_missing(flow, flow.step(producer), &need.key) || around() {
                continue;
            }
            let (from, key) = (&need.from, &need.key);
            let message = format!(
                "`{}` reads `{from}.{key}`, which answers of `{from}` may leave out: its schema does not require it",
                step.name
            );
            found.push(
                Diagnostic::warning(CODE.name, need.span, message)
                    .step(&step.name)
                    .hint("list it in `required` of that schema, or give the input a `default`"),
            );
        }
    }
}

/// Whether a step that hands a value on may answer without it.
fn may_be_missing(flow: &Flow, producer: &Step<StepId>, key: &str) -> bool {
    let Some(left) = producer.handoff.iter().find(|left| *left.key == *key) else { return false };
    let Act::Ask(ask) = &producer.act else { return false };
    ask.schema.is_some_and(|schema| !flow.schema(schema).requires(&left.path))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{codes_of, draft, hand_on, need};
    use crate::{Act, Draft, Schema, SchemaId};
    use serde_json::json;

    /// `b` needs what the schema of `a` may require.
    fn reads(required: &[&str]) -> Draft {
        let mut draft = draft("a: next → b\nb: done → end");
        hand_on(&mut draft, 0, "plan");
        need(&mut draft, 1, "a", "plan");
        let schema =
            json!({"type": "object", "required": required, "properties": {"plan": {"type": "string"}}});
        draft.schemas.push(Schema::new(schema).unwrap());
        if let Act::Ask(ask) = &mut draft.steps[0].act {
            ask.schema = Some(SchemaId(0));
        }
        draft
    }

    #[test]
    fn found_and_mended() {
        assert_eq!(codes_of(reads(&[])), ["maybe-unassigned"]);
        assert!(codes_of(reads(&["plan"])).is_empty());
        let mut defaulted = reads(&[]);
        defaulted.steps[1].inputs[0].default = Some("none".into());
        assert!(codes_of(defaulted).is_empty());
    }
}
