//! Schemas that are not where steps say: said of each, or once where all of them are missing for one reason.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::diagnostics::{Diagnostic, Span};

use crate::lints;
use crate::source::findings::Findings;
use crate::source::shared::Shared;

/// What is not there of what steps name.
#[derive(Debug, Default)]
pub(crate) struct MissingSchemas {
    /// The files that are not there, as a finding of each step that names one.
    no_files: Shared<Vec<Diagnostic>>,
    /// By a file that is there, what is not in it, as a finding of each step that names it.
    not_in_file: Shared<BTreeMap<String, Vec<Diagnostic>>>,
    /// Files in which a schema was found.
    found_in: Shared<BTreeSet<String>>,
}

impl MissingSchemas {
    /// A schema was found in a file.
    pub(crate) fn found_in(&self, file: &str) {
        let mut found = self.found_in.lock();
        if !found.contains(file) {
            found.insert(file.to_owned());
        }
    }

    /// A file is not there.
    pub(crate) fn no_file(&self, finding: Diagnostic) {
        self.no_files.lock().push(finding);
    }

    /// A file is there, and what is named is not in it.
    pub(crate) fn not_in_file(&self, file: &str, finding: Diagnostic) {
        self.not_in_file.lock().entry(file.to_owned()).or_default().push(finding);
    }

    /// Says of each file that is not there that it is not, where the first step names it; where none is there, once where
    /// the base of all is written. Of a file that has nothing of what is named in it that is said once as well.
    pub(crate) fn report(&self, base: Option<Span>, found: &Findings) {
        let known = self.found_in.get();
        let not_in_file = std::mem::take(&mut *self.not_in_file.lock());
        let no_files = of_each_file(std::mem::take(&mut *self.no_files.lock()));
        match (no_files.as_slice(), base.filter(|_| known.is_empty() && not_in_file.is_empty())) {
            ([first, _, ..], Some(base)) => {
                let message = format!("no schema file is where it is looked for; first, {}", first.message);
                let finding = Diagnostic::error(lints::UNRESOLVED_SCHEMA, base, message);
                found.push(finding.hint("correct the schema base, or write the files"));
            }
            _ => no_files.into_iter().for_each(|finding| found.push(finding)),
        }
        for (file, findings) in not_in_file {
            // Where it is known what a step means, it is its name that is wrong.
            let is_slip = |finding: &Diagnostic| finding.meant.is_some();
            match known.contains(&file) || findings.iter().any(is_slip) {
                true => findings.into_iter().for_each(|finding| found.push(finding)),
                false => found.push(first_of(findings)),
            }
        }
    }
}

/// A finding of each file, where it is named first.
fn of_each_file(mut missing: Vec<Diagnostic>) -> Vec<Diagnostic> {
    missing.sort_by(|a, b| (&a.message, a.span.start).cmp(&(&b.message, b.span.start)));
    missing.dedup_by(|a, b| a.message == b.message);
    missing
}

/// The first of some findings, with the number of the others; there is one at least.
fn first_of(mut findings: Vec<Diagnostic>) -> Diagnostic {
    findings.sort_by_key(|finding| finding.span);
    findings.dedup_by_key(|finding| finding.span);
    let others = findings.len() - 1;
    let mut first = findings.swap_remove(0);
    if others > 0 {
        first.message = format!("{}; nor is any of {others} more that are looked for there", first.message);
    }
    first
}
