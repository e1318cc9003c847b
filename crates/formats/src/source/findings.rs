//! Findings as they are collected while a definition is read.

use std::collections::BTreeSet;

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

/// How many keys a finding names that is about more of them.
const NAMED_MAX: usize = 4;

/// What to do about several keys that stand twice.
fn several(apart: &str) -> String {
    format!("{apart}, or remove one of each: only one can hold")
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

    /// Says that keys stand twice in one object: of several at once, as where two objects became one, as one finding.
    pub(crate) fn twice(&self, keys: &[(String, Span)], whole: &str, apart: &str) {
        let Some((_, span)) = keys.first() else { return };
        let named: Vec<String> = keys.iter().take(NAMED_MAX).map(|(key, _)| format!("`{key}`")).collect();
        let more = keys.len() - named.len();
        let (said, hint) = match (named.as_slice(), more) {
            ([one], _) => (format!("{one} stands"), "remove one of them: only one can hold".to_owned()),
            ([first @ .., last], 0) => (format!("{} and {last} stand", first.join(", ")), several(apart)),
            (_, more) => (format!("{} and {more} more stand", named.join(", ")), several(apart)),
        };
        self.push(
            Diagnostic::error(lints::DUPLICATE_KEY, *span, format!("{said} twice in {whole}")).hint(hint),
        );
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
        let meant = finding.meant.map(|meant| self.spoken(meant.to_string()).into());
        self.list.lock().push(Diagnostic { message, hint, meant, ..finding });
    }

    /// Adds the warning that a run will not do something the definition asks for, though it is sound without.
    pub(crate) fn left_out(&self, span: Span, statement: impl Into<String>, hint: &str) {
        let statement = self.spoken(statement.into());
        self.push(Diagnostic::warning(lints::UNSUPPORTED_YET, span, statement.clone()).hint(hint));
        self.unsupported.lock().push(statement);
    }

    /// Findings of a part that is read beside others, perhaps in another thread: with what is known of the whole, to be
    /// [taken in](Findings::take_in) in the order of the parts.
    pub(crate) fn apart(&self) -> Findings {
        let (apart, broken) = (Findings::default(), self.broken.get());
        apart.speak(self.words.get());
        *apart.broken.lock() = broken;
        apart
    }

    /// Adds what was found in a part.
    pub(crate) fn take_in(&self, part: Findings) {
        self.unsupported.lock().extend(part.unsupported.into_inner());
        self.places.lock().extend(part.places.into_inner());
        let mut broken = self.broken.lock();
        let new: Vec<_> = part.broken.into_inner().into_iter().filter(|it| !broken.contains(it)).collect();
        broken.extend(new);
        self.list.lock().extend(part.list.into_inner());
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

    /// Where something of a kind was found.
    pub(crate) fn places(&self, which: impl Fn(&Diagnostic) -> bool) -> BTreeSet<Span> {
        self.list.lock().iter().filter(|finding| which(finding)).map(|finding| finding.span).collect()
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

    /// Whether such a place begins there.
    pub(crate) fn begins_in_doubt(&self, place: Span) -> bool {
        let begin = Span { end: place.start, ..place };
        self.broken.lock().contains(&(begin, true))
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
