//! The expressions in `when(…)`: comparisons of what is known, joined by `&&`, `||` and `!`.

use cuegate_flow::model::Comparison;
use serde_json::Value;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    /// `true`
    Always,
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Compare {
        left: Term,
        how: Comparison,
        right: Term,
    },
    /// `exists(REFERENCE)`
    Exists(Reference),
    /// A reference alone.
    IsTrue(Reference),
}

/// A side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Term {
    Literal(Value),
    Reference(Reference),
}

/// `structured.STEP.FIELD`, `context.STEP.BINDING.FIELD` or `effect.STEP.TYPE.FIELD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) scope: Scope,
    pub(crate) step: String,
    /// The field, or the binding or type with its field.
    pub(crate) field: String,
}

/// What a reference is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The data in the answer of a step.
    Structured,
    /// What a system step read.
    Context,
    /// What an effect of a system step came to.
    Effect,
}

impl Scope {
    const ALL: [Scope; 3] = [Scope::Structured, Scope::Context, Scope::Effect];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scope::Structured => "structured",
            Scope::Context => "context",
            Scope::Effect => "effect",
        }
    }

    /// The scope whose name and `mark` a text begins with, and the rest.
    pub(crate) fn split(text: &str, mark: char) -> Option<(Scope, &str)> {
        Scope::ALL.into_iter().find_map(|scope| {
            let rest = text.strip_prefix(scope.as_str())?.strip_prefix(mark)?;
            Some((scope, rest))
        })
    }
}

impl Reference {
    /// Reads `STEP.FIELD` of a scope.
    pub(crate) fn parse(scope: Scope, text: &str) -> Option<Reference> {
        let (step, field) = text.trim().split_once('.')?;
        let is_path = |text: &str| text.split('.').all(|part| !part.is_empty());
        (is_path(step) && is_path(field)).then(|| Reference {
            scope,
            step: step.to_owned(),
            field: field.to_owned(),
        })
    }
}

/// How deep parentheses and `!` may be nested.
const DEPTH_MAX: u32 = 64;

/// Parses an expression.
///
/// # Errors
/// Says what cannot be read.
pub(crate) fn parse_expression(text: &str) -> Result<Expression, String> {
    let mut parser = ExpressionParser { rest: text, depth: 0 };
    let found = parser.any()?;
    match parser.rest.trim() {
        "" => Ok(found),
        rest => Err(format!("`{rest}` cannot be read")),
    }
}

struct ExpressionParser<'t> {
    rest: &'t str,
    depth: u32,
}

impl<'t> ExpressionParser<'t> {
    /// Takes a word of the syntax, if it is next.
    fn take(&mut self, word: &str) -> bool {
        let rest = self.rest.trim_start();
        let is_next = rest.starts_with(word);
        if is_next {
            self.rest = &rest[word.len()..];
        }
        is_next
    }

    fn any(&mut self) -> Result<Expression, String> {
        let mut parts = vec![self.all()?];
        while self.take("||") {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Any(parts) })
    }

    fn all(&mut self) -> Result<Expression, String> {
        let mut parts = vec![self.one()?];
        while self.take("&&") {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::All(parts) })
    }

    fn one(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("it is nested too deeply".to_owned());
        }
        let found = self.shallow_one();
        self.depth -= 1;
        found
    }

    fn shallow_one(&mut self) -> Result<Expression, String> {
        if !self.rest.trim_start().starts_with("!=") && self.take("!") {
            return Ok(Expression::Not(Box::new(self.one()?)));
        }
        if self.take("(") {
            let inner = self.any()?;
            return self.close(inner);
        }
        if self.take("exists(") || self.take("exists (") {
            return match self.term()? {
                Term::Reference(reference) => self.close(Expression::Exists(reference)),
                Term::Literal(value) => Err(format!("`exists({value})` is about no value of a step")),
            };
        }
        let left = self.term()?;
        let operators = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        if let Some((_, how)) = operators.into_iter().find(|(word, _)| self.take(word)) {
            let right = self.term()?;
            return Ok(Expression::Compare { left, how, right });
        }
        match left {
            Term::Reference(reference) => Ok(Expression::IsTrue(reference)),
            Term::Literal(Value::Bool(true)) => Ok(Expression::Always),
            Term::Literal(Value::Bool(false)) => Ok(Expression::Not(Box::new(Expression::Always))),
            Term::Literal(value) => Err(format!("`{value}` alone says nothing")),
        }
    }

    fn close(&mut self, found: Expression) -> Result<Expression, String> {
        if self.take(")") { Ok(found) } else { Err("a parenthesis is not closed".to_owned()) }
    }

    fn term(&mut self) -> Result<Term, String> {
        let rest = self.rest.trim_start();
        if let Some(mark) = rest.chars().next().filter(|mark| matches!(mark, '"' | '\'')) {
            let Some((text, after)) = rest[1..].split_once(mark) else {
                return Err(format!("{mark} is not closed"));
            };
            self.rest = after;
            return Ok(Term::Literal(Value::String(text.to_owned())));
        }
        let end = rest
            .find(|char: char| char.is_whitespace() || "()!=<>&|\"'".contains(char))
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        self.rest = after;
        match word {
            "" => Err("a value is missing".to_owned()),
            "true" => Ok(Term::Literal(Value::Bool(true))),
            "false" => Ok(Term::Literal(Value::Bool(false))),
            "null" => Ok(Term::Literal(Value::Null)),
            word => {
                if let Ok(number) = serde_json::from_str::<serde_json::Number>(word) {
                    return Ok(Term::Literal(Value::Number(number)));
                }
                let reference =
                    Scope::split(word, '.').and_then(|(scope, rest)| Reference::parse(scope, rest));
                reference.map(Term::Reference).ok_or_else(|| {
                    format!("`{word}` is neither a quoted text, a number, `true`, `false`, `null` nor a value of a step")
                })
            }
        }
    }
}

/// Splits a condition into its label, if it has one, and the expression in `when(…)`. `None` if it has no `when(…)`.
pub(crate) fn split_condition(text: &str) -> Option<(Option<&str>, &str)> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix("when(") {
        let end = find_closing(inner)?;
        let rest = inner[end + 1..].trim_start();
        return match rest {
            "" => Some((None, &inner[..end])),
            rest => Some((Some(rest.strip_prefix("&&")?.trim()), &inner[..end])),
        };
    }
    let at = text.find("&& when(")?;
    let (label, inner) = (text[..at].trim(), &text[at + "&& when(".len()..]);
    let end = find_closing(inner)?;
    let is_whole = inner[end + 1..].trim().is_empty() && !label.is_empty();
    is_whole.then_some((Some(label), &inner[..end]))
}

/// The place of the parenthesis that closes one which was opened before the text.
fn find_closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (Some(mark), _) if mark == char => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(char),
            (None, '(') => depth += 1,
            (None, ')') if depth == 0 => return Some(at),
            (None, ')') => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Expression, Term, parse_expression, split_condition};

    #[test]
    fn operators_bind_as_everywhere() {
        let parsed = |text: &str| parse_expression(text).unwrap();
        assert_eq!(
            parsed("context.a.q.n > 0 || context.a.q.m > 0 && !effect.b.c.success"),
            parsed("(context.a.q.n > 0) || ((context.a.q.m>0) && (!effect.b.c.success))"),
        );
        assert!(matches!(parsed("!(true || false)"), Expression::Not(_)));
        assert_eq!(parsed("exists(context.a.b.c)"), parsed("exists( context.a.b.c )"));
        let Expression::Compare { left: Term::Reference(left), right, .. } =
            parsed("structured.my-step.a.b == 'x || y'")
        else {
            panic!("it compares");
        };
        assert_eq!((&*left.step, &*left.field), ("my-step", "a.b"));
        assert_eq!(right, Term::Literal("x || y".into()));
        assert_eq!(parsed("structured.a.b != -1.5"), parsed("structured.a.b!=-1.5"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, named) in [
            ("", "a value is missing"),
            ("structured.a.b ==", "a value is missing"),
            ("structured.a.b == x", "`x`"),
            ("structured.a == 1", "`structured.a`"),
            ("(true", "not closed"),
            ("true true", "`true`"),
            ("\"a", "is not closed"),
            ("3", "`3` alone"),
            ("exists(3)", "no value of a step"),
            (&format!("{}true", "!".repeat(100)), "nested too deeply"),
        ] {
            let why = parse_expression(text).unwrap_err();
            assert!(why.contains(named), "{text}: {why}");
        }
    }

    #[test]
    fn a_label_stands_before_or_after() {
        assert_eq!(split_condition("when(a == \")\")"), Some((None, "a == \")\"")));
        assert_eq!(split_condition("approved && when(a)"), Some((Some("approved"), "a")));
        assert_eq!(split_condition("when((a)) && all(\"x\")"), Some((Some("all(\"x\")"), "(a)")));
        for text in ["approved", "when(a", "when(a) or b", "&& when(a)", "x && when(a) y"] {
            assert_eq!(split_condition(text), None, "{text}");
        }
    }
}
