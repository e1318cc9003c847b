//! The texts of a workflow with their places.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuegate_flow::{Str, diagnostics::Span};

/// What placeholders in the texts of a workflow mean.
#[derive(Debug, Default)]
pub(crate) struct Context {
    /// What names of its reports begin with, then those of its callers.
    pub(crate) prefixes: Vec<String>,
    /// The values of `{var:…}`.
    pub(crate) vars: BTreeMap<String, String>,
}

/// A text of a workflow with its place.
#[derive(Debug, Clone)]
pub(crate) struct FacetText {
    pub(crate) text: Str,
    /// The whole file, or a value in the workflow.
    pub(crate) span: Span,
    /// The source text, for locating a part of the text.
    pub(in crate::takt) source: Str,
    /// What the placeholders of the text mean.
    pub(crate) context: Arc<Context>,
    /// The file name without folder and extension, for a text from a file.
    pub(crate) stem: Option<Str>,
}

impl FacetText {
    /// A text of the program itself.
    pub(crate) fn built_in(text: &str) -> FacetText {
        let (span, context) = (Span::default(), Arc::default());
        FacetText { text: text.into(), span, source: "".into(), context, stem: None }
    }

    /// Several texts as one, with lines between them.
    pub(in crate::takt) fn joined(all: Vec<FacetText>) -> Option<FacetText> {
        let texts: Vec<&str> = all.iter().map(|body| body.text.trim_end()).collect();
        let text: Str = texts.join("\n\n---\n\n").into();
        let first = all.into_iter().next()?;
        Some(FacetText { text, stem: None, ..first })
    }

    /// Offsets of the opening braces in the source, in order; empty if they cannot be determined.
    pub(crate) fn braces(&self) -> Vec<u32> {
        let whole = self.source.get(self.span.start as usize..self.span.end as usize).unwrap_or_default();
        // The header line of a YAML block scalar does not belong to the text.
        let is_block = *whole != *self.text && whole.starts_with(['|', '>']);
        let head = whole.find('\n').filter(|_| is_block).unwrap_or_default();
        let places: Vec<u32> =
            whole[head..].match_indices('{').map(|(at, _)| self.span.start + (head + at) as u32).collect();
        // Comments may add braces after the text; escapes may hide some.
        if places.len() < self.text.matches('{').count() { Vec::new() } else { places }
    }

    /// The span of `written` at a source offset; the whole text if it is not there.
    pub(crate) fn place_at(&self, start: Option<u32>, written: &str) -> Span {
        let is_there =
            |start: &u32| self.source.get(*start as usize..).is_some_and(|rest| rest.starts_with(written));
        match start.filter(is_there) {
            Some(start) => Span { start, end: start + written.len() as u32, ..self.span },
            None => self.span,
        }
    }

    /// The span of `written` in the text; the whole text if it is not found.
    pub(crate) fn place(&self, written: &str) -> Span {
        let whole = self.source.get(self.span.start as usize..self.span.end as usize).unwrap_or_default();
        match whole.find(written) {
            Some(at) => {
                let start = self.span.start + at as u32;
                Span { start, end: start + written.len() as u32, ..self.span }
            }
            None => self.span,
        }
    }
}
