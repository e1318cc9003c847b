//! Reads `validation` of a parameter: constraints on a value besides its type.

use cuegate_flow::{Str, model::ParamRule};
use serde_json::Number;

use crate::values::json::{Fields, Kind, Text};

/// Reads the constraints for values of a type. Constraints that cannot hold for that type are reported.
pub(crate) fn read_rule(validation: Fields<'_, '_>, kind: Option<&str>) -> ParamRule {
    let (min, max) = (read_number(&validation, "min"), read_number(&validation, "max"));
    let pattern = validation.filled("pattern").filter(|pattern| {
        let faulty = ParamRule::check_pattern(pattern.text).err();
        if let Some(why) = &faulty {
            let message = format!("`{}` is not a regular expression: {why}", pattern.text);
            validation.invalid(pattern.span, message, "write it as JSON Schema has it");
        }
        faulty.is_none()
    });
    let choices = validation.texts("enum").inspect(|choices| {
        if choices.is_empty() {
            validation.invalid(validation.opening(), "`enum` is empty: no value is allowed", "name some");
        }
    });
    if let (Some(least), Some(most)) = (&min, &max)
        && least.as_f64() > most.as_f64()
    {
        let message = format!("`min` ({least}) is greater than `max` ({most}): no value is allowed");
        validation.invalid(validation.opening(), message, "swap them");
    }
    match kind {
        Some("string" | "array") => {
            for key in ["min", "max"] {
                validation.stray(key, "it bounds numbers; use `pattern` for texts, or remove it");
            }
        }
        Some("number") => validation.stray("pattern", "it is for texts; use `min` and `max`, or remove it"),
        Some("boolean") => {
            for key in ["min", "max", "pattern", "enum"] {
                validation.stray(key, "a boolean is `true` or `false`; remove it");
            }
        }
        _ => {}
    }
    let numbers = kind == Some("number");
    let rest = ParamRule {
        min: min.filter(|_| numbers),
        max: max.filter(|_| numbers),
        pattern: pattern.map(|pattern| pattern.text.into()).filter(|_| !numbers && kind != Some("boolean")),
        ..ParamRule::default()
    };
    let choices = choices.filter(|_| kind != Some("boolean"));
    let leaves_some =
        choices.as_ref().is_none_or(|choices| check_choices(choices, &rest, numbers, &validation));
    validation.finish();
    let items = kind == Some("array");
    if !leaves_some {
        // Contradictory constraints cannot be checked against a default.
        return ParamRule { items, ..ParamRule::default() };
    }
    let choices = choices.map(|choices| choices.iter().map(|choice| Str::from(choice.text)).collect());
    ParamRule { choices, items, ..rest }
}

/// Reports choices that the other constraints or the type exclude. Returns whether any choice remains.
fn check_choices(choices: &[Text<'_>], rest: &ParamRule, numbers: bool, validation: &Fields<'_, '_>) -> bool {
    let is_number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
    let complaint = |choice: &Text<'_>| match numbers && !is_number(choice.text) {
        true => Some("is not a number".to_owned()),
        false => rest.complaint(choice.text),
    };
    let refused: Vec<_> = choices.iter().filter_map(|choice| Some((choice, complaint(choice)?))).collect();
    let leaves_some = refused.len() < choices.len();
    // When no choice remains, the reason for the first one is reported.
    for (choice, why) in refused.iter().take(if leaves_some { usize::MAX } else { 1 }) {
        let end = if leaves_some { "" } else { ", so no value is allowed" };
        let message = format!("`{}` of `enum` {why}{end}", choice.text);
        validation.invalid(choice.span, message, "correct it, or what stands beside `enum`");
    }
    leaves_some
}

fn read_number(fields: &Fields<'_, '_>, key: &'static str) -> Option<Number> {
    let entry = fields.entry(key)?;
    match &entry.value.kind {
        Kind::Number(number) => Some(number.clone()),
        _ => {
            fields.wrong_type(key, &entry.value, "a number");
            None
        }
    }
}
