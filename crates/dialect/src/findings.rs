//! Findings as they are collected while a definition is read.

use std::cell::RefCell;

use cuegate_flow::{Diagnostic, Span};

use crate::codes;

/// Collects findings. Shared by reference among all readers of one definition: no reader stops at its first
/// finding, so none of them returns one.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: RefCell<Vec<Diagnostic>>,
    unsupported: RefCell<Vec<String>>,
}

impl Findings {
    /// Adds a finding.
    pub(crate) fn push(&self, finding: Diagnostic) {
        self.list.borrow_mut().push(finding);
    }

    /// Adds the warning that a run will not do something the definition asks for, though it is sound without.
    pub(crate) fn left_out(&self, span: Span, statement: impl Into<String>, hint: &str) {
        let statement = statement.into();
        self.push(Diagnostic::warning(codes::UNSUPPORTED_YET, span, statement.clone()).hint(hint));
        self.unsupported.borrow_mut().push(statement);
    }

    /// How many findings of severity error there are.
    pub(crate) fn errors(&self) -> usize {
        self.list.borrow().iter().filter(|finding| finding.severity == cuegate_flow::Severity::Error).count()
    }

    /// All findings, and the statements of what a run will not do.
    pub(crate) fn into_parts(self) -> (Vec<Diagnostic>, Vec<String>) {
        (self.list.into_inner(), self.unsupported.into_inner())
    }
}
