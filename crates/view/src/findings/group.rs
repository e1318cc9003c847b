//! Findings of one code and severity in one file, shown as one finding with its places.

use std::collections::HashMap;

use cuegate_flow::diagnostics::Diagnostic;

/// Findings that have their code, their severity and their file in common.
#[derive(Debug)]
pub struct FindingGroup<'d> {
    /// The first of them in the given order: the one that is shown in full.
    pub first: &'d Diagnostic,
    /// The others, in the given order.
    pub others: Vec<&'d Diagnostic>,
}

impl<'d> FindingGroup<'d> {
    /// All findings of the group, the first one first.
    pub fn all(&self) -> impl Iterator<Item = &'d Diagnostic> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }
}

/// Groups findings, in the order of the first one of each group.
pub fn group_findings(findings: &[Diagnostic]) -> Vec<FindingGroup<'_>> {
    let mut groups: Vec<FindingGroup<'_>> = Vec::new();
    let mut known = HashMap::new();
    for finding in findings {
        let key = (finding.code, finding.severity.as_str(), finding.span.file.0);
        match known.get(&key) {
            Some(index) => {
                let group: &mut FindingGroup<'_> = &mut groups[*index];
                group.others.push(finding);
            }
            None => {
                known.insert(key, groups.len());
                groups.push(FindingGroup { first: finding, others: Vec::new() });
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::group_findings;
    use cuegate_flow::diagnostics::{Diagnostic, FileId, Span};

    #[test]
    fn one_code_severity_and_file_is_one_group() {
        let at = |file: u32, start: u32| Span { file: FileId(file), start, end: start };
        let findings = [
            Diagnostic::warning("unused-key", at(0, 1), "a"),
            Diagnostic::error("unused-key", at(0, 2), "b"),
            Diagnostic::warning("unused-key", at(0, 3), "c"),
            Diagnostic::warning("unused-key", at(1, 1), "d"),
        ];
        let groups = group_findings(&findings);
        let messages: Vec<Vec<&str>> = groups
            .iter()
            .map(|group| group.all().map(|finding| finding.message.as_str()).collect())
            .collect();
        assert_eq!(messages, [vec!["a", "c"], vec!["b"], vec!["d"]]);
    }
}
