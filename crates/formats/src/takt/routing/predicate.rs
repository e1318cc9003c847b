//! Conditions of the form `when(…)` over the structured answer of their own step.

use cuegate_flow::model::{FieldPath, Name, Outcome, OutcomeReader, Schema};

use super::condition::Condition;
use super::rules::{Rule, normalize_word, outcome_of_rule};
use crate::takt::answer_schema::STRUCTURED;

/// The text of a predicate that always holds.
pub(in crate::takt) const ALWAYS: &str = "true";

/// Whether a condition is a predicate over the run's state: `when(…)`, optionally after a label.
pub(in crate::takt) fn is_predicate(condition: &str) -> bool {
    condition.starts_with("when(") || condition.contains("&& when(")
}

/// Parses `when(…)` in a rule of `step`.
///
/// # Errors
/// Returns the message and the hint for a predicate that cannot be decided by the answer of `step` alone.
pub(in crate::takt) fn parse_predicate(text: &str, step: &str) -> Result<Condition, (String, &'static str)> {
    let inner = text.strip_prefix("when(").and_then(|rest| rest.trim_end().strip_suffix(')'));
    let Some(inner) = inner else {
        return Err((
            format!("`{text}` combines `when(…)` with something else, which is not supported yet"),
            "write one rule for each, or one text that says all of it",
        ));
    };
    if without_parentheses(inner) == ALWAYS {
        return Ok(Condition::Otherwise);
    }
    let mut found: Option<(FieldPath, Vec<String>)> = None;
    for part in split_outside_quotes(inner, "||") {
        let (path, literal) = parse_comparison(without_parentheses(part), step)?;
        match &mut found {
            None => found = Some((path, vec![literal])),
            Some((known, values)) if *known == path => values.push(literal),
            Some((known, _)) => {
                return Err((
                    format!("`{text}` compares `{known}` and `{path}`, which is not supported yet"),
                    "write one rule for each field",
                ));
            }
        }
    }
    let (path, values) = found.expect("a split text has a part");
    Ok(Condition::Field(path, values))
}

/// The field and the value of `structured.STEP.FIELD == LITERAL`.
fn parse_comparison(text: &str, step: &str) -> Result<(FieldPath, String), (String, &'static str)> {
    const EQUALS: &str = "compare with `==`, and join alternatives with `||`";
    let sides: Vec<&str> = split_outside_quotes(text, "==").map(str::trim).collect();
    let &[left, right] = sides.as_slice() else {
        return Err((format!("`{text}` in `when(…)` is not supported yet"), EQUALS));
    };
    if left.contains(['!', '<', '>', '&', '(', ' ']) || right.starts_with('=') {
        return Err((format!("`{text}` in `when(…)` is not supported yet"), EQUALS));
    }
    // The steps of a called workflow are named with a prefix, their conditions are not.
    let own = step.rsplit('/').next().unwrap_or(step);
    let field = left
        .strip_prefix("structured.")
        .and_then(|rest| [step, own].into_iter().find_map(|name| rest.strip_prefix(name)?.strip_prefix('.')));
    let Some(path) = field.and_then(|field| FieldPath::parse(&format!("{STRUCTURED}.{field}"))) else {
        return Err((
            format!("`{left}` in `when(…)` is not supported yet"),
            "a rule can read the fields of `structured_output` of its own step, as `structured.STEP.FIELD`",
        ));
    };
    let is_number = || right.parse::<i64>().is_ok();
    let quoted = ['"', '\''].into_iter().find_map(|mark| right.strip_prefix(mark)?.strip_suffix(mark));
    match quoted {
        Some(text) => Ok((path, text.to_owned())),
        None if matches!(right, "true" | "false") || is_number() => Ok((path, right.to_owned())),
        None => Err((
            format!("`{right}` in `when(…)` is not supported yet"),
            "compare with a quoted text, a whole number, `true` or `false`",
        )),
    }
}

/// The parts of a text between the operators that are not in quotation marks.
fn split_outside_quotes<'t>(text: &'t str, operator: &'t str) -> impl Iterator<Item = &'t str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut quote = None;
        for (at, char) in text.char_indices() {
            match (quote, char) {
                (Some(mark), _) if mark == char => quote = None,
                (None, '"' | '\'') => quote = Some(char),
                (None, _) if text[at..].starts_with(operator) => {
                    rest = Some(&text[at + operator.len()..]);
                    return Some(&text[..at]);
                }
                _ => {}
            }
        }
        rest = None;
        Some(text)
    })
}

fn without_parentheses(text: &str) -> &str {
    let text = text.trim();
    match text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        Some(inner) if !inner.contains(['(', ')']) => without_parentheses(inner),
        _ => text,
    }
}

/// The name of the outcome of a predicate.
pub(in crate::takt) fn outcome_name(kind: &Condition) -> Option<String> {
    match kind {
        Condition::Otherwise => Some("otherwise".to_owned()),
        Condition::Field(path, values) => {
            let path = path.to_string();
            let field = path.strip_prefix(STRUCTURED).unwrap_or(&path).trim_start_matches('.');
            Some(format!("{field} = {}", values.join(" or ")))
        }
        _ => None,
    }
}

/// The readers of rules that are all predicates, in their order; `None` if the schema does not list the values of a field, so
/// that it is unknown which of them the later rules are for.
pub(in crate::takt) fn build_predicate_readers(
    rules: &[&Rule<'_>],
    schema: &Schema,
) -> Option<Vec<OutcomeReader<Name>>> {
    let otherwise =
        rules.iter().find(|rule| rule.kind == Condition::Otherwise).map(|rule| outcome_of_rule(rule));
    let mut groups: Vec<(&FieldPath, Vec<_>)> = Vec::new();
    for rule in rules {
        let Condition::Field(path, values) = &rule.kind else { continue };
        let is_same = groups.last().is_some_and(|(known, _)| *known == path);
        if !is_same {
            groups.push((path, Vec::new()));
        }
        let Some((_, words)) = groups.last_mut() else { continue };
        for value in values {
            let word = normalize_word(value);
            if !words.iter().any(|(known, _)| *known == word) {
                words.push((word, outcome_of_rule(rule)));
            }
        }
    }
    let last = groups.len().saturating_sub(1);
    let mut readers = Vec::new();
    for (index, (path, mut words)) in groups.into_iter().enumerate() {
        let rest = if index < last { Some(Outcome::None) } else { otherwise.clone() };
        if let Some(rest) = rest {
            let values = schema.values_at(path)?;
            for value in values {
                let word = normalize_word(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
                if !words.iter().any(|(known, _)| *known == word) {
                    words.push((word, rest.clone()));
                }
            }
        }
        readers.push(OutcomeReader::Field { path: path.clone(), words, reasons: Vec::new() });
    }
    Some(readers)
}

#[cfg(test)]
mod tests {
    use super::{outcome_name, parse_predicate};

    #[test]
    fn reads_comparisons_with_literals() {
        for (text, step, name) in [
            ("when(structured.plan.action == \"go\")", "plan", "action = go"),
            ("when( structured.plan.action=='a || b' )", "plan", "action = a || b"),
            (
                "when(structured.plan.ok == true || (structured.plan.ok == false))",
                "plan",
                "ok = true or false",
            ),
            ("when(structured.plan.a.b == 3)", "call/plan", "a.b = 3"),
            ("when((true))", "plan", "otherwise"),
        ] {
            let kind = parse_predicate(text, step).unwrap();
            assert_eq!(outcome_name(&kind).unwrap(), name, "{text}");
        }
    }

    #[test]
    fn names_what_it_cannot_decide() {
        for (text, named) in [
            ("approved && when(true)", "`approved && when(true)`"),
            ("when(context.a.b == true)", "`context.a.b`"),
            ("when(structured.other.a == true)", "`structured.other.a`"),
            ("when(structured.plan.n > 3)", "`structured.plan.n > 3`"),
            ("when(structured.plan.n != 3)", "`structured.plan.n != 3`"),
            ("when(structured.plan.n == x)", "`x`"),
            ("when(structured.plan.n == 1.5)", "`1.5`"),
            ("when(structured.plan.a == 1 && structured.plan.b == 2)", "is not supported"),
            ("when(structured.plan.a == 1 || structured.plan.b == 2)", "`structured.a` and `structured.b`"),
            ("when()", "``"),
        ] {
            let (message, _) = parse_predicate(text, "plan").unwrap_err();
            assert!(message.contains(named), "{text}: {message}");
        }
    }
}
