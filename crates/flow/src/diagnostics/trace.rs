//! Paths through a flow, as findings show them.

use crate::diagnostics::Span;

/// A readable path through a flow, one entry per hop, with the position of each hop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    words: Vec<String>,
    /// One position per entry.
    spans: Vec<Span>,
}

impl Trace {
    /// Adds a hop with its position.
    pub fn push(&mut self, words: impl Into<String>, span: Span) {
        self.words.push(words.into());
        self.spans.push(span);
    }

    /// Replaces the last hop.
    #[must_use]
    pub(crate) fn ending_with(mut self, words: impl Into<String>, span: Span) -> Trace {
        self.words.pop();
        self.spans.pop();
        self.push(words, span);
        self
    }

    /// The entries and their positions.
    pub(crate) fn into_parts(self) -> (Vec<String>, Vec<Span>) {
        (self.words, self.spans)
    }
}
