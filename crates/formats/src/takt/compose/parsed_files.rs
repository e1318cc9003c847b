//! The YAML files that a workflow uses, each parsed once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use cuegate_flow::diagnostics::Diagnostic;

use crate::codes;
use crate::source::loader::{LoadedFile, SourceLoader};
use crate::values::json::{Json, Kind};
use crate::values::yaml;

/// Parses files by their paths.
pub(in crate::takt) struct ParsedFiles<'d, 'f> {
    pub(in crate::takt) loader: &'d SourceLoader<'f>,
    parsed: RefCell<HashMap<String, Option<Arc<Json>>>>,
}

impl<'d, 'f> ParsedFiles<'d, 'f> {
    pub(in crate::takt) fn new(loader: &'d SourceLoader<'f>) -> Self {
        ParsedFiles { loader, parsed: RefCell::default() }
    }

    /// Parses a file that holds a mapping, once. Returns `None` after reporting that it holds none.
    pub(in crate::takt) fn parse(&self, path: &str) -> Option<Arc<Json>> {
        if let Some(known) = self.parsed.borrow().get(path) {
            return known.clone();
        }
        let read = match self.loader.page(path) {
            LoadedFile::Text { file, text } => yaml::parse(&text, file, &self.loader.found).map(Arc::new),
            LoadedFile::Missing | LoadedFile::Faulty => None,
        };
        let is_object = |json: &Arc<Json>| matches!(json.kind, Kind::Object(_));
        if let Some(other) = read.as_ref().filter(|json| !is_object(json)) {
            let message = format!("`{path}` holds no mapping");
            let finding = Diagnostic::error(codes::WRONG_TYPE, other.span, message);
            self.loader.found.push(finding.hint("write one, with keys and values"));
        }
        let read = read.filter(is_object);
        self.parsed.borrow_mut().insert(path.to_owned(), read.clone());
        read
    }
}
