//! Parameters of a run.

use serde_json::{Number, Value, json};

use crate::{Str, diagnostics::Span, model::Schema};

/// A parameter that a run accepts at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name in prompts.
    pub name: Str,
    /// The flag that sets it on the command line, with its dashes.
    pub flag: Str,
    /// The type of its value.
    pub kind: ParamType,
    /// Further constraints on its value.
    pub rule: ParamRule,
    /// Whether the run cannot start without it.
    pub required: bool,
    /// The default value, as text.
    pub default: Option<Str>,
    pub description: Str,
    /// Where it is declared.
    pub span: Span,
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    /// Any text.
    Text,
    Number,
    /// `true` or `false`; the bare flag means `true`.
    Boolean,
    /// Comma-separated texts; a repeated flag adds more.
    List,
}

/// Constraints on a value besides its type; the default allows everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParamRule {
    /// The minimum.
    pub min: Option<Number>,
    /// The maximum.
    pub max: Option<Number>,
    /// A regular expression that the value must match, in the dialect of JSON Schema.
    pub pattern: Option<Str>,
    /// The allowed values.
    pub choices: Option<Vec<Str>>,
    /// Whether the value is a comma-separated list whose items must each satisfy the rule.
    pub items: bool,
}

impl ParamRule {
    /// Why a value is not allowed, worded to follow "the value"; `None` when it is allowed.
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
        // The loader has already rejected patterns that do not compile.
        let fits =
            compile_pattern(pattern).is_ok_and(|schema| schema.problems(&Value::from(value)).is_empty());
        (!fits).then(|| format!("does not match `{pattern}`"))
    }

    /// Checks that a pattern compiles.
    ///
    /// # Errors
    /// Returns the reason when it does not.
    pub fn check_pattern(pattern: &str) -> Result<(), String> {
        compile_pattern(pattern).map(drop)
    }
}

fn compile_pattern(pattern: &str) -> Result<Schema, String> {
    Schema::new(json!({ "type": "string", "pattern": pattern })).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::ParamRule;

    #[test]
    fn complaints_name_the_violated_rule() {
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
