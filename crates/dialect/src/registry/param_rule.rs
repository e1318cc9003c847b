//! `validation` of a parameter: what a value has to be besides of its type.

use cuegate_flow::{ParamRule, Str};
use serde_json::Number;

use crate::json::{Fields, Kind};

/// Reads what a value of a type has to be. What cannot hold for that type is reported.
pub(super) fn read_rule(validation: Fields<'_, '_>, kind: Option<&str>) -> ParamRule {
    let (min, max) = (number(&validation, "min"), number(&validation, "max"));
    let pattern = validation.filled("pattern").filter(|pattern| {
        let faulty = ParamRule::check_pattern(pattern.text).err();
        if let Some(why) = &faulty {
            let message = format!("`{}` is no regular expression: {why}", pattern.text);
            validation.invalid(pattern.span, message, "write it as JSON Schema has it");
        }
        faulty.is_none()
    });
    let choices = validation.texts("enum").map(|choices| {
        if choices.is_empty() {
            validation.invalid(
                validation.opening(),
                "`enum` is empty, so that no value is allowed",
                "name some",
            );
        }
        choices.iter().map(|choice| Str::from(choice.text)).collect::<Vec<_>>()
    });
    if let (Some(least), Some(most)) = (&min, &max)
        && least.as_f64() > most.as_f64()
    {
        let message = format!("`min` is {least} and `max` {most}, so that no value is allowed");
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
    validation.finish();
    let numbers = kind == Some("number");
    ParamRule {
        min: min.filter(|_| numbers),
        max: max.filter(|_| numbers),
        pattern: pattern.map(|pattern| pattern.text.into()).filter(|_| !numbers && kind != Some("boolean")),
        choices: choices.filter(|_| kind != Some("boolean")),
        items: kind == Some("array"),
    }
}

fn number(fields: &Fields<'_, '_>, key: &'static str) -> Option<Number> {
    let entry = fields.entry(key)?;
    match &entry.value.kind {
        Kind::Number(number) => Some(number.clone()),
        _ => {
            fields.wrong_type(key, &entry.value, "a number");
            None
        }
    }
}
