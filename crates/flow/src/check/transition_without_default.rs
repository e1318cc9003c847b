use std::collections::{BTreeSet, VecDeque};

use super::{
    Code,
    live::{Live, open_edges},
    newest::{self, Value, Values},
    unassigned_value,
};
use crate::{Act, Diagnostic, Edge, Flow, Selector, Step, StepId, Str, Target};

pub(super) const CODE: Code = Code {
    name: "transition-without-default",
    page: "\
transition-without-default: a conditional transition does not cover every value

The value that selects can be one that `targets` does not name, or can be missing, and there is no `default`.
An answer with such a value is a bad answer: it is asked again, and then the run fails. Where the value is what
another step left, asking again does not help. (That no step can have left it yet is `unassigned-value`.)

Add `default`, or list in the schema's `enum` exactly the values that `targets` names, and the field in
`required`.
",
};

/// An edge that selects among steps.
struct Selecting<'f> {
    id: StepId,
    step: &'f Step<StepId>,
    edge: &'f Edge<StepId>,
    cases: &'f [(Str, StepId)],
}

pub(super) fn check(flow: &Flow, live: &Live, found: &mut Vec<Diagnostic>) {
    for (index, step) in flow.steps.iter().enumerate().filter(|(index, _)| live.steps[*index]) {
        for edge in open_edges(flow, step, true) {
            let edge = &step.edges[edge];
            let Target::Select { by, cases, default: None } = &edge.to else { continue };
            let selecting = Selecting { id: StepId(index as u32), step, edge, cases };
            let finding = match by {
                Selector::Field(path) => {
                    let values = newest::answered(newest::schema_of(flow, step), path);
                    selecting.own(&path.to_string(), &values)
                }
                Selector::Handoff(key) => selecting.handed_on(flow, live, key),
            };
            found.extend(finding.map(|finding| finding.step(&step.name)));
        }
    }
}

impl Selecting<'_> {
    /// What is wrong with a value that the answer itself has.
    fn own(&self, name: &str, values: &Values) -> Option<Diagnostic> {
        let without_case = self.without_case(values);
        let (message, hint) = match without_case.last()? {
            Value::Absent => (
                format!("an answer need not have `{name}`, and then nothing selects"),
                "list it in `required` of the schema, or add `default`",
            ),
            _ => (
                format!("`{name}` can hold a value that no entry of `targets` names"),
                "add `default`; without one such an answer is a bad answer",
            ),
        };
        Some(Diagnostic::warning(CODE.name, self.edge.span, message).hint(hint))
    }

    /// What is wrong with a value that this step or an earlier one leaves.
    fn handed_on(&self, flow: &Flow, live: &Live, key: &Str) -> Option<Diagnostic> {
        let mut own: Vec<Values> = leaves(flow, self.step, key).into_iter().collect();
        if let Act::All { members, .. } = &self.step.act {
            own.extend(members.iter().filter_map(|member| leaves(flow, flow.step(*member), key)));
        }
        let values = live.leaving(flow, self.id, key);
        let mine: Values = own.iter().flatten().filter(|value| **value != Value::Absent).cloned().collect();
        let is_own = |value: &Value| mine.contains(value);
        let bad = self.without_case(&values);
        if bad.contains(&Value::Absent) && own.is_empty() {
            let trace = walk(flow, live, live.entries(), self.id, |step| takes_away(flow, step, key))?;
            let name = &self.step.name;
            let message =
                format!("`{name}` selects by `{key}`, but a run can come here before any step has left it");
            let finding = unassigned_value::not_left(self.edge.span, message).trace(trace);
            return Some(finding.hint("add `default`, or lead every path through a step that leaves it"));
        }
        let others: Values =
            bad.iter().filter(|value| !is_own(value) && **value != Value::Absent).cloned().collect();
        let mine = bad.iter().filter(|value| is_own(value)).cloned().collect();
        self.own(key, &mine)
            .or_else(|| self.of_others(flow, live, key, &others))
            .or_else(|| self.own(key, &bad))
    }

    /// What is wrong with a value that an earlier step left.
    fn of_others(&self, flow: &Flow, live: &Live, key: &Str, bad: &Values) -> Option<Diagnostic> {
        let value = bad.first()?;
        let leaving = |step: &StepId| {
            live.steps[step.0 as usize]
                && leaves(flow, flow.step(*step), key).is_some_and(|values| values.contains(value))
        };
        let ids = (0..flow.steps.len() as u32).map(StepId);
        let (from, trace) = ids.filter(leaving).find_map(|from| {
            let begin = [parent(flow, from)];
            Some((from, walk(flow, live, &begin, self.id, |step| takes_away(flow, step, key))?))
        })?;
        let (name, from) = (&self.step.name, &flow.step(from).name);
        let what = match value {
            Value::Is(text) => format!("can be `{text}`"),
            _ => "can be anything".to_owned(),
        };
        let message = format!(
            "`{name}` selects by `{key}`, which {what} as `{from}` leaves it, and no entry of `targets` names that"
        );
        Some(
            Diagnostic::warning(CODE.name, self.edge.span, message)
                .hint("add `default`; without one the run fails here")
                .trace(trace),
        )
    }

    fn without_case(&self, values: &Values) -> Values {
        let has_case = |value: &Value| match value {
            Value::Is(text) => self.cases.iter().any(|(case, _)| newest::is_case(case, text)),
            Value::Absent | Value::Other => false,
        };
        values.iter().filter(|value| !has_case(value)).cloned().collect()
    }
}

/// What a step's own answer can leave under a name.
fn leaves(flow: &Flow, step: &Step<StepId>, key: &str) -> Option<Values> {
    let left = step.handoff.iter().find(|left| *left.key == *key)?;
    Some(newest::answered(newest::schema_of(flow, step), &left.path))
}

/// Whether what was there under a name before is not there any more after this step.
fn takes_away(flow: &Flow, step: StepId, key: &str) -> bool {
    leaves(flow, flow.step(step), key).is_some_and(|values| !values.contains(&Value::Absent))
}

/// The step that control stands on while this one answers.
fn parent(flow: &Flow, id: StepId) -> StepId {
    let has = |step: &Step<StepId>| matches!(&step.act, Act::All { members, .. } if members.contains(&id));
    flow.steps.iter().position(has).map_or(id, |at| StepId(at as u32))
}

/// A shortest walk from some steps to another one, over none (but where it begins) that is to be avoided.
fn walk(
    flow: &Flow,
    live: &Live,
    from: &[StepId],
    to: StepId,
    avoid: impl Fn(StepId) -> bool,
) -> Option<Vec<String>> {
    let mut queue: VecDeque<StepId> = from.iter().copied().collect();
    let mut seen: BTreeSet<StepId> = from.iter().copied().collect();
    let mut came: Vec<Option<(StepId, String)>> = vec![None; flow.steps.len()];
    while let Some(at) = queue.pop_front() {
        for way in live.ways[at.0 as usize].iter().filter(|way| !way.inner) {
            let step = flow.step(at);
            let hop = match way.edge {
                Some(edge) => format!("{} --{}→", step.name, step.edges[edge].on),
                None => format!("{} →", step.name),
            };
            if way.to == to {
                let mut trace = vec![flow.step(to).name.to_string(), hop];
                let mut next = at;
                while let Some((before, hop)) = came[next.0 as usize].take() {
                    trace.push(hop);
                    next = before;
                }
                trace.reverse();
                return Some(trace);
            }
            if !avoid(way.to) && seen.insert(way.to) {
                came[way.to.0 as usize] = Some((at, hop));
                queue.push_back(way.to);
            }
        }
    }
    // Where it begins.
    from.contains(&to).then(|| vec![flow.step(to).name.to_string()])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{codes_of, draft, findings_of, hand_on, name};
    use crate::{Act, Draft, FieldPath, Schema, SchemaId, Selector, Target};
    use serde_json::{Value, json};

    /// The first edge of a step selects `y` or `z` by `st`.
    fn selecting(text: &str, step: usize) -> Draft {
        let mut draft = draft(text);
        draft.steps[step].edges[0].to = Target::Select {
            by: Selector::Handoff("st".into()),
            cases: vec![("a".into(), name("y")), ("b".into(), name("z"))],
            default: None,
        };
        draft
    }

    /// A step leaves `st`, of which its schema says this.
    fn leaving(draft: &mut Draft, step: usize, st: Value, required: &[&str]) {
        hand_on(draft, step, "st");
        let schema = json!({"type": "object", "required": required, "properties": {"st": st}});
        draft.schemas.push(Schema::new(schema).unwrap());
        if let Act::Ask(ask) = &mut draft.steps[step].act {
            ask.schema = Some(SchemaId(draft.schemas.len() as u32 - 1));
        }
    }

    const OWN: &str = "x: go → y\ny: done → end\nz: done → end";

    #[test]
    fn what_an_answer_itself_says() {
        let own = |st: Value, required: &[&str]| {
            let mut draft = selecting(OWN, 0);
            leaving(&mut draft, 0, st, required);
            findings_of(draft).into_iter().map(|found| found.message).collect::<Vec<_>>()
        };
        assert_eq!(own(json!({"enum": ["a", "b"]}), &["st"]), [""; 0]);
        let other = "`st` can hold a value that no entry of `targets` names";
        assert_eq!(own(json!({"enum": ["a", "b", "c"]}), &["st"]), [other]);
        assert_eq!(own(json!({"type": "string"}), &["st"]), [other]);
        let missing = "an answer need not have `st`, and then nothing selects";
        assert_eq!(own(json!({"enum": ["a", "b"]}), &[]), [missing]);
        assert_eq!(own(json!({"enum": ["a", "b", null]}), &["st"]), [missing]);
        let mut defaulted = selecting(OWN, 0);
        leaving(&mut defaulted, 0, json!({"type": "string"}), &[]);
        if let Target::Select { default, .. } = &mut defaulted.steps[0].edges[0].to {
            *default = Some(name("y"));
        }
        assert_eq!(codes_of(defaulted), [""; 0]);
    }

    #[test]
    fn a_field_of_the_answer_itself() {
        let mut draft = selecting(OWN, 0);
        leaving(&mut draft, 0, json!({"enum": ["a", "c"]}), &["st"]);
        if let Target::Select { by, .. } = &mut draft.steps[0].edges[0].to {
            *by = Selector::Field(FieldPath::parse("st").unwrap());
        }
        assert_eq!(codes_of(draft), ["unreachable-step", "transition-without-default"]);
    }

    const EARLIER: &str = "k: on → x, by → x\nx: go → y\ny: done → end\nz: done → end";

    #[test]
    fn what_an_earlier_step_left() {
        let mut sound = selecting(EARLIER, 1);
        leaving(&mut sound, 0, json!({"enum": ["a", "b"]}), &["st"]);
        assert_eq!(codes_of(sound), [""; 0]);
        let mut other = selecting(EARLIER, 1);
        leaving(&mut other, 0, json!({"enum": ["a", "b", "c"]}), &["st"]);
        let found = findings_of(other);
        assert_eq!(
            found[0].message,
            "`x` selects by `st`, which can be `c` as `k` leaves it, and no entry of `targets` names that"
        );
        assert_eq!((found.len(), &found[0].trace[..]), (1, &["k --on→".to_owned(), "x".to_owned()][..]));
    }

    #[test]
    fn what_no_step_has_left_yet() {
        let mut around =
            selecting("e: on → k, by → x\nk: on → x\nx: go → y\ny: done → end\nz: done → end", 2);
        leaving(&mut around, 1, json!({"enum": ["a", "b"]}), &["st"]);
        let found = findings_of(around);
        assert_eq!((found.len(), found[0].code), (1, "unassigned-value"));
        assert_eq!(found[0].trace, ["e --by→", "x"]);
    }

    #[test]
    fn what_a_step_leaves_takes_the_place_of_what_was_left_before() {
        let mut draft = selecting("k: on → l\nl: on → x\nx: go → y\ny: done → end\nz: done → end", 2);
        leaving(&mut draft, 0, json!({"type": "string"}), &["st"]);
        leaving(&mut draft, 1, json!({"enum": ["a", "b"]}), &["st"]);
        assert_eq!(codes_of(draft), [""; 0]);
    }
}
