//! Values that a run can be given at its start.

use serde_json::{Number, Value, json};

use crate::{Str, diagnostics::Span, model::Schema};

/// A value that a run can be given at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name in prompts.
    pub name: Str,
    /// The flag that sets it on the command line, with its dashes.
    pub flag: Str,
    /// What kind of value it takes.
    pub kind: ParamType,
    /// What else its value has to be.
    pub rule: ParamRule,
    /// Whether a run cannot start without it.
    pub required: bool,
    /// The value when none is given, as text.
    pub default: Option<Str>,
    /// What it is for.
    pub description: Str,
    /// Where it is declared.
    pub span: Span,
}

/// What kind of value a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    /// Any text.
    Text,
    /// A number.
    Number,
    /// `true` or `false`; the bare flag means `true`.
    Boolean,
    /// Texts separated by commas; each time that the flag is given adds some.
    List,
}

/// What a value has to be besides of its kind; by default anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParamRule {
    /// The least number.
    pub min: Option<Number>,
    /// The greatest number.
    pub max: Option<Number>,
    /// A regular expression that is found in it, in the language of JSON Schema.
    pub pattern: Option<Str>,
    /// It is one of these.
    pub choices: Option<Vec<Str>>,
    /// It is a list, separated by commas, of which every item has to be so.
    pub items: bool,
}

impl ParamRule {
    /// Why a value is not allowed, in words that follow "the value"; `None` when it is.
    pub fn complaint(&self, value: &str) -> Option<String> {
        if self.items {
            return value.split(',').filter(|_| !value.is_empty()).find_map(|item| {
                self.complaint_about(item).map(|why| format!("has the item `{item}`, which {why}"))
            });
        }
        self.complaint_about(value)
    }

    fn complaint_about(&self, value: &str) -> Option<String> {
        let as_number = || value.parse::<f64>().ok();
        let beyond = |limit: &Option<Number>, out: fn(f64, f64) -> bool| {
            let limit = limit.as_ref()?;
            out(as_number()?, limit.as_f64()?).then(|| limit.clone())
        };
        if let Some(min) = beyond(&self.min, |value, min| value < min) {
            return Some(format!("is less than {min}"));
        }
        if let Some(max) = beyond(&self.max, |value, max| value > max) {
            return Some(format!("is more than {max}"));
        }
        if let Some(choices) = &self.choices
            && !choices.iter().any(|choice| **choice == *value)
        {
            let choices: Vec<String> = choices.iter().map(|choice| format!("`{choice}`")).collect();
            return Some(format!("is none of {}", choices.join(", ")));
        }
        let pattern = self.pattern.as_ref()?;
        // A pattern that does not compile was refused where the definition was read.
        let fits = matcher(pattern).is_ok_and(|schema| schema.problems(&Value::from(value)).is_empty());
        (!fits).then(|| format!("does not match `{pattern}`"))
    }

    /// Whether its pattern can be read.
    ///
    /// # Errors
    /// With the reason.
    pub fn check_pattern(pattern: &str) -> Result<(), String> {
        matcher(pattern).map(drop)
    }
}

fn matcher(pattern: &str) -> Result<Schema, String> {
    Schema::new(json!({ "type": "string", "pattern": pattern })).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::ParamRule;

    #[test]
    fn a_rule_says_what_is_wrong() {
        let number = ParamRule { min: Some(1.into()), max: Some(9.into()), ..ParamRule::default() };
        let text = ParamRule { pattern: Some("^[a-z]+$".into()), ..ParamRule::default() };
        let choice = ParamRule { choices: Some(vec!["a".into(), "b".into()]), ..ParamRule::default() };
        let list = ParamRule { items: true, ..choice.clone() };
        for (rule, value, expected) in [
            (&number, "1", None),
            (&number, "0.5", Some("is less than 1")),
            (&number, "10", Some("is more than 9")),
            (&text, "abc", None),
            (&text, "Abc", Some("does not match `^[a-z]+$`")),
            (&choice, "a", None),
            (&choice, "c", Some("is none of `a`, `b`")),
            (&list, "a,b", None),
            (&list, "", None),
            (&list, "a,c", Some("has the item `c`, which is none of `a`, `b`")),
            (&ParamRule::default(), "anything", None),
        ] {
            assert_eq!(rule.complaint(value).as_deref(), expected, "{value}");
        }
        assert!(ParamRule::check_pattern("(").is_err() && ParamRule::check_pattern("\\d+").is_ok());
    }
}
