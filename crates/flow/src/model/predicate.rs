//! Conditions over values that steps of a run have handed on.

use std::fmt;

use serde_json::Value;

use crate::{Str, model::Outcome};

/// A condition over handed on values.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// It always holds.
    Always,
    Not(Box<Predicate>),
    /// All of these hold.
    All(Vec<Predicate>),
    /// One of these holds.
    Any(Vec<Predicate>),
    Compare {
        left: Operand,
        how: Comparison,
        right: Operand,
    },
    /// There is such a value, and it is no empty text.
    Exists(Operand),
    /// The value is `true`.
    IsTrue(Operand),
}

/// A side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A text, a number, `true`, `false` or `null`.
    Literal(Value),
    /// The newest value that a step handed on under a key.
    Handoff { step: Str, key: Str },
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The operator as definitions write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

/// A condition and the outcome that it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub when: Predicate,
    pub outcome: Outcome,
}

impl Predicate {
    /// Whether it holds, where `value` gives the values of steps by step and key; `None` if there is none.
    ///
    /// # Errors
    /// When two values are compared by size that are no numbers, or a value that has to be `true` or `false` is
    /// neither: says which.
    pub fn holds(&self, value: &dyn Fn(&str, &str) -> Option<Value>) -> Result<bool, String> {
        match self {
            Predicate::Always => Ok(true),
            Predicate::Not(inner) => Ok(!inner.holds(value)?),
            Predicate::All(parts) => {
                for part in parts {
                    if !part.holds(value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Predicate::Any(parts) => {
                for part in parts {
                    if part.holds(value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Predicate::Exists(operand) => {
                Ok(operand.value(value).is_some_and(|value| !value.is_null() && value != ""))
            }
            Predicate::IsTrue(operand) => match operand.value(value) {
                Some(Value::Bool(value)) => Ok(value),
                other => {
                    Err(format!("{operand} is {}, not `true` or `false`", describe_value(other.as_ref())))
                }
            },
            Predicate::Compare { left, how, right } => {
                let (is, wanted) = (left.value(value), right.value(value));
                match how {
                    Comparison::Equal => Ok(are_equal(is.as_ref(), wanted.as_ref())),
                    Comparison::NotEqual => Ok(!are_equal(is.as_ref(), wanted.as_ref())),
                    Comparison::Less
                    | Comparison::LessOrEqual
                    | Comparison::Greater
                    | Comparison::GreaterOrEqual => {
                        let number = |operand: &Operand, value: &Option<Value>| {
                            let number = value.as_ref().and_then(Value::as_f64);
                            number.ok_or_else(|| {
                                format!("{operand} is {}, not a number", describe_value(value.as_ref()))
                            })
                        };
                        let (is, wanted) = (number(left, &is)?, number(right, &wanted)?);
                        Ok(match how {
                            Comparison::Less => is < wanted,
                            Comparison::LessOrEqual => is <= wanted,
                            Comparison::Greater => is > wanted,
                            _ => is >= wanted,
                        })
                    }
                }
            }
        }
    }

    /// The values that it reads, by step and key, in order.
    pub fn handoffs(&self) -> Vec<(&Str, &Str)> {
        match self {
            Predicate::Always => Vec::new(),
            Predicate::Not(inner) => inner.handoffs(),
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter().flat_map(Predicate::handoffs).collect()
            }
            Predicate::Exists(operand) | Predicate::IsTrue(operand) => {
                operand.handoff().into_iter().collect()
            }
            Predicate::Compare { left, right, .. } => {
                left.handoff().into_iter().chain(right.handoff()).collect()
            }
        }
    }
}

impl Operand {
    fn value(&self, value: &dyn Fn(&str, &str) -> Option<Value>) -> Option<Value> {
        match self {
            Operand::Literal(literal) => Some(literal.clone()),
            Operand::Handoff { step, key } => value(step, key),
        }
    }

    fn handoff(&self) -> Option<(&Str, &Str)> {
        match self {
            Operand::Literal(_) => None,
            Operand::Handoff { step, key } => Some((step, key)),
        }
    }
}

/// Whether two values are equal. A missing value, `null` and the empty text are equal, because steps hand them on as the
/// same. Numbers are compared by size: `1` is `1.0`.
fn are_equal(left: Option<&Value>, right: Option<&Value>) -> bool {
    fn without_empty(value: Option<&Value>) -> &Value {
        value.filter(|value| *value != "").unwrap_or(&Value::Null)
    }
    let (left, right) = (without_empty(left), without_empty(right));
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left == right,
        _ => left == right,
    }
}

fn describe_value(value: Option<&Value>) -> String {
    match value {
        None => "missing".to_owned(),
        Some(value) => format!("`{value}`"),
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Literal(value) => write!(f, "{value}"),
            Operand::Handoff { step, key } => write!(f, "`{key}` of `{step}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Comparison, Operand, Predicate};

    fn field(key: &str) -> Operand {
        Operand::Handoff { step: "a".into(), key: key.into() }
    }

    fn holds(predicate: &Predicate) -> Result<bool, String> {
        let all = json!({"n": 3, "t": "x", "empty": "", "yes": true, "no": false});
        predicate.holds(&|_, key| all.get(key).cloned())
    }

    #[test]
    fn values_are_compared_as_what_they_are() {
        use Comparison as C;
        for (left, how, right, expected) in [
            (field("n"), C::Equal, json!(3.0), true),
            (field("n"), C::Equal, json!("3"), false),
            (field("n"), C::GreaterOrEqual, json!(3), true),
            (field("n"), C::Less, json!(3), false),
            (field("t"), C::NotEqual, json!("y"), true),
            (field("yes"), C::Equal, json!(true), true),
            (field("missing"), C::Equal, json!(null), true),
            (field("missing"), C::NotEqual, json!("x"), true),
            (field("missing"), C::Equal, json!(""), true),
            (field("missing"), C::NotEqual, json!(""), false),
            (field("empty"), C::Equal, json!(null), true),
            (field("t"), C::Equal, json!(""), false),
        ] {
            let predicate = Predicate::Compare { left, how, right: Operand::Literal(right) };
            assert_eq!(holds(&predicate), Ok(expected), "{predicate:?}");
        }
    }

    #[test]
    fn what_cannot_be_decided_says_why() {
        let larger = |key: &str| Predicate::Compare {
            left: field(key),
            how: Comparison::Greater,
            right: Operand::Literal(json!(1)),
        };
        assert_eq!(holds(&larger("t")).unwrap_err(), "`t` of `a` is `\"x\"`, not a number");
        assert_eq!(holds(&larger("missing")).unwrap_err(), "`missing` of `a` is missing, not a number");
        assert_eq!(
            holds(&Predicate::IsTrue(field("n"))).unwrap_err(),
            "`n` of `a` is `3`, not `true` or `false`"
        );
    }

    #[test]
    fn the_first_part_that_decides_is_the_last_that_is_read() {
        let broken = || Predicate::IsTrue(field("t"));
        let yes = || Predicate::IsTrue(field("yes"));
        let no = || Predicate::Not(Box::new(yes()));
        assert_eq!(holds(&Predicate::Any(vec![no(), yes(), broken()])), Ok(true));
        assert_eq!(holds(&Predicate::All(vec![yes(), no(), broken()])), Ok(false));
        assert!(holds(&Predicate::All(vec![yes(), broken()])).is_err());
        assert_eq!(holds(&Predicate::Exists(field("no"))), Ok(true));
        assert_eq!(holds(&Predicate::Exists(field("empty"))), Ok(false));
    }
}
