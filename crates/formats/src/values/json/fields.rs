//! Reads an object field by field and records the requested keys, so that the remaining keys can be reported as
//! unknown, with the nearest known key.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
};

use super::{Entry, Json, Kind};
use crate::codes;
use crate::findings::Findings;
use crate::suggest;

/// A text with its span.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'j> {
    pub(crate) text: &'j str,
    pub(crate) span: Span,
}

/// An object that is being read. `null` counts as absent, as in the original program.
pub(crate) struct Fields<'j, 'f> {
    pub(crate) span: Span,
    pub(crate) found: &'f Findings,
    /// The step it belongs to, if any.
    step: Option<Str>,
    /// Its name in messages.
    what: String,
    entries: &'j [Entry],
    asked: RefCell<Vec<&'static str>>,
    /// Known keys that are never suggested.
    shunned: RefCell<Vec<&'static str>>,
    /// The required keys.
    needed: RefCell<Vec<&'static str>>,
    /// Findings about missing parts, reported when the object is read.
    lacking: RefCell<Vec<Diagnostic>>,
    /// Missing keys, reported when the object is read.
    missing: RefCell<Vec<&'static str>>,
}

/// Reports what is missing, even if the reader of the object does not ask for its other keys.
impl Drop for Fields<'_, '_> {
    fn drop(&mut self) {
        self.lack().into_iter().for_each(|finding| self.push(finding));
    }
}

impl<'j, 'f> Fields<'j, 'f> {
    /// Starts reading an object. Returns `None` after reporting a value that is no object.
    pub(crate) fn of(json: &'j Json, what: &str, step: Option<&str>, found: &'f Findings) -> Option<Self> {
        let entries = read_object_entries(json, what, step, found)?;
        Some(Fields {
            span: json.span,
            found,
            step: step.map(Str::from),
            what: what.to_owned(),
            entries,
            asked: RefCell::default(),
            shunned: RefCell::default(),
            needed: RefCell::default(),
            lacking: RefCell::default(),
            missing: RefCell::default(),
        })
    }

    /// Adds a finding with the step of this object.
    pub(crate) fn push(&self, finding: Diagnostic) {
        self.found.push(match &self.step {
            Some(step) => finding.step(step),
            None => finding,
        });
    }

    /// A key and its value, if present. `null` is reported, because it probably stands for a forgotten value.
    pub(crate) fn entry(&self, key: &'static str) -> Option<&'j Entry> {
        let entry = self.nullable(key)?;
        if matches!(entry.value.kind, Kind::Null) {
            let message = format!("`{key}` is `null`");
            let hint = match self.is_needed(key) {
                true => format!("give `{key}` a value"),
                false => format!("give `{key}` a value, or leave it out"),
            };
            self.push(Diagnostic::error(codes::WRONG_TYPE, entry.value.span, message).hint(hint));
            return None;
        }
        Some(entry)
    }

    /// A key and its value, if present, including `null`.
    pub(crate) fn nullable(&self, key: &'static str) -> Option<&'j Entry> {
        self.asked.borrow_mut().push(key);
        self.entries.iter().find(|entry| &*entry.key == key)
    }

    /// As [`Fields::nullable`], for a key that is never suggested for an unknown one.
    pub(crate) fn shunned(&self, key: &'static str) -> Option<&'j Entry> {
        self.shunned.borrow_mut().push(key);
        self.nullable(key)
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<Text<'j>> {
        let entry = self.entry(key)?;
        let text = as_text(&entry.value);
        if text.is_none() {
            self.wrong_type(key, &entry.value, "text");
        }
        text
    }

    /// Marks a key as required, so that hints about its value do not advise leaving it out.
    pub(crate) fn need(&self, key: &'static str) {
        self.needed.borrow_mut().push(key);
    }

    /// Whether a key is marked as required.
    pub(super) fn is_needed(&self, key: &str) -> bool {
        self.needed.borrow().contains(&key)
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self, key: &'static str) -> Option<(bool, Span)> {
        let entry = self.entry(key)?;
        match entry.value.kind {
            Kind::Boolean(value) => Some((value, entry.value.span)),
            _ => {
                self.wrong_type(key, &entry.value, "`true` or `false`");
                None
            }
        }
    }

    /// An integer of at least `min`.
    pub(crate) fn count(&self, key: &'static str, min: u32) -> Option<(u32, Span)> {
        let entry = self.entry(key)?;
        let (written, value) = match &entry.value.kind {
            Kind::Number(number) => (number.to_string(), number.as_f64()),
            // The YAML parser returns integers over 64 bits as text.
            Kind::Text(text) if is_long(text) => (text.to_string(), text.parse().ok()),
            _ => {
                self.wrong_type(key, &entry.value, "a number");
                return None;
            }
        };
        if let Some(count) = value.and_then(to_whole_number).filter(|count| *count >= min) {
            return Some((count, entry.value.span));
        }
        let bound = match value {
            Some(value) if value > f64::from(u32::MAX) => format!("at most {}", u32::MAX),
            _ => format!("at least {min}"),
        };
        let message = format!("`{key}` must be a whole number of {bound}, not {written}");
        self.invalid(entry.value.span, message, "correct the number");
        None
    }

    /// A list of texts without repetitions; items of another type and repeated items are reported and dropped.
    pub(crate) fn texts(&self, key: &'static str) -> Option<Vec<Text<'j>>> {
        let entry = self.entry(key)?;
        let Kind::List(items) = &entry.value.kind else {
            self.wrong_type(key, &entry.value, "a list of texts");
            return None;
        };
        let (mut texts, mut seen) = (Vec::<Text<'j>>::new(), HashSet::new());
        // A linear search is enough for most lists.
        let is_long = items.len() > 16;
        for item in items {
            match as_text(item) {
                Some(text)
                    if match is_long {
                        true => !seen.insert(text.text),
                        false => texts.iter().any(|known| known.text == text.text),
                    } =>
                {
                    let message = format!("`{}` is listed twice in `{key}`", text.text);
                    self.push(
                        Diagnostic::warning(codes::DUPLICATE_ITEM, text.span, message).hint("remove one"),
                    );
                }
                Some(text) => texts.push(text),
                None => {
                    let message = format!("`{key}` must hold texts only, not {}", name_of(item));
                    self.push(
                        Diagnostic::error(codes::WRONG_TYPE, item.span, message)
                            .hint("put it in double quotes"),
                    );
                }
            }
        }
        Some(texts)
    }

    /// A text that must be one of `words`.
    pub(crate) fn one_of(&self, key: &'static str, words: &[&'static str]) -> Option<(&'static str, Span)> {
        let text = self.text(key)?;
        match words.iter().find(|word| **word == text.text) {
            Some(word) => Some((word, text.span)),
            None => {
                let message = format!("`{}` is no `{key}`", text.text);
                self.no_such_word(text, message, words);
                None
            }
        }
    }

    /// A nested object.
    pub(crate) fn object(&self, key: &'static str) -> Option<Fields<'j, 'f>> {
        let entry = self.entry(key)?;
        Fields::of(&entry.value, &self.inner(key), self.step.as_deref(), self.found)
    }

    /// The entries of a nested object whose keys are names; repeated names are reported and dropped.
    pub(crate) fn names(&self, key: &'static str) -> Vec<&'j Entry> {
        let Some(entry) = self.entry(key) else { return Vec::new() };
        let all = read_object_entries(&entry.value, &self.inner(key), self.step.as_deref(), self.found);
        let mut seen = BTreeSet::new();
        all.unwrap_or_default().iter().filter(|entry| seen.insert(&*entry.key)).collect()
    }

    /// The items of a nested list.
    pub(crate) fn items(&self, key: &'static str) -> &'j [Json] {
        match self.entry(key).map(|entry| &entry.value) {
            None => &[],
            Some(Json { kind: Kind::List(items), .. }) => items,
            Some(other) => {
                self.wrong_type(key, other, "a list");
                &[]
            }
        }
    }

    /// Whether something in the object failed to parse; a missing key may then be part of it.
    pub(crate) fn is_broken(&self) -> bool {
        self.found.is_broken(self.span)
    }

    /// Whether an error was reported within the value of a key.
    pub(crate) fn is_poisoned(&self, key: &str) -> bool {
        let entry = self.entries.iter().find(|entry| &*entry.key == key);
        entry.is_some_and(|entry| self.found.is_poisoned(entry.span()))
    }

    /// Reports a missing key, unless something in the object is unreadable. A `null` value has been reported already.
    pub(crate) fn missing(&self, key: &'static str) {
        let is_null = |entry: &Entry| &*entry.key == key && matches!(entry.value.kind, Kind::Null);
        if !self.is_broken() && !self.entries.iter().any(is_null) {
            self.missing.borrow_mut().push(key);
        }
    }

    /// Reports something missing. If the object has one unknown key, that key was probably meant, and both become one
    /// finding.
    pub(crate) fn lacks(&self, finding: Diagnostic) {
        self.lacking.borrow_mut().push(finding);
    }

    /// Whether it has a key that is neither requested so far nor similar to one; such a key may be meant as anything.
    pub(crate) fn has_strange_key(&self) -> bool {
        let asked = self.asked.borrow();
        let is_strange = |entry: &&Entry| {
            !asked.contains(&&*entry.key) && suggest::guess_key(&entry.key, asked.iter().copied()).is_none()
        };
        self.entries.iter().any(|entry| is_strange(&entry))
    }

    /// Reports an invalid value.
    pub(crate) fn invalid(&self, span: Span, message: impl Into<String>, hint: &str) {
        self.push(Diagnostic::error(codes::INVALID_VALUE, span, message).hint(hint));
    }

    /// Reports a word that is none of `words`.
    pub(crate) fn no_such_word(&self, word: Text<'_>, message: impl Into<String>, words: &[&str]) {
        let finding = Diagnostic::error(codes::INVALID_VALUE, word.span, message);
        self.push(suggest::add_suggestion(finding, word.text, words));
    }

    /// Reports a value of the wrong type.
    pub(crate) fn wrong_type(&self, key: &str, value: &Json, wanted: &str) {
        let message = format!("`{key}` must be {wanted}, not {}", name_of(value));
        let hint = match self.is_needed(key) {
            true => format!("write {wanted}"),
            false => format!("write {wanted}, or leave `{key}` out"),
        };
        self.push(Diagnostic::error(codes::WRONG_TYPE, value.span, message).hint(hint));
    }

    /// Reports a known key that has no effect, if present.
    pub(crate) fn stray(&self, key: &'static str, why: &str) {
        if let Some(entry) = self.shunned(key) {
            let message = format!("`{key}` has no effect in {}", self.what);
            self.push(Diagnostic::warning(codes::UNUSED_KEY, entry.key_span, message).hint(why));
        }
    }

    /// As [`Fields::stray`] for several keys with the same reason, as one finding.
    pub(crate) fn strays(&self, keys: &[&'static str], why: &str) {
        let mut there: Vec<&Entry> = keys.iter().filter_map(|key| self.shunned(key)).collect();
        there.sort_by_key(|entry| entry.key_span.start);
        let Some(first) = there.first() else { return };
        let names: Vec<&str> = there.iter().map(|entry| &*entry.key).collect();
        let verb = if names.len() == 1 { "has" } else { "have" };
        let message = format!("{} {verb} no effect in {}", suggest::quote_names(&names), self.what);
        self.push(Diagnostic::warning(codes::UNUSED_KEY, first.key_span, message).hint(why));
    }

    /// Reports keys that belong to another object, as one finding. They are not suggested for unknown keys.
    pub(crate) fn misplaced(&self, keys: &[&'static str], into: &str) {
        let there: Vec<&Entry> = keys.iter().filter_map(|key| self.shunned(key)).collect();
        let Some(first) = there.iter().min_by_key(|entry| entry.key_span.start) else { return };
        let names: Vec<&str> = there.iter().map(|entry| &*entry.key).collect();
        let (keys, them) = if names.len() == 1 { ("key", "it") } else { ("keys", "them") };
        let message = format!("unknown {keys} {} in {}", suggest::quote_names(&names), self.what);
        let finding = Diagnostic::error(codes::UNKNOWN_KEY, first.key_span, message);
        self.push(finding.hint(format!("move {them} into `{into}`")));
    }

    /// Notes that the other keys have no effect because `enabled` is `false`, which may be temporary.
    pub(crate) fn switched_off(&self, enabled: Option<(bool, Span)>) {
        let Some((false, span)) = enabled else { return };
        let others: Vec<&str> =
            self.entries.iter().map(|entry| &*entry.key).filter(|key| *key != "enabled").collect();
        if !others.is_empty() {
            let verb = if others.len() == 1 { "has" } else { "have" };
            let message =
                format!("{} {verb} no effect: {} is switched off", suggest::quote_names(&others), self.what);
            let finding = Diagnostic::note(codes::UNUSED_KEY, span, message);
            self.push(finding.hint("set `enabled` to `true`, or remove the other keys"));
        }
    }

    /// Reports a value that has no effect.
    pub(crate) fn inert(&self, span: Span, message: impl Into<String>, hint: &str) {
        self.push(Diagnostic::warning(codes::UNUSED_KEY, span, message).hint(hint));
    }

    /// The texts under all keys not requested so far, for an object with free keys.
    pub(crate) fn others(&self) -> Vec<(&'j Entry, Text<'j>)> {
        let asked = self.asked.borrow();
        let others = self.entries.iter().filter(|entry| !asked.contains(&&*entry.key));
        let texts = others.filter_map(|entry| {
            let text = as_text(&entry.value);
            if text.is_none() {
                self.wrong_type(&entry.key, &entry.value, "text");
            }
            Some((entry, text?))
        });
        texts.collect()
    }

    /// Finishes an object that may have any other keys.
    pub(crate) fn allow_others(self) {}

    /// Reports every key that was not requested as unknown.
    pub(crate) fn finish(self) {
        let asked = self.asked.borrow();
        let unknown = self.entries.iter().filter(|entry| !asked.contains(&&*entry.key));
        // A key that is present is not suggested for an unknown one.
        let is_there = |key: &str| self.entries.iter().any(|entry| *entry.key == *key);
        let shunned = self.shunned.borrow();
        let known = || asked.iter().copied().filter(|key| !is_there(key) && !shunned.contains(key));
        if let [only] = unknown.clone().collect::<Vec<_>>()[..]
            && suggest::guess_key(&only.key, known()).is_none()
            && let [lack] = &self.lack()[..]
        {
            let message = format!("unknown key `{}` in {}; {}", only.key, self.what, lack.message);
            let hint = match &self.missing.take()[..] {
                [] => lack.hint.clone().unwrap_or_default(),
                missing => format!("correct the key, or remove it and add {}", suggest::quote_names(missing)),
            };
            self.lacking.take();
            return self.push(Diagnostic::error(codes::UNKNOWN_KEY, only.key_span, message).hint(hint));
        }
        for entry in unknown {
            let message = format!("unknown key `{}` in {}", entry.key, self.what);
            let finding = Diagnostic::error(codes::UNKNOWN_KEY, entry.key_span, message);
            self.push(match suggest::guess_key(&entry.key, known()) {
                Some(near) => finding.did_you_mean(near),
                None => finding.hint("remove it"),
            });
        }
    }

    /// The findings about missing parts: one for all missing keys, and one for each other part. In an empty object
    /// everything is missing, which is one finding.
    fn lack(&self) -> Vec<Diagnostic> {
        let (mut found, missing) = (self.lacking.borrow().clone(), self.missing.borrow());
        if missing.is_empty() {
            return found;
        }
        let names = suggest::quote_names(&missing);
        match found.first_mut().filter(|_| self.entries.is_empty()) {
            Some(part) => {
                part.message =
                    format!("{}; {names} {} missing as well", part.message, verb_of_count(missing.len()))
            }
            None => {
                let message = format!("{names} {} missing in {}", verb_of_count(missing.len()), self.what);
                let finding = Diagnostic::error(codes::MISSING_KEY, self.opening(), message);
                found.push(finding.hint(format!("add {names}")));
            }
        }
        found
    }

    /// The opening brace, where missing keys are reported.
    pub(crate) fn opening(&self) -> Span {
        Span { end: self.span.end.min(self.span.start + 1), ..self.span }
    }

    /// The name of the value of a key in messages: its path from the nearest named object.
    fn inner(&self, key: &str) -> String {
        let path = match self.what.strip_prefix('`').and_then(|path| path.strip_suffix('`')) {
            Some(path) => format!("{path}.{key}"),
            None => key.to_owned(),
        };
        format!("`{}`", self.found.name(&path))
    }
}

fn verb_of_count(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// The entries of a value that must be an object.
fn read_object_entries<'j>(
    json: &'j Json,
    what: &str,
    step: Option<&str>,
    found: &Findings,
) -> Option<&'j [Entry]> {
    if let Kind::Object(entries) = &json.kind {
        return Some(entries);
    }
    let message = format!("{what} must be an object, not {}", name_of(json));
    let finding = Diagnostic::error(codes::WRONG_TYPE, json.span, message).hint("write an object: `{ … }`");
    found.push(match step {
        Some(step) => finding.step(step),
        None => finding,
    });
    None
}

fn as_text(json: &Json) -> Option<Text<'_>> {
    json.as_text().map(|text| Text { text, span: json.span })
}

fn to_whole_number(value: f64) -> Option<u32> {
    let fits = value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value);
    fits.then_some(value as u32)
}

/// Whether a text is an integer of more than 64 bits. A shorter one in quotes stays a text.
fn is_long(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    digits.parse::<u64>().is_err() && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn name_of(json: &Json) -> &'static str {
    match json.kind {
        Kind::Null => "`null`",
        Kind::Boolean(_) => "`true` or `false`",
        Kind::Number(_) => "a number",
        Kind::Text(_) => "a text",
        Kind::List(_) => "a list",
        Kind::Object(_) => "an object",
    }
}
