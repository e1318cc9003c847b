use crate::analysis::{
    graph::{fallback_of_step, list_asked_steps},
    newest_values,
    newest_values::{CaseIndex, PossibleValue},
    paths::{ControlGraph, Hop, id_of_step},
    reachability::Reachability,
};
use crate::checks::Code;
use crate::checks::values::unassigned_value;
use crate::{
    Str,
    diagnostics::Diagnostic,
    model::{Edge, FieldPath, Flow, Schema, Selector, Step, StepId, Target},
};

pub(in crate::checks) const CODE: Code = code!("transition-without-default");

/// An edge that selects among steps.
struct SelectingEdge<'f> {
    flow: &'f Flow,
    id: StepId,
    step: &'f Step<StepId>,
    edge: &'f Edge<StepId>,
    /// The index of the edge.
    index: usize,
}

pub(in crate::checks) fn check_uncovered_values(
    flow: &Flow,
    live: &Reachability,
    walks: &ControlGraph<'_>,
    found: &mut Vec<Diagnostic>,
) {
    for (index, step) in flow.steps.iter().enumerate().filter(|(index, _)| live.steps[*index]) {
        for at in live.open_edges(StepId(index as u32)) {
            let edge = &step.edges[*at];
            let Target::Select { by, cases, default: None } = &edge.to else { continue };
            let selecting = SelectingEdge { flow, id: StepId(index as u32), step, edge, index: *at };
            let finding = match by {
                Selector::Field(path) => {
                    selecting.own(&path.to_string(), Some(path), &selecting.uncovered(path, cases))
                }
                Selector::Handoff(key) => selecting.handed_on(live, walks, key),
            };
            found.extend(finding.map(|finding| finding.step(&step.name)));
        }
    }
}

impl SelectingEdge<'_> {
    /// The values of the answer itself that have no case.
    fn uncovered(&self, path: &FieldPath, cases: &[(Str, StepId)]) -> Vec<PossibleValue> {
        let cases = CaseIndex::of(cases.iter().map(|(case, _)| case));
        let has_case = |value: &PossibleValue| match value {
            PossibleValue::Is(text) => cases.first(text).is_some(),
            PossibleValue::Absent | PossibleValue::Whole(_) | PossibleValue::Other => false,
        };
        let values = newest_values::values_of_answer(newest_values::schema_of(self.flow, self.step), path);
        values.into_iter().filter(|value| !has_case(value)).collect()
    }

    /// The finding for values of the answer itself that have no case.
    fn own(&self, name: &str, path: Option<&FieldPath>, uncovered: &[PossibleValue]) -> Option<Diagnostic> {
        let requires = |schema: &Schema| path.is_some_and(|path| schema.requires(path));
        let (message, hint) = match uncovered.last()? {
            // A required value that can be absent can be `null`.
            PossibleValue::Absent if newest_values::schema_of(self.flow, self.step).is_some_and(requires) => {
                (
                    format!("`{name}` can be `null`, which counts as absent, and then nothing selects"),
                    "allow no `null` there, or add `default`",
                )
            }
            PossibleValue::Absent => (
                format!("an answer need not have `{name}`, and then nothing selects"),
                "list it in `required` of the schema, or add `default`",
            ),
            PossibleValue::Whole(text) => (
                format!("`{name}` can be {}, which equals no entry of `targets`", name_composite_value(text)),
                "select by a field of it that is text, a number or a truth value, or add `default`",
            ),
            PossibleValue::Is(_) => {
                let texts = uncovered.iter().filter_map(|value| match value {
                    PossibleValue::Is(text) => Some(&**text),
                    _ => None,
                });
                let texts: Vec<&str> = texts.collect();
                (
                    format!("`{name}` can be {}, which no entry of `targets` names", quote_values(&texts)),
                    "add `default`; without one such an answer is a bad answer",
                )
            }
            PossibleValue::Other => (
                format!("`{name}` can hold a value that no entry of `targets` names"),
                "add `default`; without one such an answer is a bad answer",
            ),
        };
        Some(Diagnostic::warning(CODE.name, self.edge.span, message).hint(hint))
    }

    /// The finding for a value that this step or an earlier one hands on.
    fn handed_on(&self, live: &Reachability, walks: &ControlGraph<'_>, key: &Str) -> Option<Diagnostic> {
        let flow = walks.flow;
        let bad = live.without_case(flow, self.id, self.index);
        let takes_away = |hop: &Hop| takes_away(flow, live, hop, key);
        if bad.absent && !bad.leaves {
            let hops = walks.to(self.id.0 as usize, |hop| !takes_away(hop))?;
            let trace = walks.tell(&hops, self.id.0 as usize);
            let name = &self.step.name;
            let message =
                format!("`{name}` selects by `{key}`, but a run can get here before any step sets it");
            let finding = unassigned_value::not_left(self.edge.span, message).trace(trace);
            return Some(finding.hint("add `default`, or lead every path through a step that leaves it"));
        }
        let path = self.step.handoff.iter().find(|left| left.key == *key).map(|left| &left.path);
        let own = |value: &Option<PossibleValue>| {
            let all = match (value, path, &self.edge.to) {
                (Some(PossibleValue::Is(_)), Some(path), Target::Select { cases, .. }) => {
                    self.uncovered(path, cases)
                }
                _ => Vec::new(),
            };
            let all: Vec<PossibleValue> =
                all.into_iter().filter(|value| matches!(value, PossibleValue::Is(_))).collect();
            self.own(key, path, if all.is_empty() { value.as_slice() } else { &all })
        };
        own(&bad.own)
            .or_else(|| self.of_others(live, walks, key, bad.other.as_ref()?))
            .or_else(|| own(&bad.last))
    }

    /// The finding for a value that an earlier step handed on.
    fn of_others(
        &self,
        live: &Reachability,
        walks: &ControlGraph<'_>,
        key: &Str,
        value: &PossibleValue,
    ) -> Option<Diagnostic> {
        let flow = walks.flow;
        let leaves_it = |asked: &StepId| live.carried().can_leave(asked.0 as usize, key, value);
        // Control stands on a parallel step while its members answer.
        let from: Vec<usize> = (0..flow.steps.len())
            .filter(|at| live.steps[*at] && list_asked_steps(flow, *at).any(|asked| leaves_it(&asked)))
            .collect();
        let may = |hop: &Hop| from.binary_search(&hop.from).is_ok() || !takes_away(flow, live, hop, key);
        let search = walks.search(&from, may, |step| step == self.id.0 as usize);
        let hops = search.walk(search.found?);
        let leaver = hops.first().map_or(self.id.0 as usize, |hop| hop.from);
        let from = &flow.step(list_asked_steps(flow, leaver).find(leaves_it)?).name;
        let (name, trace) = (&self.step.name, walks.tell(&hops, self.id.0 as usize));
        let what = match value {
            PossibleValue::Is(text) => format!("can be `{text}`"),
            PossibleValue::Whole(text) => format!("can be {}", name_composite_value(text)),
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
}

/// How many uncovered values are named.
const NAMED_MAX: usize = 5;

/// The first values in words.
fn quote_values(texts: &[&str]) -> String {
    let named: Vec<String> = texts.iter().take(NAMED_MAX).map(|text| format!("`{text}`")).collect();
    match texts.len().saturating_sub(NAMED_MAX) {
        0 => named.join(" or "),
        more => format!("{} or {more} more values", named.join(", ")),
    }
}

/// Names an object or a list.
fn name_composite_value(text: &str) -> &'static str {
    if text.starts_with('[') { "a list" } else { "an object" }
}

/// Whether this hop replaces the earlier value of a name. A fallback transition hands nothing on.
fn takes_away(flow: &Flow, live: &Reachability, hop: &Hop, key: &str) -> bool {
    let step = &flow.steps[hop.from];
    let fallback = fallback_of_step(step, hop.from == flow.entry.0 as usize);
    let leads =
        |edge: usize| fallback.is_some_and(|fallback| fallback.leads(&step.edges[edge], id_of_step(hop.to)));
    !hop.edge.is_some_and(leads) && live.carried().always_leaves(hop.from, key)
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{codes_of, draft, findings_of, hand_on, name};
    use crate::model::{Act, Draft, FieldPath, Schema, SchemaId, Selector, Target};
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
        let named = "`st` can be `c`, which no entry of `targets` names";
        assert_eq!(own(json!({"enum": ["a", "b", "c"]}), &["st"]), [named]);
        let many = "`st` can be `c`, `d`, `e`, `f`, `g` or 2 more values, which no entry of `targets` names";
        assert_eq!(own(json!({"enum": ["a", "b", "c", "d", "e", "f", "g", "h", "i"]}), &["st"]), [many]);
        assert_eq!(own(json!({"type": "string"}), &["st"]), [other]);
        let missing = "an answer need not have `st`, and then nothing selects";
        assert_eq!(own(json!({"enum": ["a", "b"]}), &[]), [missing]);
        let null = "`st` can be `null`, which counts as absent, and then nothing selects";
        assert_eq!(own(json!({"enum": ["a", "b", null]}), &["st"]), [null]);
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
    fn an_object_or_a_list_has_no_case() {
        let mut own = selecting(OWN, 0);
        leaving(&mut own, 0, json!({"enum": [{"b": 1, "a": 2}]}), &["st"]);
        if let Target::Select { cases, .. } = &mut own.steps[0].edges[0].to {
            cases[0].0 = r#"{"b":1,"a":2}"#.into();
        }
        let found = findings_of(own);
        let message = "`st` can be an object, which equals no entry of `targets`";
        assert!(found.iter().any(|found| found.message == message), "{found:?}");
        let mut earlier = selecting(EARLIER, 1);
        leaving(&mut earlier, 0, json!({"enum": ["a", [1]]}), &["st"]);
        let found = findings_of(earlier);
        let message = "`x` selects by `st`, which can be a list as `k`";
        assert!(found.iter().any(|found| found.message.starts_with(message)), "{found:?}");
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
