//! Findings as GitHub's workflow commands: they appear as annotations beside the lines of a change.

use cuegate_flow::diagnostics::{Diagnostic, Severity, Sources};

use super::severity_of_finding;
use crate::text::clean_lines;

/// One line a finding: `::error file=…,line=…,col=…,title=…::message`.
///
/// What a definition says cannot begin another command: line ends and the separators of a command are escaped.
pub fn render_github_annotations(diagnostics: &[Diagnostic], sources: &Sources, strict: bool) -> String {
    let mut lines = String::new();
    for finding in diagnostics {
        let command = match severity_of_finding(finding, strict) {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let mut place = String::new();
        if let Some(file) = sources.get(finding.span.file) {
            let at = sources.locate(finding.span);
            place = format!(
                "file={},line={},col={},",
                escape_command_property(file.display_path()),
                at.line,
                at.column
            );
        }
        let mut message = finding.message.clone();
        if let Some(hint) = &finding.hint {
            message.push_str("\nhelp: ");
            message.push_str(hint);
        }
        for (at, hop) in finding.trace.iter().enumerate() {
            message.push_str("\n  ");
            message.push_str(hop);
            // One annotation has one place: those of the way are named.
            let span = finding.trace_spans.get(at);
            if let Some((span, file)) = span.and_then(|span| Some((span, sources.get(span.file)?))) {
                message.push_str(&format!(" ({}:{})", file.display_path(), sources.locate(*span).line));
            }
        }
        lines.push_str(&format!(
            "::{command} {place}title={}::{}\n",
            escape_command_property(finding.code),
            escape_command_data(&message)
        ));
    }
    lines
}

fn escape_command_data(text: &str) -> String {
    clean_lines(text).replace('%', "%25").replace('\n', "%0A")
}

fn escape_command_property(text: &str) -> String {
    escape_command_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::render_github_annotations;
    use crate::findings::tests::findings;
    use cuegate_flow::diagnostics::{FileId, Span, Trace};

    #[test]
    fn a_line_a_finding() {
        let (findings, sources) = findings();
        insta::assert_snapshot!(render_github_annotations(&findings, &sources, false), @"
        ::warning file=steps_registry.json,line=1,col=1,title=unused-key::`priority` has no reader
        ::error file=steps_registry.json,line=2,col=11,title=unknown-target::no step is called `gone`%0Ahelp: did you mean `done`?%0A  initial.issue --next→ gone
        ::error title=no-entry::nothing is entered first
        ");
    }

    #[test]
    fn each_hop_names_its_place() {
        let (mut findings, sources) = findings();
        let mut trace = Trace::default();
        trace.push("a --next→", findings[1].span);
        trace.push("gone", Span::start_of(FileId(9)));
        findings[1] = findings[1].clone().trace(trace);
        assert!(
            render_github_annotations(&findings[1..2], &sources, false)
                .ends_with("`done`?%0A  a --next→ (steps_registry.json:2)%0A  gone\n")
        );
    }

    #[test]
    fn nothing_breaks_out_of_its_line() {
        let (mut findings, sources) = findings();
        findings.truncate(1);
        findings[0].message = "100 %\r\n::stop-commands::x".to_owned();
        let line = render_github_annotations(&findings, &sources, true);
        assert!(line.starts_with("::error "), "strict: {line}");
        assert!(line.ends_with("::100 %25%0A::stop-commands::x\n"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }
}
