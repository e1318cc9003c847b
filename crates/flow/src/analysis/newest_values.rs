//! Selecting handoff values and the values that schemas allow for them.

use std::collections::{BTreeSet, HashMap};

use crate::{
    Str,
    model::{Act, FieldPath, Flow, Schema, Selector, Step, StepId, Target},
};

/// A selecting value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PossibleValue {
    /// Missing; `null` counts as missing.
    Absent,
    /// This text.
    Is(Str),
    /// This object or list, which matches no case.
    Whole(Str),
    /// A value that no list names.
    Other,
}

/// A set of possible values.
pub(crate) type PossibleValues = BTreeSet<PossibleValue>;

/// The possible values of an answer at a path. Without a list in the schema, everything is possible.
pub(crate) fn values_of_answer(schema: Option<&Schema>, path: &FieldPath) -> PossibleValues {
    let Some(schema) = schema else { return BTreeSet::from([PossibleValue::Absent, PossibleValue::Other]) };
    let Some(listed) = schema.values_at(path) else {
        let mut values = PossibleValues::from([classify_unlisted_value(schema, path)]);
        values.extend((!schema.always_has(path)).then_some(PossibleValue::Absent));
        return values;
    };
    let mut values: PossibleValues = listed
        .iter()
        .map(|value| match value {
            serde_json::Value::Null => PossibleValue::Absent,
            serde_json::Value::String(text) => PossibleValue::Is(text.as_str().into()),
            whole if whole.is_object() || whole.is_array() => PossibleValue::Whole(whole.to_string().into()),
            other => PossibleValue::Is(other.to_string().into()),
        })
        .collect();
    if !schema.always_has(path) {
        values.insert(PossibleValue::Absent);
    }
    values
}

/// The possible values at a path for which a schema lists none.
fn classify_unlisted_value(schema: &Schema, path: &FieldPath) -> PossibleValue {
    // `null` counts as missing.
    if schema.can_be(path, &["string", "number", "boolean"]) {
        return PossibleValue::Other;
    }
    PossibleValue::Whole(if schema.can_be(path, &["array"]) { "[…]".into() } else { "{…}".into() })
}

/// The schema of a step's answers.
pub(crate) fn schema_of<'f>(flow: &'f Flow, step: &Step<StepId>) -> Option<&'f Schema> {
    match &step.act {
        Act::Ask(ask) => ask.schema.map(|id| flow.schema(id)),
        _ => None,
    }
}

/// The names of handoff values that select somewhere.
pub(crate) fn list_selecting_names(flow: &Flow) -> Vec<Str> {
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

/// The targets that some values select.
pub(crate) fn select_targets(
    values: &PossibleValues,
    cases: &[(Str, StepId)],
    default: Option<StepId>,
) -> Vec<StepId> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let mut add = |to: StepId| {
        if seen.insert(to) {
            found.push(to);
        }
    };
    let places_of_cases = CaseIndex::of(cases.iter().map(|(case, _)| case));
    for value in values {
        let chosen = match value {
            PossibleValue::Is(text) => places_of_cases.first(text).map(|at| cases[at].1),
            PossibleValue::Absent | PossibleValue::Whole(_) => None,
            PossibleValue::Other => {
                // It may match any of the cases as well.
                cases.iter().for_each(|(_, to)| add(*to));
                None
            }
        };
        chosen.or(default).into_iter().for_each(&mut add);
    }
    found
}

/// Cases indexed by text, so that each of many values finds its own quickly.
#[derive(Debug, Default)]
pub(crate) struct CaseIndex {
    texts: HashMap<Str, usize>,
    numbers: HashMap<u64, usize>,
}

impl CaseIndex {
    pub(crate) fn of<'c>(cases: impl IntoIterator<Item = &'c Str>) -> CaseIndex {
        let mut found = CaseIndex::default();
        for (at, case) in cases.into_iter().enumerate() {
            found.texts.entry(case.clone()).or_insert(at);
            if let Some(number) = parse_number_bits(case) {
                found.numbers.entry(number).or_insert(at);
            }
        }
        found
    }

    /// The index of the first case that a text matches: the same text, or the same number in any notation.
    pub(crate) fn first(&self, text: &str) -> Option<usize> {
        let by_number = parse_number_bits(text).and_then(|number| self.numbers.get(&number));
        self.texts.get(text).into_iter().chain(by_number).min().copied()
    }
}

/// The bits of the number that a text parses as; equal numbers have equal bits. `None` for other texts.
pub(crate) fn parse_number_bits(text: &str) -> Option<u64> {
    let number = text.parse::<f64>().ok().filter(|number| !number.is_nan())?;
    // Normalizes negative zero.
    Some((number + 0.0).to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal numbers match in any notation.
    fn is_case(case: &str, text: &str) -> bool {
        let number = |text: &str| text.parse::<f64>().ok();
        case == text || (number(case).is_some() && number(case) == number(text))
    }

    #[test]
    fn values_of_other_types_match_no_case() {
        let answered = |kind: serde_json::Value| {
            let schema =
                serde_json::json!({"type": "object", "required": ["kind"], "properties": {"kind": kind}});
            values_of_answer(Some(&Schema::new(schema).unwrap()), &FieldPath::parse("kind").unwrap())
        };
        let list = || PossibleValue::Whole("[…]".into());
        assert_eq!(answered(serde_json::json!({"type": "array"})), PossibleValues::from([list()]));
        assert_eq!(
            answered(serde_json::json!({"type": ["array", "null"]})),
            PossibleValues::from([PossibleValue::Absent, list()])
        );
        assert_eq!(
            answered(serde_json::json!({"type": "object"})),
            PossibleValues::from([PossibleValue::Whole("{…}".into())])
        );
        assert_eq!(
            answered(serde_json::json!({"type": ["object", "string"]})),
            PossibleValues::from([PossibleValue::Other])
        );
    }

    #[test]
    fn the_index_agrees_with_comparison() {
        let texts = ["a", "1.0", "1", "nan", "-0", "0", "a", "1e0", "inf", "Infinity", "NaN", "", "b"];
        let cases: Vec<Str> = texts.map(Str::from).to_vec();
        let found = CaseIndex::of(&cases);
        for text in texts.into_iter().chain(["01", "c", "0.0", "+1"]) {
            let first = cases.iter().position(|case| is_case(case, text));
            assert_eq!(found.first(text), first, "{text}");
        }
    }
}
