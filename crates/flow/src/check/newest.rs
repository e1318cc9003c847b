//! What the newest handed-on values can be, where values select the way.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Act, FieldPath, Flow, Schema, Selector, Step, StepId, Str, Target};

/// A value that selects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    /// There is none; `null` counts as none.
    Absent,
    /// This text.
    Is(Str),
    /// This object or list, which equals no case.
    Whole(Str),
    /// Something that no list names.
    Other,
}

/// What a value can be.
pub(crate) type Values = BTreeSet<Value>;

/// What an answer can hold at a path. A schema that lists nothing allows everything.
pub(crate) fn answered(schema: Option<&Schema>, path: &FieldPath) -> Values {
    let Some(schema) = schema else { return BTreeSet::from([Value::Absent, Value::Other]) };
    let listed = schema.values_at(path).unwrap_or_else(|| vec!["\u{0}".into()]);
    let mut values: Values = listed
        .iter()
        .map(|value| match value {
            serde_json::Value::Null => Value::Absent,
            serde_json::Value::String(text) if text == "\u{0}" => Value::Other,
            serde_json::Value::String(text) => Value::Is(text.as_str().into()),
            whole if whole.is_object() || whole.is_array() => Value::Whole(whole.to_string().into()),
            other => Value::Is(other.to_string().into()),
        })
        .collect();
    if !schema.always_has(path) {
        values.insert(Value::Absent);
    }
    values
}

/// The schema of a step's answers.
pub(crate) fn schema_of<'f>(flow: &'f Flow, step: &Step<StepId>) -> Option<&'f Schema> {
    match &step.act {
        Act::Ask(ask) => ask.schema.map(|id| flow.schema(id)),
        _ => None,
    }
}

/// The names of handed-on values that select somewhere.
pub(crate) fn keys(flow: &Flow) -> Vec<Str> {
    let edges = flow.steps.iter().flat_map(|step| &step.edges);
    let mut keys: Vec<Str> = edges
        .filter_map(|edge| match &edge.to {
            Target::Select { by: Selector::Handoff(key), .. } => Some(key.clone()),
            _ => None,
        })
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

/// What the newest value of a name can be when a step is left, given what it can be when the step is entered.
pub(super) fn after(flow: &Flow, step: &Step<StepId>, key: &str, before: &Values) -> Values {
    let Some(left) = step.handoff.iter().find(|left| *left.key == *key) else { return before.clone() };
    let mut values = answered(schema_of(flow, step), &left.path);
    if values.remove(&Value::Absent) {
        values.extend(before.iter().cloned());
    }
    values
}

/// Where values select, each with those that select it.
pub(super) fn select(
    values: &Values,
    cases: &[(Str, StepId)],
    default: Option<StepId>,
) -> Vec<(StepId, Values)> {
    let mut found: Vec<(StepId, Values)> = Vec::new();
    let mut places = BTreeMap::new();
    let mut add = |to: StepId, value: &Value| {
        let at = *places.entry(to).or_insert(found.len());
        if at == found.len() {
            found.push((to, Values::new()));
        }
        found[at].1.insert(value.clone());
    };
    let places_of_cases = Cases::of(cases);
    for value in values {
        let chosen = match value {
            Value::Is(text) => places_of_cases.first(text).map(|at| cases[at].1),
            Value::Absent | Value::Whole(_) => None,
            Value::Other => {
                // It may be any of the cases as well.
                cases.iter().for_each(|(case, to)| add(*to, &Value::Is(case.clone())));
                None
            }
        };
        if let Some(to) = chosen.or(default) {
            add(to, value);
        }
    }
    found
}

/// Cases by what they say, so that each of many values finds its own at once.
struct Cases<'c> {
    texts: BTreeMap<&'c str, usize>,
    numbers: BTreeMap<u64, usize>,
}

impl<'c> Cases<'c> {
    fn of(cases: &'c [(Str, StepId)]) -> Cases<'c> {
        let (mut texts, mut numbers) = (BTreeMap::new(), BTreeMap::new());
        for (at, (case, _)) in cases.iter().enumerate() {
            texts.entry(&**case).or_insert(at);
            if let Some(number) = number(case) {
                numbers.entry(number).or_insert(at);
            }
        }
        Cases { texts, numbers }
    }

    /// The first case that a text is, as [`is_case`] says.
    fn first(&self, text: &str) -> Option<usize> {
        let by_number = number(text).and_then(|number| self.numbers.get(&number));
        self.texts.get(text).into_iter().chain(by_number).min().copied()
    }
}

/// The bits of a number that a text is; equal numbers have equal bits. What is no number equals nothing.
fn number(text: &str) -> Option<u64> {
    let number = text.parse::<f64>().ok().filter(|number| !number.is_nan())?;
    // Both zeros are one.
    Some((number + 0.0).to_bits())
}

/// Numbers are equal however they are written.
pub(crate) fn is_case(case: &str, text: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    case == text || (number(case).is_some() && number(case) == number(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_found_as_they_are_compared() {
        let texts = ["a", "1.0", "1", "nan", "-0", "0", "a", "1e0", "inf", "Infinity", "NaN", "", "b"];
        let cases: Vec<(Str, StepId)> =
            texts.iter().zip(0..).map(|(text, at)| (Str::from(*text), StepId(at))).collect();
        let found = Cases::of(&cases);
        for text in texts.into_iter().chain(["01", "c", "0.0", "+1"]) {
            let first = cases.iter().position(|(case, _)| is_case(case, text));
            assert_eq!(found.first(text), first, "{text}");
        }
    }
}
