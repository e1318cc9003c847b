//! Collects findings while a definition is read.

use std::collections::BTreeSet;

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, FileId, Severity, Span},
};

use crate::codes;
use crate::source::shared::SharedCell;

/// Collects findings. All readers of one definition share it by reference: a reader continues after a finding, so it
/// does not return one.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: SharedCell<Vec<Diagnostic>>,
    unsupported: SharedCell<Vec<String>>,
    names: SharedCell<&'static [(&'static str, &'static str)]>,
    places: SharedCell<Vec<(Span, Str)>>,
    /// The places of errors: file, start, end.
    errors: SharedCell<BTreeSet<(FileId, u32, u32)>>,
    /// The places that failed to parse, and whether that makes the surroundings unreliable: a JSON error leaves them
    /// intact.
    broken: SharedCell<Vec<(Span, bool)>>,
}

impl Findings {
    /// Sets the names of places in messages, by their names in the current generation: the author of an older agent
    /// sees the names of that.
    pub(crate) fn rename(&self, names: &'static [(&'static str, &'static str)]) {
        *self.names.lock() = names;
    }

    /// The name of a place or word in messages.
    pub(crate) fn name<'n>(&self, name: &'n str) -> &'n str {
        self.names.get().iter().find(|(newer, _)| *newer == name).map_or(name, |(_, older)| older)
    }

    /// Reports a repeated key of an object.
    pub(crate) fn duplicate_key(&self, key: &str, span: Span) {
        let message = format!("duplicate key `{key}`");
        self.push(Diagnostic::error(codes::DUPLICATE_KEY, span, message).hint("remove one of them"));
    }

    pub(crate) fn push(&self, finding: Diagnostic) {
        // The value failed to parse, so other findings about it would only follow from that.
        if self.broken.lock().iter().any(|(span, _)| *span == finding.span) {
            return;
        }
        if codes::is_of_json(finding.code) || codes::is_of_yaml(finding.code) {
            self.broken.lock().push((finding.span, codes::is_of_yaml(finding.code)));
        }
        if finding.severity == Severity::Error {
            self.errors.lock().insert((finding.span.file, finding.span.start, finding.span.end));
        }
        self.list.lock().push(finding);
    }

    /// Warns that a run will ignore a part of the definition, which is valid without it.
    pub(crate) fn left_out(&self, span: Span, statement: impl Into<String>, hint: &str) {
        let statement = statement.into();
        self.push(Diagnostic::warning(codes::UNSUPPORTED_YET, span, statement.clone()).hint(hint));
        self.unsupported.lock().push(statement);
    }

    /// As [`Findings::left_out`] for several statements, as one finding.
    pub(crate) fn approximated(&self, span: Span, statements: Vec<String>, hint: &str) {
        let finding = Diagnostic::warning(codes::UNSUPPORTED_YET, span, statements.join("; "));
        self.push(finding.hint(hint));
        self.unsupported.lock().extend(statements);
    }

    /// Assigns a span to a step: a finding inside belongs to that step, unless it names another one or a smaller span
    /// is assigned to another step.
    pub(crate) fn about(&self, place: Span, step: &str) {
        self.places.lock().push((place, step.into()));
    }

    /// Marks a place in a YAML file that failed to parse, after reporting it: what seems missing there may be part of
    /// it.
    pub(crate) fn unreadable(&self, place: Span) {
        self.broken.lock().push((Span { end: place.start, ..place }, true));
    }

    /// Whether a span contains a place that failed to parse and makes the surroundings unreliable.
    pub(crate) fn is_broken(&self, place: Span) -> bool {
        let within = |span: &Span| span.file == place.file && (place.start..place.end).contains(&span.start);
        self.broken.lock().iter().any(|(span, in_doubt)| *in_doubt && within(span))
    }

    /// Whether an error was reported within a span: what was read from there is a placeholder, and checks of it would
    /// only repeat the error in other words.
    pub(crate) fn is_poisoned(&self, place: Span) -> bool {
        let within = (place.file, place.start, 0)..(place.file, place.end + 1, 0);
        self.errors.lock().range(within).any(|(_, _, end)| *end <= place.end)
    }

    /// Whether any error was reported.
    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.lock().is_empty()
    }

    /// All findings, and the statements about ignored parts.
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
