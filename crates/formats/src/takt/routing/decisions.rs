//! Rules that more decides than an answer: what other steps handed on, or what a system step read and did.
//!
//! An agent or the members of a parallel step only choose a label; where that leads is decided then, rule by rule.

use cuegate_flow::{Str, diagnostics::Diagnostic, model::Schema};
use serde_json::{Value, json};

use super::condition::{self, Condition};
use super::expression::{Expression, parse_expression, split_condition};
use super::predicate;
use super::rules::{ConditionText, Rule, name_of, normalize_word};
use crate::codes;
use crate::findings::Findings;
use crate::takt::answer_schema::STRUCTURED;

/// The outcome of an answer without a label.
pub(in crate::takt) const ANSWERED: &str = "answered";
/// The label for rules that need none.
const NO_LABEL: &str = "none of the others holds";

/// The rules among which values decide, in order.
#[derive(Debug, Clone)]
pub(crate) struct Decision<'j> {
    pub(crate) rules: Vec<Rule<'j>>,
}

/// What an agent is asked, and what is decided then.
pub(crate) struct SplitRules<'j> {
    /// The rules of the step itself; those with [`Rule::decision`] lead to a decision.
    pub(crate) asked: Vec<Rule<'j>>,
    pub(crate) decisions: Vec<Decision<'j>>,
}

/// Splits the rules of a step with an agent, or of a parallel step. `data`: the schema of the data in its answer.
pub(crate) fn split_rules<'j>(
    rules: Vec<Rule<'j>>,
    data: Option<&Value>,
    is_parallel: bool,
    found: &Findings,
) -> SplitRules<'j> {
    let is_asked = |rule: &&Rule<'j>| !rule.hidden;
    let eligible: Vec<&Rule<'j>> = rules.iter().filter(is_asked).collect();
    let is_when = |rule: &&&Rule<'j>| matches!(rule.kind, Condition::When { .. });
    let is_data = |rule: &&&Rule<'j>| rule.kind.is_predicate();
    let needs_none = match eligible.iter().any(|rule| is_when(&rule)) {
        true => false,
        false => {
            !eligible.iter().any(|rule| is_data(&rule))
                || (eligible.iter().all(|rule| is_data(&rule)) && are_listed(&eligible, data))
        }
    };
    if needs_none {
        return SplitRules { asked: rules, decisions: Vec::new() };
    }
    let mut labels: Vec<&Rule<'j>> = Vec::new();
    for rule in &eligible {
        if let Some(label) = label_of(rule)
            && !labels.iter().any(|known| {
                label_of(known).is_some_and(|known| normalize_word(&known.1) == normalize_word(&label.1))
            })
        {
            labels.push(rule);
        }
    }
    let (mut asked, mut decisions) = (Vec::new(), Vec::new());
    for of in &labels {
        let Some((kind, text)) = label_of(of) else { continue };
        let applicable = list_applicable(&eligible, (&kind, &text), is_parallel, found);
        let mut rule = Rule {
            condition: ConditionText { text: text.clone(), span: of.condition.span },
            outcome: name_of(&text),
            kind,
            asks_person: false,
            gated: applicable.iter().any(|rule| rule.gated),
            decision: Some(decisions.len()),
            ..(*of).clone()
        };
        match applicable.as_slice() {
            [only] if expression_of(only).is_none() => rule = (*only).clone(),
            _ => decisions.push(Decision { rules: applicable.into_iter().cloned().collect() }),
        }
        asked.push(rule);
    }
    let free: Vec<Rule<'j>> =
        eligible.iter().filter(|rule| label_of(rule).is_none()).map(|rule| (*rule).clone()).collect();
    if let Some(first) = free.first() {
        let is_said = labels.iter().any(|rule| !label_of(rule).is_some_and(|(kind, _)| kind.is_aggregate()));
        if is_parallel {
            if labels.is_empty() {
                let message =
                    format!("`{}` alone cannot be a rule of a parallel step yet", first.condition.text);
                let finding = Diagnostic::error(codes::UNSUPPORTED_YET, first.condition.span, message);
                found.push(
                    finding.hint("write it after a condition about the members: `all(\"…\") && when(…)`"),
                );
            }
        } else if labels.is_empty() || is_said {
            let text = if labels.is_empty() { ANSWERED } else { NO_LABEL };
            asked.push(Rule {
                condition: ConditionText { text: text.into(), span: first.condition.span },
                outcome: text.into(),
                kind: if labels.is_empty() { Condition::Answered } else { Condition::Text },
                asks_person: false,
                appendix: None,
                gated: free.iter().any(|rule| rule.gated),
                decision: Some(decisions.len()),
                ..first.clone()
            });
            decisions.push(Decision { rules: free });
        }
    }
    asked.extend(rules.iter().filter(|rule| rule.hidden).cloned());
    SplitRules { asked, decisions }
}

/// Whether the schema lists the values that all rules need, so that the answer alone decides.
fn are_listed(rules: &[&Rule<'_>], data: Option<&Value>) -> bool {
    let schema = json!({ "type": "object", "properties": { STRUCTURED: data } });
    Schema::new(schema).is_ok_and(|schema| predicate::build_predicate_readers(rules, &schema).is_some())
}

/// The condition and the text of the label of a rule; `None` if it needs none.
fn label_of(rule: &Rule<'_>) -> Option<(Condition, Str)> {
    match &rule.kind {
        Condition::When { label: Some((kind, text)), .. } => Some(((**kind).clone(), text.clone())),
        Condition::When { label: None, .. } | Condition::Field(..) | Condition::Otherwise => None,
        kind => Some((kind.clone(), rule.condition.text.clone())),
    }
}

/// The expression of a rule, besides its label.
pub(in crate::takt) fn expression_of(rule: &Rule<'_>) -> Option<Expression> {
    match &rule.kind {
        Condition::When { expression, .. } => Some(expression.clone()),
        Condition::Otherwise => Some(Expression::Always),
        // It was parsed before in a narrower form.
        Condition::Field(..) => {
            let (_, inner) = split_condition(&rule.condition.text)?;
            parse_expression(inner).ok()
        }
        _ => None,
    }
}

/// The rules that can hold where a label does, in order.
fn list_applicable<'r, 'j>(
    rules: &[&'r Rule<'j>],
    (label, said): (&Condition, &str),
    is_parallel: bool,
    found: &Findings,
) -> Vec<&'r Rule<'j>> {
    let mut applicable = Vec::new();
    for rule in rules {
        let holds = match label_of(rule) {
            None => Some(true),
            Some((kind, text)) if is_parallel => label_implies(label, &kind).or_else(|| {
                // Only a rule before it that may not hold leaves the question open.
                let is_open = applicable.iter().all(|before: &&Rule<'_>| expression_of(before).is_some());
                if is_open && !applicable.is_empty() {
                    let message =
                        format!("whether `{text}` holds where an earlier rule fails cannot be decided yet");
                    let finding = Diagnostic::error(codes::UNSUPPORTED_YET, rule.condition.span, message);
                    found
                        .push(finding.hint("put the rule before it, or write one rule for each combination"));
                }
                Some(false)
            }),
            Some((kind, text)) => Some(kind == *label && normalize_word(&text) == normalize_word(said)),
        };
        if holds == Some(true) {
            applicable.push(*rule);
        }
    }
    applicable
}

/// Whether all members that fit one condition fit the other; `None` if that depends on them.
fn label_implies(is: &Condition, wanted: &Condition) -> Option<bool> {
    match (is, wanted) {
        (one, other) if one == other => Some(true),
        (Condition::All(word), Condition::Any(words)) => Some(words.contains(word)),
        (Condition::All(_), Condition::All(_)) => Some(false),
        (Condition::Any(words), Condition::All(word)) if !words.contains(word) => Some(false),
        _ => None,
    }
}

/// Parses `LABEL && when(…)` or `when(…)`.
///
/// # Errors
/// What cannot be read, and a hint.
pub(in crate::takt) fn parse_when(text: &str) -> Result<Condition, (String, &'static str)> {
    const FORMS: &str = "compare `structured.STEP.FIELD`, `context.STEP.NAME.FIELD` or `effect.STEP.TYPE.FIELD` with a quoted \
                         text, a number, `true` or `false`, by `==`, `!=`, `<`, `<=`, `>` or `>=`; join with `&&`, `||`, `!`";
    let Some((label, inner)) = split_condition(text) else {
        return Err((format!("`{text}` does not end with its `when(…)`"), "write `LABEL && when(…)`"));
    };
    let expression = parse_expression(inner).map_err(|why| (format!("in `{text}`: {why}"), FORMS))?;
    let label = match label {
        None => None,
        Some(label) => match condition::parse_condition(label)? {
            kind @ (Condition::Text | Condition::Ai(_)) => Some((Box::new(kind), label.into())),
            kind if kind.is_aggregate() => Some((Box::new(kind), label.into())),
            _ => return Err((format!("`{label}` is no label"), FORMS)),
        },
    };
    Ok(Condition::When { label, expression })
}
