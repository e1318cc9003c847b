//! Lowers conditional transitions: a handed-on value selects the target.

use cuegate_flow::{Diagnostic, Name, Schema, Selector, Span, Str, Target};
use serde_json::Value;

use super::gate::{Lowering, handoff_of};
use crate::codes;
use crate::json::Text;
use crate::nearest::{list, nearest};

/// Lowers `condition` and `targets`.
pub(super) fn lower_select(
    lowering: &Lowering<'_, '_, '_>,
    condition: &Text<'_>,
    cases: &[(&str, Text<'_>)],
    default: Option<&Text<'_>>,
    span: Span,
) -> Target<Name> {
    let own = lowering
        .handoff
        .iter()
        .find(|left| *left.key == *condition.text)
        // The full path names the value too, though it is kept under its last segment.
        .or_else(|| lowering.handoff.iter().find(|left| left.path.to_string() == condition.text));
    let key: Str = own.map_or_else(|| condition.text.into(), |left| left.key.clone());
    match own {
        Some(left) if default.is_none() && !covers(lowering.schema, &left.path, cases) => lowering.push(
            Diagnostic::warning(
                codes::TRANSITION_WITHOUT_DEFAULT,
                span,
                format!("`{}` can hold a value that no entry of `targets` names", condition.text),
            )
            .hint("add `default`; without one such an answer is a bad answer"),
        ),
        Some(_) => {}
        None => check_left_elsewhere(lowering, condition, default.is_some()),
    }
    Target::Select {
        by: Selector::Handoff(key),
        cases: cases.iter().map(|(value, target)| ((*value).into(), name(target))).collect(),
        default: default.map(name),
    }
}

/// A step's name as a target.
pub(super) fn name(target: &Text<'_>) -> Name {
    Name::new(target.text, target.span)
}

/// Whether every value that a schema allows at a path has a case. A schema that lists no values allows others.
pub(super) fn covers(
    schema: Option<&Schema>,
    path: &cuegate_flow::FieldPath,
    cases: &[(&str, Text<'_>)],
) -> bool {
    let Some(values) = schema.and_then(|schema| schema.values_at(path)) else { return false };
    values.iter().all(|value| {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        cases.iter().any(|(case, _)| *case == text)
    })
}

/// A value that the answer itself does not leave is the newest of the run: some other step has to leave it. If none
/// does, the default is always taken, or nothing at all.
fn check_left_elsewhere(lowering: &Lowering<'_, '_, '_>, condition: &Text<'_>, has_default: bool) {
    let keys: Vec<Str> =
        lowering.world.steps.iter().flat_map(|step| handoff_of(step)).map(|left| left.key).collect();
    if keys.iter().any(|key| **key == *condition.text) {
        return;
    }
    let hint = match nearest(condition.text, keys.iter().map(|key| &**key)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if lowering.handoff.is_empty() => "add the field to this step's `handoffFields`".to_owned(),
        None => {
            let own: Vec<&Str> = lowering.handoff.iter().map(|left| &left.key).collect();
            format!("this step leaves {}", list(&own.iter().map(|key| &***key).collect::<Vec<_>>()))
        }
    };
    let message = format!("`condition` names `{}`, which no step leaves", condition.text);
    let finding = if has_default {
        Diagnostic::warning(codes::UNKNOWN_CONDITION, condition.span, message)
    } else {
        Diagnostic::error(codes::UNKNOWN_CONDITION, condition.span, message)
    };
    lowering.push(finding.hint(hint));
}
