//! Findings as they are collected while a definition is read.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
};

use crate::lints;
use crate::source::shared::Shared;

/// Collects findings. Shared by reference among all readers of one definition: no reader stops at its first
/// finding, so none of them returns one.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Shared<Vec<Diagnostic>>,
    unsupported: Shared<Vec<String>>,
    words: Shared<&'static [(&'static str, &'static str)]>,
    places: Shared<Vec<(Span, Str)>>,
    /// Where something stands that could not be read at all, and whether that leaves all around it in doubt: what is wrong in
    /// JSON leaves everything else as it is.
    broken: Shared<Vec<(Span, bool)>>,
}

impl Findings {
    /// From now on says the second of each pair where a reader says the first: an author who wrote an older form of a
    /// definition reads its words.
    pub(crate) fn speak(&self, words: &'static [(&'static str, &'static str)]) {
        *self.words.lock() = words;
    }

    fn spoken(&self, text: String) -> String {
        let say = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
        self.words.get().iter().fold(text, say)
    }

    /// Reports a key that an object has twice.
    pub(crate) fn duplicate_key(&self, key: &str, span: Span) {
        let message = format!("duplicate key `{key}`");
        self.push(Diagnostic::error(lints::DUPLICATE_KEY, span, message).hint("remove one of them"));
    }

    /// Adds a finding.
    pub(crate) fn push(&self, finding: Diagnostic) {
        // What could not be read stands for nothing: nothing more is wrong with it.
        if self.broken.lock().iter().any(|(span, _)| *span == finding.span) {
            return;
        }
        if lints::is_of_json(finding.code) || lints::is_of_yaml(finding.code) {
            self.broken.lock().push((finding.span, lints::is_of_yaml(finding.code)));
        }
        // A key that nobody knows is called as it is written, whatever else that word means.
        let message = match finding.message.split_once(" is no key of ") {
            Some((key, place)) if finding.code == lints::UNKNOWN_KEY => {
                format!("{key} is no key of {}", self.spoken(place.to_owned()))
            }
            _ => self.spoken(finding.message),
        };
        let hint = finding.hint.map(|hint| self.spoken(hint));
        self.list.lock().push(Diagnostic { message, hint, ..finding });
    }

    /// Adds the warning that a run will not do something the definition asks for, though it is sound without.
    pub(crate) fn left_out(&self, span: Span, statement: impl Into<String>, hint: &str) {
        let statement = self.spoken(statement.into());
        self.push(Diagnostic::warning(lints::UNSUPPORTED_YET, span, statement.clone()).hint(hint));
        self.unsupported.lock().push(statement);
    }

    /// How many findings there are.
    pub(crate) fn len(&self) -> usize {
        self.list.lock().len()
    }

    /// Says which step a part of a file is about: a finding in it is about that step, unless it says otherwise or a
    /// smaller part is another one's.
    pub(crate) fn about(&self, place: Span, step: &str) {
        self.places.lock().push((place, step.into()));
    }

    /// Whether something of a kind was found.
    pub(crate) fn has(&self, which: impl Fn(&Diagnostic) -> bool) -> bool {
        self.list.lock().iter().any(which)
    }

    /// Takes some findings back.
    pub(crate) fn take(&self, which: impl Fn(&Diagnostic) -> bool) -> Vec<Diagnostic> {
        self.list.lock().extract_if(.., |finding| which(finding)).collect()
    }

    /// Something of a YAML file could not be read as it was meant at a place, which has been said: what is missing there may
    /// have been meant.
    pub(crate) fn unreadable(&self, place: Span) {
        self.broken.lock().push((Span { end: place.start, ..place }, true));
    }

    /// Whether within a place something could not be read that leaves all around it in doubt.
    pub(crate) fn is_broken(&self, place: Span) -> bool {
        let within = |span: &Span| span.file == place.file && (place.start..place.end).contains(&span.start);
        self.broken.lock().iter().any(|(span, in_doubt)| *in_doubt && within(span))
    }

    /// How many findings of severity error there are.
    pub(crate) fn errors(&self) -> usize {
        self.list
            .lock()
            .iter()
            .filter(|finding| finding.severity == cuegate_flow::diagnostics::Severity::Error)
            .count()
    }

    /// All findings, and the statements of what a run will not do.
    pub(crate) fn into_parts(self) -> (Vec<Diagnostic>, Vec<String>) {
        let (mut list, places) = (self.list.into_inner(), self.places.into_inner());
        for finding in list.iter_mut().filter(|finding| finding.step.is_none()) {
            let (file, start, end) = (finding.span.file, finding.span.start, finding.span.end);
            let around = |place: &Span| place.file == file && place.start <= start && end <= place.end;
            let around = places.iter().filter(|(place, _)| around(place));
            let smallest = around.min_by_key(|(place, _)| place.end - place.start);
            finding.step = smallest.map(|(_, step)| step.clone());
        }
        (list, self.unsupported.into_inner())
    }
}
