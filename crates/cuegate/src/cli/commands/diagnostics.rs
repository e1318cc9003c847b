//! How findings are printed and counted.

use cuegate_flow::diagnostics::{Diagnostic, Severity, Sources};

use cuegate_view::group_findings;

use crate::cli::print;

/// Prints all findings.
pub(super) fn print_diagnostics(diagnostics: &[Diagnostic], sources: &Sources, strict: bool) {
    print::print_findings(diagnostics, sources, strict);
}

/// The numbers of errors and warnings.
pub(super) fn count_errors_and_warnings(diagnostics: &[Diagnostic], strict: bool) -> (usize, usize) {
    let groups = group_findings(diagnostics);
    let of = |severity| groups.iter().filter(|group| group.first.severity == severity).count();
    let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
    if strict { (errors + warnings, 0) } else { (errors, warnings) }
}

pub(super) fn plural_ending(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
