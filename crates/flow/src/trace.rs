//! Ways through a flow, as findings show them.

use crate::Span;

/// A way through a flow for people, one hop an entry, with the place where each hop is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    words: Vec<String>,
    /// As many as there are words, or none.
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

    /// The words, and the places: as many, or none where they are not known.
    pub(crate) fn into_parts(self) -> (Vec<String>, Vec<Span>) {
        let known = self.spans.len() == self.words.len();
        (self.words, if known { self.spans } else { Vec::new() })
    }
}

/// A way of which the places are not known.
impl From<Vec<String>> for Trace {
    fn from(words: Vec<String>) -> Trace {
        Trace { words, spans: Vec::new() }
    }
}
