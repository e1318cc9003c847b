//! Ways through a flow, as findings show them.

use crate::diagnostics::Span;

/// A way through a flow for people, one hop an entry, with the place where each hop is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    words: Vec<String>,
    /// As many as there are words.
    spans: Vec<Span>,
}

impl Trace {
    /// Adds a hop, and where it is written.
    pub fn push(&mut self, words: impl Into<String>, span: Span) {
        self.words.push(words.into());
        self.spans.push(span);
    }

    /// Puts another hop in the place of the last one.
    #[must_use]
    pub(crate) fn ending_with(mut self, words: impl Into<String>, span: Span) -> Trace {
        self.words.pop();
        self.spans.pop();
        self.push(words, span);
        self
    }

    /// The words, and as many places.
    pub(crate) fn into_parts(self) -> (Vec<String>, Vec<Span>) {
        (self.words, self.spans)
    }
}
