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

/// A misspelt key is unknown, and the one that was meant is missing: the cause and its consequence.
const CAUSES: [(&str, &str); 1] = [("unknown-key", "missing-key")];

/// Groups findings, in the order of the first one of each group, but a cause before its consequence.
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
    for (cause, consequence) in CAUSES {
        let mut index = 0;
        while index < groups.len() {
            let (code, file) = (groups[index].first.code, groups[index].first.span.file);
            let is_cause =
                |group: &FindingGroup<'_>| group.first.code == cause && group.first.span.file == file;
            let later = groups[index..].iter().position(is_cause).filter(|_| code == consequence);
            if let Some(later) = later {
                let moved = groups.remove(index + later);
                groups.insert(index, moved);
                index += 1;
            }
            index += 1;
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

    #[test]
    fn a_misspelt_key_comes_before_the_missing_one() {
        let at = |file: u32, start: u32| Span { file: FileId(file), start, end: start };
        let findings = [
            Diagnostic::warning("missing-key", at(0, 1), "`a` is missing"),
            Diagnostic::warning("missing-key", at(1, 1), "`b` is missing"),
            Diagnostic::error("unknown-key", at(0, 5), "unknown key `aa`"),
        ];
        let order: Vec<&str> =
            group_findings(&findings).iter().map(|group| group.first.message.as_str()).collect();
        assert_eq!(order, ["unknown key `aa`", "`a` is missing", "`b` is missing"]);
    }
}
