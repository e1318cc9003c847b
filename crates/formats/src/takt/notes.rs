//! What loading a workflow notes for its end: keys without effect, what runs in another way than in TAKT, and whether
//! something cannot run at all.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use cuegate_flow::diagnostics::{Diagnostic, FileId, Span};

use crate::codes;
use crate::findings::Findings;
use crate::suggest;
use crate::values::json::Entry;

/// The notes of one workflow and of all that it uses.
pub(super) struct LoadNotes<'f> {
    found: &'f Findings,
    /// Keys without effect by file, with the first place of each.
    ignored: RefCell<BTreeMap<FileId, BTreeMap<String, Span>>>,
    /// What runs in another way than in TAKT, with the first place.
    approximations: RefCell<Vec<(String, Span)>>,
    refused: Cell<bool>,
}

impl<'f> LoadNotes<'f> {
    pub(super) fn new(found: &'f Findings) -> Self {
        LoadNotes {
            found,
            ignored: RefCell::default(),
            approximations: RefCell::default(),
            refused: Cell::default(),
        }
    }

    /// Reports something that cannot run; what follows from it is not reported.
    pub(super) fn refuse(&self, finding: Diagnostic) {
        self.mark_refused();
        self.found.push(finding);
    }

    /// Records that the workflow cannot run, for a reason that has its own finding.
    pub(super) fn mark_refused(&self) {
        self.refused.set(true);
    }

    /// Whether something was found that cannot run.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.get()
    }

    /// Notes a key without effect.
    pub(super) fn ignore_key(&self, entry: &Entry) {
        let mut ignored = self.ignored.borrow_mut();
        let keys = ignored.entry(entry.key_span.file).or_default();
        keys.entry(entry.key.to_string()).or_insert(entry.key_span);
    }

    /// Notes something that runs in another way than in TAKT.
    pub(super) fn approximate(&self, span: Span, statement: &str) {
        let mut known = self.approximations.borrow_mut();
        if !known.iter().any(|(known, _)| known == statement) {
            known.push((statement.to_owned(), span));
        }
    }

    /// Reports the notes: one finding for all keys without effect, one for all approximations. A place in the workflow's own
    /// `file` is shown before one in a file that it uses.
    pub(super) fn report(&self, file: FileId) {
        let rank = |span: &Span| (span.file != file, span.file, span.start);
        self.report_ignored_keys(file, &rank);
        let all = self.approximations.take();
        if let Some(place) = all.iter().map(|(_, span)| *span).min_by_key(rank) {
            let statements = all.into_iter().map(|(statement, _)| statement).collect();
            let hint = "nothing has to be done; docs/reference.md says what each of them means";
            self.found.approximated(place, statements, hint);
        }
    }

    fn report_ignored_keys(&self, file: FileId, rank: &dyn Fn(&Span) -> (bool, FileId, u32)) {
        let ignored = self.ignored.take();
        let mut keys: BTreeMap<&str, Span> = BTreeMap::new();
        for (key, span) in ignored.values().flatten() {
            let place = keys.entry(key).or_insert(*span);
            if place.file != file && span.file == file {
                *place = *span;
            }
        }
        let Some(first) = keys.values().min_by_key(|span| rank(span)) else { return };
        let names: Vec<&str> = keys.keys().copied().collect();
        let verb = if names.len() == 1 { "has" } else { "have" };
        let message = format!("{} {verb} no effect here", suggest::quote_names(&names));
        let finding = Diagnostic::note(codes::UNUSED_KEY, *first, message);
        self.found.push(finding.hint("the agent of a run and its options are chosen in cuegate.toml"));
    }
}
