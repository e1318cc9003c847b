//! Reads an outcome from plain text.

use cuegate_flow::{
    Str,
    model::{Outcome, OutcomeReader, StepId},
};

use crate::answers::{
    gate::{InvalidAnswer, read_outcome_field},
    structured::json_where,
};

/// The outcome after a name in a text, or of a text that is a single word. `Err(None)` if there is none.
pub(crate) fn read_spoken_outcome(
    text: &str,
    name: &str,
    words: &[(Str, Outcome)],
) -> Result<Outcome, Option<InvalidAnswer>> {
    let text = text.to_lowercase();
    let outcome_of = |said: &str| words.iter().find(|(word, _)| **word == *said).map(|(_, outcome)| outcome);
    // Emphasis, quotation marks and fences around a single word.
    let marks = |c: char| c.is_whitespace() || "\"'`*_.!".contains(c);
    if let Some(outcome) = outcome_of(text.trim_matches(marks)) {
        return Ok(outcome.clone());
    }
    let found: Vec<&Outcome> = text
        .match_indices(name)
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        .filter_map(|(at, _)| outcome_of(word_after(&text[at + name.len()..])?))
        .collect();
    match found.split_first() {
        None => Err(None),
        Some((first, rest)) if rest.iter().all(|other| other == first) => Ok((*first).clone()),
        Some(_) => {
            Err(Some(InvalidAnswer::wrong(format!("the answer says different things after `{name}`"))))
        }
    }
}

/// The word in `": word"`, `" = 'word'"` and similar texts: only marks and one separator precede it, and it is not
/// part of a longer word (`ok|ng` is not a word).
fn word_after(text: &str) -> Option<&str> {
    let marks = |c: char| c == ' ' || c == '\t' || "\"'`*_".contains(c);
    let text = text.trim_start_matches(marks).strip_prefix([':', '='])?.trim_start_matches(marks);
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let goes_on = rest.starts_with('-') || rest.trim_start_matches(marks).starts_with(['|', '/']);
    (!word.is_empty() && !goes_on).then_some(word)
}

/// The reason in a text: from the object that names this outcome in one of the gate's fields, even if other objects
/// precede it.
pub(crate) fn find_outcome_reason(
    text: &str,
    readers: &[OutcomeReader<StepId>],
    outcome: &Outcome,
) -> Option<String> {
    readers.iter().find_map(|reader| {
        let OutcomeReader::Field { path, words, reasons } = reader else { return None };
        let object =
            json_where(text, |found| read_outcome_field(path, words, Some(found)).as_ref() == Ok(outcome))?;
        reasons.iter().find_map(|reason| reason.get(&object)?.as_str().map(str::to_owned))
    })
}
