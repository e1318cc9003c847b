//! Findings about a definition: `cuegate/check/v1`, one line each, and what other programs read.

mod github;
mod gitlab;
mod group;
mod sarif;

pub use github::render_github_annotations;
pub use gitlab::build_code_quality_report;
pub use group::{FindingGroup, group_findings};
pub use sarif::{CheckedDefinition, build_sarif_log};

use cuegate_flow::diagnostics::{Diagnostic, Severity, Sources, Span};
use serde_json::{Value, json};

/// The findings as a JSON object of `cuegate/check/v1`. `strict` turns warnings into errors.
///
/// Findings of one code and severity in one file are one object with their `places`, in the order of the first of them;
/// `errors` and `warnings` count these objects. A finding about a file that is none of these has no place: `file`,
/// `line` and `column` are null.
pub fn check_json(diagnostics: &[Diagnostic], sources: &Sources, strict: bool) -> Value {
    let groups = group_findings(diagnostics);
    let count =
        |wanted| groups.iter().filter(|group| severity_of_finding(group.first, strict) == wanted).count();
    let errors = count(Severity::Error);
    let findings: Vec<Value> = groups
        .iter()
        .map(|group| {
            let mut finding = finding_json(group.first, sources, strict);
            let places = group.all().map(|finding| place_of(finding, sources)).collect();
            finding["places"] = Value::Array(places);
            finding
        })
        .collect();
    json!({
        "schema": "cuegate/check/v1",
        "ok": errors == 0,
        "errors": errors,
        "warnings": count(Severity::Warning),
        "diagnostics": findings,
    })
}

/// One place of a group of findings, with what is said about it.
fn place_of(finding: &Diagnostic, sources: &Sources) -> Value {
    let mut place = place_json(finding.span, sources);
    place["step"] = json!(finding.step);
    place["message"] = json!(finding.message);
    place["hint"] = json!(finding.hint);
    place
}

fn finding_json(finding: &Diagnostic, sources: &Sources, strict: bool) -> Value {
    let file = sources.get(finding.span.file).map(|file| file.given());
    let at = file.map(|_| sources.locate(finding.span));
    let places: Vec<Value> = finding.trace_spans.iter().map(|span| place_json(*span, sources)).collect();
    json!({
        "code": finding.code,
        "severity": severity_of_finding(finding, strict).as_str(),
        "message": finding.message,
        "file": file,
        "line": at.map(|at| at.line),
        "column": at.map(|at| at.column),
        "step": finding.step,
        "hint": finding.hint,
        "trace": finding.trace,
        "trace_places": places,
    })
}

/// Where a hop is written.
fn place_json(span: Span, sources: &Sources) -> Value {
    let file = sources.get(span.file).map(|file| file.given());
    let at = file.map(|_| sources.locate(span));
    json!({"file": file, "line": at.map(|at| at.line), "column": at.map(|at| at.column)})
}

/// A finding on one line: `file:line:col: severity[code]: message`.
pub fn render_finding_line(finding: &Diagnostic, sources: &Sources, strict: bool) -> String {
    let severity = severity_of_finding(finding, strict).as_str();
    let text = crate::text::clean_to_one_line(&finding.message);
    let finding_text = format!("{severity}[{}]: {text}", finding.code);
    match sources.get(finding.span.file) {
        Some(file) => {
            let at = sources.locate(finding.span);
            format!("{}:{}:{}: {finding_text}", file.display_path(), at.line, at.column)
        }
        None => finding_text,
    }
}

fn severity_of_finding(finding: &Diagnostic, strict: bool) -> Severity {
    match finding.severity {
        Severity::Warning if strict => Severity::Error,
        severity => severity,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{check_json, render_finding_line};
    use cuegate_flow::diagnostics::{Diagnostic, FileId, Sources, Span};

    pub(crate) fn findings() -> (Vec<Diagnostic>, Sources) {
        let mut sources = Sources::default();
        let file = sources.add("steps_registry.json", "{\n  \"next\": \"gone\"\n}\n");
        let here = Span { file, start: 12, end: 18 };
        let unknown = Diagnostic::error("unknown-target", here, "no step is called `gone`");
        let unknown = Diagnostic {
            trace: vec!["initial.issue --next→ gone".into()],
            ..unknown.hint("did you mean `done`?").step("initial.issue")
        };
        let habit = Diagnostic::warning("unused-key", Span::start_of(file), "`priority` has no reader");
        let nowhere = Diagnostic::error("no-entry", Span::start_of(FileId(9)), "nothing is entered first");
        (vec![habit, unknown, nowhere], sources)
    }

    #[test]
    fn json() {
        let (findings, sources) = findings();
        let json = check_json(&findings, &sources, false);
        insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap(), @r#"
        {
          "schema": "cuegate/check/v1",
          "ok": false,
          "errors": 2,
          "warnings": 1,
          "diagnostics": [
            {
              "code": "unused-key",
              "severity": "warning",
              "message": "`priority` has no reader",
              "file": "steps_registry.json",
              "line": 1,
              "column": 1,
              "step": null,
              "hint": null,
              "trace": [],
              "trace_places": [],
              "places": [
                {
                  "file": "steps_registry.json",
                  "line": 1,
                  "column": 1,
                  "step": null,
                  "message": "`priority` has no reader",
                  "hint": null
                }
              ]
            },
            {
              "code": "unknown-target",
              "severity": "error",
              "message": "no step is called `gone`",
              "file": "steps_registry.json",
              "line": 2,
              "column": 11,
              "step": "initial.issue",
              "hint": "did you mean `done`?",
              "trace": [
                "initial.issue --next→ gone"
              ],
              "trace_places": [],
              "places": [
                {
                  "file": "steps_registry.json",
                  "line": 2,
                  "column": 11,
                  "step": "initial.issue",
                  "message": "no step is called `gone`",
                  "hint": "did you mean `done`?"
                }
              ]
            },
            {
              "code": "no-entry",
              "severity": "error",
              "message": "nothing is entered first",
              "file": null,
              "line": null,
              "column": null,
              "step": null,
              "hint": null,
              "trace": [],
              "trace_places": [],
              "places": [
                {
                  "file": null,
                  "line": null,
                  "column": null,
                  "step": null,
                  "message": "nothing is entered first",
                  "hint": null
                }
              ]
            }
          ]
        }
        "#);
    }

    #[test]
    fn strict_leaves_no_warnings() {
        let (findings, sources) = findings();
        let warnings = &findings[..1];
        let relaxed = check_json(warnings, &sources, false);
        assert_eq!(
            (&relaxed["ok"], &relaxed["errors"], &relaxed["warnings"]),
            (&true.into(), &0.into(), &1.into())
        );
        let strict = check_json(warnings, &sources, true);
        assert_eq!(
            (&strict["ok"], &strict["errors"], &strict["warnings"]),
            (&false.into(), &1.into(), &0.into())
        );
        assert_eq!(strict["diagnostics"][0]["severity"], "error");
    }

    #[test]
    fn lines() {
        let (findings, sources) = findings();
        let lines: Vec<String> =
            findings.iter().map(|finding| render_finding_line(finding, &sources, false)).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        steps_registry.json:1:1: warning[unused-key]: `priority` has no reader
        steps_registry.json:2:11: error[unknown-target]: no step is called `gone`
        error[no-entry]: nothing is entered first
        ");
    }
}
