//! Placeholders of a prompt that stay text: equal ones are merged into one finding at the first place.

use std::collections::HashMap;

use cuegate_flow::diagnostics::{Diagnostic, FileId, Span};

use crate::codes;

/// The unresolved placeholders of one prompt.
#[derive(Debug, Default)]
pub(crate) struct UnresolvedPlaceholders {
    places: HashMap<(FileId, String), usize>,
    all: Vec<UnresolvedPlaceholder>,
}

#[derive(Debug)]
struct UnresolvedPlaceholder {
    written: String,
    span: Span,
    why: String,
    hint: String,
    /// The number of further places.
    more: usize,
}

impl UnresolvedPlaceholders {
    /// Adds a place of an unresolved placeholder.
    pub(crate) fn add(&mut self, written: &str, span: Span, why: String, hint: String) {
        let key = (span.file, written.to_owned());
        if let Some(at) = self.places.get(&key) {
            self.all[*at].more += 1;
            return;
        }
        self.places.insert(key, self.all.len());
        self.all.push(UnresolvedPlaceholder { written: written.to_owned(), span, why, hint, more: 0 });
    }

    /// The findings about them.
    pub(crate) fn findings(self) -> impl Iterator<Item = Diagnostic> {
        self.all.into_iter().map(|UnresolvedPlaceholder { written, span, why, hint, more }| {
            let more = match more {
                0 => String::new(),
                1 => ", here and at 1 more place".to_owned(),
                more => format!(", here and at {more} more places"),
            };
            let message = format!("`{written}` {why}{more}");
            Diagnostic::warning(codes::UNKNOWN_PLACEHOLDER, span, message).hint(hint)
        })
    }
}
