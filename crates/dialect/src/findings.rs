//! Findings as they are collected while a definition is read.

use std::cell::{Cell, RefCell};

use cuegate_flow::{Diagnostic, Span, Str};

use crate::codes;

/// Collects findings. Shared by reference among all readers of one definition: no reader stops at its first
/// finding, so none of them returns one.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: RefCell<Vec<Diagnostic>>,
    unsupported: RefCell<Vec<String>>,
    words: Cell<&'static [(&'static str, &'static str)]>,
    places: RefCell<Vec<(Span, Str)>>,
    /// Where something stands that could not be read at all.
    broken: RefCell<Vec<(Span, &'static str)>>,
}

impl Findings {
    /// From now on says the second of each pair where a reader says the first: an author who wrote an older form of a
    /// definition reads its words.
    pub(crate) fn speak(&self, words: &'static [(&'static str, &'static str)]) {
        self.words.set(words);
    }

    fn spoken(&self, text: String) -> String {
        let say = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
        self.words.get().iter().fold(text, say)
    }

    /// Adds a finding.
    pub(crate) fn push(&self, finding: Diagnostic) {
        // What could not be read stands for nothing: nothing more is wrong with it.
        if self.broken.borrow().iter().any(|(span, _)| *span == finding.span) {
            return;
        }
        if codes::is_of_json(finding.code) || codes::is_of_yaml(finding.code) {
            self.broken.borrow_mut().push((finding.span, finding.code));
        }
        // A key that nobody knows is called as it is written, whatever else that word means.
        let message = match finding.message.split_once(" is no key of ") {
            Some((key, place)) if finding.code == codes::UNKNOWN_KEY => {
                format!("{key} is no key of {}", self.spoken(place.to_owned()))
            }
            _ => self.spoken(finding.message),
        };
        let hint = finding.hint.map(|hint| self.spoken(hint));
        let meant = finding.meant.map(|meant| self.spoken(meant.to_string()).into());
        self.list.borrow_mut().push(Diagnostic { message, hint, meant, ..finding });
    }

    /// Adds the warning that a run will not do something the definition asks for, though it is sound without.
    pub(crate) fn left_out(&self, span: Span, statement: impl Into<String>, hint: &str) {
        let statement = self.spoken(statement.into());
        self.push(Diagnostic::warning(codes::UNSUPPORTED_YET, span, statement.clone()).hint(hint));
        self.unsupported.borrow_mut().push(statement);
    }

    /// How many findings there are.
    pub(crate) fn len(&self) -> usize {
        self.list.borrow().len()
    }

    /// Says which step a part of a file is about: a finding in it is about that step, unless it says otherwise or a
    /// smaller part is another one's.
    pub(crate) fn about(&self, place: Span, step: &str) {
        self.places.borrow_mut().push((place, step.into()));
    }

    /// Whether something of a kind was found.
    pub(crate) fn has(&self, which: impl Fn(&Diagnostic) -> bool) -> bool {
        self.list.borrow().iter().any(which)
    }

    /// Takes some findings back.
    pub(crate) fn take(&self, which: impl Fn(&Diagnostic) -> bool) -> Vec<Diagnostic> {
        self.list.borrow_mut().extract_if(.., |finding| which(finding)).collect()
    }

    /// Whether within a place of a YAML file something could not be read at all. What is wrong in JSON leaves everything
    /// else as it is.
    pub(crate) fn is_broken(&self, place: Span) -> bool {
        let within = |span: &Span| span.file == place.file && (place.start..place.end).contains(&span.start);
        self.broken.borrow().iter().any(|(span, code)| codes::is_of_yaml(code) && within(span))
    }

    /// How many findings of severity error there are.
    pub(crate) fn errors(&self) -> usize {
        self.list.borrow().iter().filter(|finding| finding.severity == cuegate_flow::Severity::Error).count()
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
