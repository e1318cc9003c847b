//! Reads the outcome of an answer.

use cuegate_flow::{
    Str,
    model::{
        Act, CombinedFields, Edge, Ending, FieldPath, Flow, Gate, Outcome, OutcomeReader, Step, StepId,
        Target, Template,
    },
};
use serde_json::Value;

use crate::answers::{parsed_answer::ParsedAnswer, spoken};

#[derive(Debug, Clone, PartialEq)]
pub enum GateResult {
    Outcome {
        /// The outcome that the answer names.
        outcome: Outcome,
        /// The structured answer, with the outcome's word normalised.
        output: Option<Value>,
        /// The agent's own reason.
        reason: Option<String>,
    },
    /// Another step must decide.
    Judge {
        /// The step that decides.
        judge: StepId,
        /// The index of the reader that requests it.
        reader: u16,
        /// The structured answer.
        output: Option<Value>,
    },
}

/// Why an answer is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidAnswer {
    /// Whether the answer has no outcome at all.
    pub absent: bool,
    /// The reason, for the agent and for people.
    pub why: String,
}

impl InvalidAnswer {
    pub(crate) fn wrong(why: impl Into<String>) -> InvalidAnswer {
        InvalidAnswer { absent: false, why: why.into() }
    }
}

/// Reads an answer by a step's gate, starting with reader `from`.
///
/// The outcome's word is normalised: trimmed, lower-cased and mapped by the table of accepted words. The whole answer
/// is then validated with the normalised word in place.
///
/// # Errors
/// Returns why no reader could read it, or how it violates the step's schema. Gates never guess; they fail closed.
pub fn read_answer(
    flow: &Flow,
    step: &Step<StepId>,
    answer: &ParsedAnswer<'_>,
    from: u16,
) -> Result<GateResult, InvalidAnswer> {
    let text = answer.text;
    if answer.output.is_none() && from == 0 && text.trim().is_empty() && blocked_mark(step).is_some() {
        return Err(InvalidAnswer { absent: true, why: "the answer is empty".to_owned() });
    }
    let readers = match &step.gate {
        Gate::Always(outcome) => {
            let output = answer.structured.clone();
            // Plain text is also a valid answer if one answer has several parts.
            if output.is_some() || fused_of_step(step).is_none() {
                validate_answer(flow, step, output.as_ref())?;
            }
            return Ok(GateResult::Outcome { outcome: outcome.clone(), output, reason: None });
        }
        Gate::Readers(readers) => readers,
        Gate::Join { .. } | Gate::Exit | Gate::Cases(_) => {
            return Err(InvalidAnswer::wrong("this step reads no answers"));
        }
    };
    let mut output = answer.structured.clone();
    // Plain text may replace the structured answer; an incomplete structured answer may not.
    let strict = fused_of_step(step).is_some() && output.is_some();
    let has_field = readers.iter().any(|reader| matches!(reader, OutcomeReader::Field { .. }));
    if strict && from == 0 && !has_field {
        validate_answer(flow, step, output.as_ref())?;
    }
    // Tags in the texts of a structured answer may be quotations, so they are ignored.
    let chosen = from == 0 && is_decided_by_output(readers, answer);
    let may_pass = may_pass_without_outcome(readers);
    let (mut bad, mut passed) = (None, None);
    if may_pass && output.is_none() && is_none(text) {
        passed = Some(Outcome::None);
    }
    for (index, reader) in readers.iter().enumerate().skip(from as usize) {
        match reader {
            OutcomeReader::Field { path, words, reasons } => {
                match read_outcome_field(path, words, output.as_ref()) {
                    Ok(outcome) => {
                        let said = output.clone();
                        // Another spelling of the outcome's name becomes the name. A value that only means the outcome stays.
                        if let (Some(output), Outcome::Named(name)) = (&mut output, &outcome)
                            && words.iter().any(|(word, _)| **word == name.to_lowercase())
                        {
                            path.set(output, Value::String(name.to_string()));
                        }
                        // The word in the schema may differ from the outcome's name.
                        if let Err(misfit) = validate_answer(flow, step, output.as_ref())
                            && validate_answer(flow, step, said.as_ref()).is_err()
                            && !gives_up(flow, step, (path, words, &outcome), output.as_ref())
                        {
                            return apply_immediate_fallback(readers, output, misfit);
                        }
                        if outcome == Outcome::None {
                            passed = Some(outcome);
                            continue;
                        }
                        let reason = output.as_ref().and_then(|output| {
                            reasons.iter().find_map(|path| path.get(output)?.as_str().map(str::to_owned))
                        });
                        return Ok(GateResult::Outcome { outcome, output, reason });
                    }
                    Err(found) if strict => return Err(found),
                    Err(found) if chosen => return apply_immediate_fallback(readers, output, found),
                    Err(found) => bad = bad.or(Some(found)),
                }
            }
            OutcomeReader::Tag { .. } if chosen || passed.is_some() => {}
            OutcomeReader::Tag { name, base, outcomes } => {
                match read_outcome_tag(text, name, *base, outcomes, may_pass) {
                    Some(Outcome::None) => passed = Some(Outcome::None),
                    Some(outcome) => return Ok(GateResult::Outcome { outcome, output, reason: None }),
                    None => {}
                }
            }
            OutcomeReader::Judge { step } => {
                return Ok(GateResult::Judge { judge: *step, reader: index as u16, output });
            }
            OutcomeReader::Said { name, words } => match spoken::read_spoken_outcome(text, name, words) {
                Ok(outcome) => {
                    let whole = || Some(clip_to_line(text.trim())).filter(|reason| !reason.is_empty());
                    let reason = spoken::find_outcome_reason(text, readers, &outcome).or_else(whole);
                    return Ok(GateResult::Outcome { outcome, output, reason });
                }
                Err(found) => bad = bad.or(found),
            },
            OutcomeReader::Otherwise(_)
            | OutcomeReader::Fallback(_)
            | OutcomeReader::FirstFallback(_)
            | OutcomeReader::Silence(_) => {}
        }
    }
    if let Some(outcome) = passed {
        return Ok(GateResult::Outcome { outcome, output, reason: None });
    }
    let bad =
        bad.unwrap_or_else(|| InvalidAnswer { absent: true, why: "the answer names no outcome".to_owned() });
    apply_immediate_fallback(readers, output, bad)
}

/// Whether the structured answer alone decides the outcome, although a tag could: it has one of the outcome fields, or
/// the provider returned it as structured output.
fn is_decided_by_output(readers: &[OutcomeReader<StepId>], answer: &ParsedAnswer<'_>) -> bool {
    let Some(output) = &answer.structured else { return false };
    let apart = answer.output.is_some();
    let tagged = readers.iter().any(|reader| matches!(reader, OutcomeReader::Tag { .. }));
    let mut fields = readers.iter().filter_map(|reader| match reader {
        OutcomeReader::Field { path, reasons, .. } => Some(std::iter::once(path).chain(reasons)),
        _ => None,
    });
    tagged && fields.any(|mut paths| apart || paths.any(|path| path.get(output).is_some()))
}

/// Whether a gate has a word for "no outcome".
fn may_pass_without_outcome(readers: &[OutcomeReader<StepId>]) -> bool {
    readers.iter().any(|reader| match reader {
        OutcomeReader::Field { words, .. } => words.iter().any(|(_, outcome)| *outcome == Outcome::None),
        _ => false,
    })
}

/// Whether a text is only the word for "no outcome", apart from emphasis, quotation marks and fences.
fn is_none(text: &str) -> bool {
    let marks = |c: char| c.is_whitespace() || "\"'`*_.!".contains(c);
    text.trim_matches(marks).eq_ignore_ascii_case("none")
}

/// Handles an invalid answer by the definition's immediate fallback, if it has one.
fn apply_immediate_fallback(
    readers: &[OutcomeReader<StepId>],
    output: Option<Value>,
    bad: InvalidAnswer,
) -> Result<GateResult, InvalidAnswer> {
    let meant = readers.iter().find_map(|reader| match reader {
        OutcomeReader::Otherwise(outcome) => Some(outcome.clone()),
        _ => None,
    });
    let outcome = meant.ok_or_else(|| bad.clone())?;
    Ok(GateResult::Outcome { outcome, output, reason: Some(format!("could not be read: {}", bad.why)) })
}

/// The next judge of a gate after the judge of this reader or rule.
pub(crate) fn judge_after(flow: &Flow, step: &Step<StepId>, place: u16) -> Option<(StepId, u16)> {
    match &step.gate {
        // The earlier readers could not read the answer either, so only later ones remain.
        Gate::Readers(_) => match read_answer(flow, step, &ParsedAnswer::default(), place + 1) {
            Ok(GateResult::Judge { judge, reader, .. }) => Some((judge, reader)),
            _ => None,
        },
        Gate::Join { judges, .. } => judges.get(place as usize + 1).map(|judge| (*judge, place + 1)),
        Gate::Exit | Gate::Always(_) | Gate::Cases(_) => None,
    }
}

pub(super) fn fused_of_step(step: &Step<StepId>) -> Option<&CombinedFields> {
    match &step.act {
        Act::Ask(ask) => ask.fused.as_ref(),
        _ => None,
    }
}

/// The agent's reason why it cannot proceed.
pub(crate) fn find_blocked_reason(step: &Step<StepId>, answer: &ParsedAnswer<'_>) -> Option<String> {
    let said = |why: &str| Some(why.trim().to_owned()).filter(|why| !why.is_empty());
    if let Some(output) = &answer.structured {
        return said(fused_of_step(step)?.blocked.get(output)?.as_str()?);
    }
    marked_blocked(step, answer.text)
}

/// Like [`find_blocked_reason`], for plain text such as reports.
pub(crate) fn marked_blocked(step: &Step<StepId>, text: &str) -> Option<String> {
    // Only at the start of the text: a quoted mark does not block.
    let why = text.trim_start().strip_prefix(&**blocked_mark(step)?)?.trim();
    (!why.is_empty()).then(|| why.to_owned())
}

fn blocked_mark(step: &Step<StepId>) -> Option<&Str> {
    match &step.act {
        Act::Ask(ask) => ask.blocked_mark.as_ref(),
        _ => None,
    }
}

/// The gate's fallback after failed repairs. `iteration` counts from 1; `named` is whether the answer still names an
/// outcome.
pub fn fallback_of_step(step: &Step<StepId>, iteration: u32, named: bool) -> Option<&Outcome> {
    readers_of_step(step).iter().find_map(|reader| match reader {
        OutcomeReader::Fallback(outcome) | OutcomeReader::Otherwise(outcome) => Some(outcome),
        OutcomeReader::FirstFallback(outcome) if iteration <= 1 && !named => Some(outcome),
        _ => None,
    })
}

/// Whether an answer names an outcome in a field, even if it is otherwise invalid.
pub fn names_outcome(step: &Step<StepId>, answer: &ParsedAnswer<'_>) -> bool {
    let output = answer.structured.as_ref();
    readers_of_step(step).iter().any(|reader| match reader {
        OutcomeReader::Field { path, words, .. } => read_outcome_field(path, words, output).is_ok(),
        _ => false,
    })
}

/// The definition's message for an answer without an outcome.
pub fn message_of_missing_outcome(step: &Step<StepId>) -> Option<&Template> {
    readers_of_step(step).iter().find_map(|reader| match reader {
        OutcomeReader::Silence(text) => Some(text),
        _ => None,
    })
}

pub(super) fn readers_of_step(step: &Step<StepId>) -> &[OutcomeReader<StepId>] {
    match &step.gate {
        Gate::Readers(readers) => readers,
        _ => &[],
    }
}

/// The outcome fields of a step's gate.
pub(super) fn outcome_fields_of_step(step: &Step<StepId>) -> impl Iterator<Item = &FieldPath> {
    readers_of_step(step).iter().filter_map(|reader| match reader {
        OutcomeReader::Field { path, .. } => Some(path),
        _ => None,
    })
}

/// The result of comparing an answer with its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Whether the answer contains a JSON object.
    pub found: bool,
    /// The problems, one per line.
    pub problems: Vec<String>,
}

/// Compares an answer with its step's schema, as [`read_answer`] does; `None` if the step has no schema.
pub fn compare_with_schema(
    flow: &Flow,
    step: &Step<StepId>,
    answer: &ParsedAnswer<'_>,
) -> Option<Inspection> {
    let Act::Ask(ask) = &step.act else { return None };
    let schema = flow.schema(ask.schema?);
    let Some(mut output) = answer.structured.clone() else {
        return Some(Inspection { found: false, problems: Vec::new() });
    };
    for reader in readers_of_step(step) {
        if let OutcomeReader::Field { path, words, .. } = reader
            && let Ok(Outcome::Named(name)) = read_outcome_field(path, words, Some(&output))
        {
            path.set(&mut output, Value::String(name.to_string()));
        }
    }
    let problems = schema.problems(&output).iter().map(|problem| clip_to_line(problem)).collect();
    Some(Inspection { found: true, problems })
}

fn validate_answer(flow: &Flow, step: &Step<StepId>, output: Option<&Value>) -> Result<(), InvalidAnswer> {
    let Act::Ask(ask) = &step.act else { return Ok(()) };
    let Some(schema) = ask.schema else { return Ok(()) };
    let Some(output) = output else {
        return Err(InvalidAnswer { absent: true, why: "the answer has no JSON object".to_owned() });
    };
    let problems = flow.schema(schema).problems(output);
    let problems: Vec<String> = problems.iter().map(|problem| clip_to_line(problem)).collect();
    if problems.is_empty() { Ok(()) } else { Err(InvalidAnswer::wrong(problems.join("; "))) }
}

/// Whether an answer gives up although its schema lacks that word. It is valid if it is valid with another word,
/// because the schema's conditions (`oneOf`, `if`, an `enum` of the whole) were written for the known words.
fn gives_up(
    flow: &Flow,
    step: &Step<StepId>,
    (path, words, outcome): (&FieldPath, &[(Str, Outcome)], &Outcome),
    output: Option<&Value>,
) -> bool {
    let aborts = |edge: &Edge<StepId>| {
        edge.on == *outcome && edge.implied && matches!(edge.to, Target::End(Ending::Aborted))
    };
    let Some(output) = output.filter(|_| step.edges.iter().any(aborts)) else { return false };
    words.iter().filter(|(_, other)| other != outcome).any(|(word, _)| {
        let mut otherwise = output.clone();
        path.set(&mut otherwise, Value::String(word.to_string()));
        validate_answer(flow, step, Some(&otherwise)).is_ok()
    })
}

/// The beginning of an answer on one line, for quotations.
pub(crate) fn clip_to_line(text: &str) -> String {
    const CHARACTERS_MAX: usize = 160;
    let mut brief: String =
        text.chars().take(CHARACTERS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if brief.len() < text.len() {
        brief.push('…');
    }
    brief
}

/// The outcome named by a field.
pub(crate) fn read_outcome_field(
    path: &FieldPath,
    words: &[(Str, Outcome)],
    output: Option<&Value>,
) -> Result<Outcome, InvalidAnswer> {
    let Some(output) = output else {
        return Err(InvalidAnswer { absent: true, why: "the answer has no JSON object".to_owned() });
    };
    let Some(value) = path.get(output) else {
        return Err(InvalidAnswer { absent: true, why: format!("the answer has no value at `{path}`") });
    };
    let said = match value {
        Value::String(text) => text.trim().to_lowercase(),
        other => other.to_string(),
    };
    words.iter().find(|(word, _)| **word == *said).map(|(_, outcome)| outcome.clone()).ok_or_else(|| {
        InvalidAnswer::wrong(format!(
            "`{path}` is `{}`, allowed are {}",
            clip_to_line(&said),
            list_accepted_words(words).join(", ")
        ))
    })
}

/// The outcome's name where that is one of its words, otherwise all its words.
fn list_accepted_words(words: &[(Str, Outcome)]) -> Vec<String> {
    let name_of = |outcome: &Outcome| {
        let name = outcome.to_string();
        let lower = name.to_lowercase();
        words.iter().any(|(word, to)| to == outcome && **word == *lower).then_some(name)
    };
    let mut spelled: Vec<String> = Vec::new();
    for (word, outcome) in words {
        let text = format!("`{}`", name_of(outcome).unwrap_or_else(|| word.to_string()));
        if !spelled.contains(&text) {
            spelled.push(text);
        }
    }
    spelled
}

/// The outcome of the last tag of this name with a valid number. If tags count from one and the gate may `pass`, zero
/// means that no outcome applies.
fn read_outcome_tag(text: &str, name: &str, base: u32, outcomes: &[Outcome], pass: bool) -> Option<Outcome> {
    let (text, name) = (text.to_lowercase(), name.to_lowercase());
    text.rmatch_indices('[').find_map(|(at, _)| {
        let inner = text[at + 1..].split_once(']')?.0;
        let number: u32 = inner.strip_prefix(&*name)?.strip_prefix(':')?.parse().ok()?;
        let Some(index) = number.checked_sub(base) else { return pass.then_some(Outcome::None) };
        outcomes.get(index as usize).filter(|outcome| **outcome != Outcome::None).cloned()
    })
}

#[cfg(test)]
mod tests {
    use super::spoken;
    use cuegate_flow::{Str, model::Outcome};

    #[test]
    fn an_outcome_is_read_after_its_name() {
        let named = |name: &str| Outcome::Named(name.into());
        let words: Vec<(Str, Outcome)> =
            [("ok", "ok"), ("pass", "ok"), ("true", "ok"), ("ng", "ng"), ("fail", "ng")]
                .map(|(word, outcome)| (word.into(), named(outcome)))
                .into();
        let good = [
            "I think result: OK",
            "**Result:** pass.",
            "{'result': 'ok', }",
            "result = true",
            "`OK`",
            "pass",
        ];
        for text in good {
            assert_eq!(spoken::read_spoken_outcome(text, "result", &words), Ok(named("ok")), "{text}");
        }
        for text in ["\"result\": \"ng\"", "Result: FAIL - two tests", "```\nng\n```"] {
            assert_eq!(spoken::read_spoken_outcome(text, "result", &words), Ok(named("ng")), "{text}");
        }
        let nothing = [
            "looks good",
            "ok, but the tests fail",
            "the result is not ok",
            "result: okay",
            "result: ok|ng",
            "result: ok / ng",
            "no_result: ok",
            "",
        ];
        for text in nothing {
            assert_eq!(spoken::read_spoken_outcome(text, "result", &words), Err(None), "{text}");
        }
        let both =
            spoken::read_spoken_outcome("result: ok for one, result: ng for the other", "result", &words);
        assert!(both.is_err_and(|bad| bad.is_some()), "who says both says neither");
    }
}
