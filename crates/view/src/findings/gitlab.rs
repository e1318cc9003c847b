//! Findings as a code quality report: GitLab shows them beside the lines of a merge request.

use std::collections::BTreeMap;

use cuegate_flow::{diagnostics::Severity, model::BlobRef};
use serde_json::{Value, json};

use super::{CheckedDefinition, severity_of_finding};

/// The list of all findings, in the subset of Code Climate's format that GitLab documents. `strict` turns warnings into
/// errors.
///
/// A fingerprint tells findings of two commits apart, so no line is in it: it depends on code, file and message, and on how
/// many of the same came before.
pub fn build_code_quality_report(checked: &[CheckedDefinition<'_>], strict: bool) -> Value {
    let mut seen = BTreeMap::<String, u32>::new();
    let mut report = Vec::new();
    for definition in checked {
        for finding in definition.diagnostics {
            let file = definition.sources.get(finding.span.file);
            // Each finding needs a place there.
            let (path, line) = file
                .map_or((".", 1), |file| (file.display_path(), definition.sources.locate(finding.span).line));
            let mut text = finding.message.clone();
            if let Some(hint) = &finding.hint {
                text.push_str(&format!(" ({hint})"));
            }
            let same = format!("{}\0{path}\0{}", finding.code, finding.message);
            let count = seen.entry(same.clone()).or_default();
            *count += 1;
            report.push(json!({
                "description": text,
                "check_name": finding.code,
                "fingerprint": BlobRef::for_bytes(format!("{same}\0{count}").as_bytes()).digest,
                "severity": match severity_of_finding(finding, strict) {
                    Severity::Error => "major",
                    Severity::Warning => "minor",
                    Severity::Note => "info",
                },
                "location": {
                    "path": path,
                    "lines": { "begin": line },
                },
            }));
        }
    }
    Value::Array(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::findings;

    #[test]
    fn findings_have_places_and_lasting_fingerprints() {
        let (found, sources) = findings();
        let twice = [found.clone(), found].concat();
        let report =
            build_code_quality_report(&[CheckedDefinition { diagnostics: &twice, sources: &sources }], false);
        let all = report.as_array().unwrap();
        assert!(
            all.iter().all(|one| one["location"]["lines"]["begin"].as_u64().is_some_and(|line| line > 0))
        );
        assert_eq!(all[2]["location"]["path"], ".", "it is about no file");
        let prints: std::collections::BTreeSet<&str> =
            all.iter().map(|one| one["fingerprint"].as_str().unwrap()).collect();
        assert_eq!(prints.len(), all.len());
        assert_eq!((&all[0]["severity"], &all[0]["check_name"]), (&json!("minor"), &json!("unused-key")));
    }
}
