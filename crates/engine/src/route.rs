//! Resolves the target of an outcome.

use std::collections::BTreeMap;

use cuegate_flow::{
    Str,
    model::{Ending, Flow, Selector, StepId, Target},
};
use serde_json::Value;

use crate::{
    answers::gate::{InvalidAnswer, clip_to_line},
    run::Run,
};

/// The resolved target of an outcome.
#[derive(Debug, Clone, PartialEq)]
pub enum Route {
    Step(StepId),
    /// The end of the run.
    End(Ending),
}

/// Resolves a target.
///
/// `handed` has the handoff values of the routed answer, `from` is the step of the open visit.
///
/// # Errors
/// Returns an error if the answer does not select an allowed step.
pub fn resolve_target(
    flow: &Flow,
    run: &Run,
    from: &str,
    to: &Target<StepId>,
    output: Option<&Value>,
    handed: &BTreeMap<Str, Value>,
) -> Result<Route, InvalidAnswer> {
    match to {
        Target::Step(step) => Ok(Route::Step(*step)),
        Target::End(ending) => Ok(Route::End(ending.clone())),
        Target::Origin { among } => {
            let origin = run.progress.origins.get(from).and_then(|origin| flow.find(origin));
            let step = origin.filter(|origin| among.contains(origin)).or_else(|| flow.find(from));
            step.map(Route::Step).ok_or_else(|| InvalidAnswer::wrong("nobody handed off"))
        }
        Target::Select { by, cases, default } => {
            let value = match by {
                Selector::Field(path) => output.and_then(|output| path.get(output)).map(SelectorValue::of),
                Selector::Handoff(key) => {
                    let handed = handed.get(key).filter(|value| !value.is_null());
                    handed.map(SelectorValue::of).or_else(|| find_newest_handoff(run, key))
                }
            };
            let chosen = value.as_ref().and_then(|value| value.among(cases)).or(*default);
            chosen.map(Route::Step).ok_or_else(|| {
                let cases: Vec<String> = cases.iter().map(|(case, _)| format!("`{case}`")).collect();
                let what = match by {
                    Selector::Field(path) => path.to_string(),
                    Selector::Handoff(key) => key.to_string(),
                };
                let found =
                    value.map_or("absent".to_owned(), |value| format!("`{}`", clip_to_line(&value.text)));
                InvalidAnswer::wrong(format!("`{what}` is {found}, allowed are {}", cases.join(", ")))
            })
        }
        Target::Jump { field, among, default } => {
            let named = field.as_ref().and_then(|path| path.get(output?)).map(as_text);
            let Some(named) = named else {
                return default.map(Route::Step).ok_or_else(|| {
                    let path = field.as_ref().map(ToString::to_string).unwrap_or_default();
                    InvalidAnswer::wrong(format!("`{path}` names no step to jump to"))
                });
            };
            let found = among.iter().copied().find(|step| *flow.step(*step).name == *named);
            found.map(Route::Step).ok_or_else(|| {
                let names: Vec<String> =
                    among.iter().map(|step| format!("`{}`", flow.step(*step).name)).collect();
                InvalidAnswer::wrong(format!(
                    "cannot jump to `{}`, allowed are {}",
                    clip_to_line(&named),
                    names.join(", ")
                ))
            })
        }
    }
}

/// A value in comparisons.
pub(crate) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

struct SelectorValue {
    text: String,
    number: Option<f64>,
    /// Whether it is an object or a list. Equal ones may differ in their text, so they equal no case.
    is_whole: bool,
}

impl SelectorValue {
    fn of(value: &Value) -> SelectorValue {
        let is_whole = value.is_object() || value.is_array();
        SelectorValue { text: as_text(value), number: value.as_f64(), is_whole }
    }

    /// The step of the matching case.
    fn among(&self, cases: &[(Str, StepId)]) -> Option<StepId> {
        if self.is_whole {
            return None;
        }
        let exact = cases.iter().find(|(case, _)| **case == *self.text);
        // Numbers are compared by value: `1` equals `1.0`.
        let equals = |case: &Str| self.number.is_some() && case.parse().ok() == self.number;
        exact.or_else(|| cases.iter().find(|(case, _)| equals(case))).map(|(_, step)| *step)
    }
}

impl Run {
    /// The newest handoff value of this name from any step, as text; `None` if there is none or it is too long for a
    /// selector.
    pub fn newest(&self, key: &str) -> Option<Str> {
        find_newest_handoff(self, key).map(|value| value.text.into())
    }
}

/// The newest short handoff value of this name from any step.
fn find_newest_handoff(run: &Run, key: &str) -> Option<SelectorValue> {
    let left = run.context.handoffs.values().filter_map(|left| left.get(key));
    let kept = left.max_by_key(|kept| kept.order)?;
    let text = kept.scalar.as_ref()?.to_string();
    let number = if kept.text { None } else { text.parse().ok() };
    // Objects and lists have no text to select by.
    Some(SelectorValue { text, number, is_whole: false })
}

#[cfg(test)]
mod tests {
    use super::{SelectorValue, find_newest_handoff};
    use crate::run::{HandoffValue, Run};
    use cuegate_flow::{
        Str,
        model::{BlobRef, StepId},
    };
    use serde_json::json;

    fn cases() -> Vec<(Str, StepId)> {
        vec![("1".into(), StepId(1)), ("2".into(), StepId(2))]
    }

    fn left(text: &str, is_text: bool) -> Run {
        let mut run = Run::default();
        let kept = HandoffValue {
            value: BlobRef::for_bytes(text.as_bytes()),
            scalar: Some(text.into()),
            text: is_text,
            order: (1, 0),
        };
        run.context.handoffs.entry("a".into()).or_default().insert("rounds".into(), kept);
        run
    }

    #[test]
    fn numbers_are_compared_by_value() {
        for value in [json!(1), json!(1.0), json!("1")] {
            assert_eq!(SelectorValue::of(&value).among(&cases()), Some(StepId(1)), "{value}");
        }
        let of_earlier = |text: &str, is_text| {
            find_newest_handoff(&left(text, is_text), "rounds").and_then(|value| value.among(&cases()))
        };
        assert_eq!(of_earlier("2.0", false), Some(StepId(2)));
        assert_eq!(of_earlier("2.0", true), None, "a text is what it is");
        assert_eq!(SelectorValue::of(&json!("1.0")).among(&cases()), None, "a text is what it is");
    }

    #[test]
    fn objects_and_lists_match_no_case() {
        let written: Vec<(Str, StepId)> =
            [r#"{"a":2}"#, "[1]", "[1.0]"].map(|case| (case.into(), StepId(1))).into();
        for value in [json!({"a": 2}), json!([1]), json!([1.0])] {
            assert_eq!(SelectorValue::of(&value).among(&written), None, "{value}");
        }
        assert_eq!(SelectorValue::of(&json!("[1]")).among(&written), Some(StepId(1)), "a text is what it is");
    }
}
