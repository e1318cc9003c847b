//! Lowers conditional transitions: a handoff value selects the target.

use std::collections::HashSet;

use cuegate_flow::{
    Str,
    diagnostics::Diagnostic,
    model::{FieldPath, Name, Selector, Target},
};
use serde_json::Value;

use super::gate_lowering::{GateLowering, handoff_of};
use crate::codes;
use crate::suggest::{find_nearest_name, quote_names};
use crate::values::json::Text;

/// Lowers `condition` and `targets`.
pub(crate) fn lower_select(
    lowering: &GateLowering<'_, '_, '_>,
    condition: &Text<'_>,
    cases: &[(&str, Text<'_>)],
    default: Option<&Text<'_>>,
) -> Target<Name> {
    let own = lowering
        .handoff
        .iter()
        .find(|left| *left.key == *condition.text)
        // The full path also names the value, although the value is stored under its last segment.
        .or_else(|| lowering.handoff.iter().find(|left| left.path.to_string() == condition.text));
    let key: Str = own.map_or_else(|| condition.text.into(), |left| left.key.clone());
    // If the answer lacks the field, the newest value of that name counts, possibly from another step.
    if let Some(left) = own.filter(|left| !is_handed_off_by_other_step(lowering, &left.key)) {
        check_reachable(lowering, &left.path, cases);
    }
    if own.is_none() {
        check_left_elsewhere(lowering, condition, default.is_some());
    }
    Target::Select {
        by: Selector::Handoff(key),
        cases: cases.iter().map(|(value, target)| ((*value).into(), name_of_target(target))).collect(),
        default: default.map(name_of_target),
    }
}

/// Reads a step name as a target.
pub(crate) fn name_of_target(target: &Text<'_>) -> Name {
    Name::new(target.text, target.span)
}

/// Whether a different step hands off a value of this name.
fn is_handed_off_by_other_step(lowering: &GateLowering<'_, '_, '_>, key: &str) -> bool {
    lowering.world.leavers.other_than(lowering.step.id, key)
}

/// Reports cases for values that the schema does not allow at the path.
pub(crate) fn check_reachable(
    lowering: &GateLowering<'_, '_, '_>,
    path: &FieldPath,
    cases: &[(&str, Text<'_>)],
) {
    // A fallback intent also routes answers that do not match the schema.
    let falls_back =
        lowering.step.gate.as_ref().is_some_and(|gate| matches!(gate.fail_fast, Some((false, _))));
    let Some(schema) = lowering.schema.filter(|_| !falls_back) else { return };
    // `null` counts as absent and selects nothing.
    let values: Option<Vec<Value>> =
        schema.values_at(path).map(|values| values.into_iter().filter(|value| !value.is_null()).collect());
    let known = values.as_deref().map(ValueSet::of);
    let selects = |case: &str| match &known {
        Some(known) => known.select(case),
        None => schema.can_read(path, case),
    };
    let mut lost = cases.iter().filter(|(value, _)| !selects(value)).peekable();
    if lost.peek().is_none() {
        return;
    }
    let hint = match &values {
        Some(values) if values.iter().any(is_whole) => {
            "an object or a list equals no entry: select by a field of it that is text, a number or a truth value"
                .to_owned()
        }
        Some(values) => {
            format!("the schema lists {}", quote_names(&values.iter().map(text_of).collect::<Vec<_>>()))
        }
        None => "the schema allows no such value".to_owned(),
    };
    for (value, target) in lost {
        let is_null = value == &"null" && schema.can_be(path, &["null"]);
        let (why, hint) = match is_null {
            true => ("`null` counts as absent".to_owned(), "add `default` for it, and remove the entry"),
            false => (format!("`{path}` is never `{value}`"), &*hint),
        };
        let message = format!("{why}, so `{}` is not selected by it", target.text);
        lowering.push(Diagnostic::warning(codes::UNREACHABLE_TRANSITION, target.span, message).hint(hint));
    }
}

/// A set of values, to check whether one of them selects a case. Numbers compare by value, not spelling; objects and
/// lists never match.
struct ValueSet {
    texts: HashSet<String>,
    /// The bits of the numbers; both zeros are equal.
    numbers: HashSet<u64>,
}

impl ValueSet {
    fn of(values: &[Value]) -> ValueSet {
        let bits = |number: f64| (number + 0.0).to_bits();
        ValueSet {
            texts: values.iter().filter(|value| !is_whole(value)).map(text_of).collect(),
            numbers: values.iter().filter_map(Value::as_f64).map(bits).collect(),
        }
    }

    fn select(&self, case: &str) -> bool {
        let number =
            || case.parse::<f64>().is_ok_and(|number| self.numbers.contains(&(number + 0.0).to_bits()));
        self.texts.contains(case) || number()
    }
}

/// Whether a value is an object or a list.
fn is_whole(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// A value as `targets` write it.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Reports a condition value that no step hands off. A value missing from the answer is the newest one of the run; if
/// no other step hands it off, the run always takes the default, or no target at all.
fn check_left_elsewhere(lowering: &GateLowering<'_, '_, '_>, condition: &Text<'_>, has_default: bool) {
    // The handoff values of a step are unknown when it has no gate or an unreadable list; both have been reported.
    let is_known = lowering.step.gate.as_ref().is_some_and(|gate| !gate.handoff_misread);
    if lowering.world.leavers.any(condition.text) || !is_known {
        return;
    }
    let keys: Vec<Str> =
        lowering.world.steps.iter().flat_map(|step| handoff_of(step)).map(|left| left.key).collect();
    let mut paths: Vec<String> = lowering
        .world
        .steps
        .iter()
        .flat_map(|step| handoff_of(step))
        .map(|left| left.path)
        .filter(|path| **path.last() == *condition.text)
        .map(|path| path.to_string())
        .collect();
    paths.sort();
    paths.dedup();
    // An input is named by step and path; here the last segment names the value.
    let last = condition.text.rsplit('.').next().filter(|last| keys.iter().any(|key| &**key == *last));
    let hint = match last.or_else(|| find_nearest_name(condition.text, keys.iter().map(|key| &**key))) {
        Some(near) => format!("did you mean `{near}`?"),
        None if lowering.handoff.is_empty() => "add the field to this step's `handoffFields`".to_owned(),
        None => {
            let own: Vec<&Str> = lowering.handoff.iter().map(|left| &left.key).collect();
            format!("this step leaves {}", quote_names(&own.iter().map(|key| &***key).collect::<Vec<_>>()))
        }
    };
    let (message, hint) = if paths.is_empty() {
        (format!("`condition` names `{}`, which no step leaves", condition.text), hint)
    } else {
        let paths = quote_names(&paths);
        let message =
            format!("`condition` names `{}`, which is ambiguous: there are {paths}", condition.text);
        (message, "write the whole path of the one that is meant".to_owned())
    };
    let finding = if has_default {
        Diagnostic::warning(codes::UNASSIGNED_VALUE, condition.span, message)
    } else {
        Diagnostic::error(codes::UNASSIGNED_VALUE, condition.span, message)
    };
    lowering.push(finding.hint(hint));
}
