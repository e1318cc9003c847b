//! Findings as SARIF 2.1.0: what code hosts and editors read.

use cuegate_flow::{
    checks::Code,
    diagnostics::{Diagnostic, Severity, Sources, Span},
};
use serde_json::{Value, json};

use super::severity_of_finding;

/// What was found about one definition.
pub struct CheckedDefinition<'c> {
    /// The findings.
    pub diagnostics: &'c [Diagnostic],
    /// The files that they point into.
    pub sources: &'c Sources,
}

/// One SARIF log of all findings; the manual pages of their codes are its rules. `strict` turns warnings into errors.
pub fn build_sarif_log(
    checked: &[CheckedDefinition<'_>],
    codes: &[Code],
    version: &str,
    strict: bool,
) -> Value {
    let found = || checked.iter().flat_map(|checked| checked.diagnostics.iter());
    let used: Vec<&Code> =
        codes.iter().filter(|code| found().any(|finding| finding.code == code.name)).collect();
    let results: Vec<Value> = checked
        .iter()
        .flat_map(|checked| {
            checked
                .diagnostics
                .iter()
                .map(|finding| sarif_result_of_finding(finding, checked.sources, &used, strict))
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "cuegate",
                "version": version,
                "rules": used.iter().map(|code| sarif_rule_of_code(code)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// A code; the first line of its page is `name: summary`.
fn sarif_rule_of_code(code: &Code) -> Value {
    let (first, rest) = code.page.split_once('\n').unwrap_or((code.page, ""));
    let summary = first.split_once(": ").map_or(first, |(_, summary)| summary);
    json!({
        "id": code.name,
        "shortDescription": {"text": summary},
        "help": {"text": rest.trim()},
    })
}

fn sarif_result_of_finding(finding: &Diagnostic, sources: &Sources, rules: &[&Code], strict: bool) -> Value {
    let level = match severity_of_finding(finding, strict) {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let mut text = finding.message.clone();
    if let Some(hint) = &finding.hint {
        text.push_str("\nhelp: ");
        text.push_str(hint);
    }
    let mut result = json!({"ruleId": finding.code, "level": level, "message": {"text": text}});
    if let Some(index) = rules.iter().position(|rule| rule.name == finding.code) {
        result["ruleIndex"] = index.into();
    }
    if let Some(place) = sarif_location_of_span(finding.span, sources) {
        if !finding.trace.is_empty() {
            // The way to the problem: each hop of it is told where it is written, else at the place of the finding.
            let hops = finding.trace.iter().enumerate().map(|(at, hop)| {
                let written =
                    finding.trace_spans.get(at).and_then(|span| sarif_location_of_span(*span, sources));
                let mut at = written.unwrap_or_else(|| place.clone());
                at["message"] = json!({"text": hop});
                json!({"location": at})
            });
            let steps: Vec<Value> = hops.collect();
            result["codeFlows"] = json!([{"threadFlows": [{"locations": steps}]}]);
        }
        result["locations"] = json!([place]);
    }
    result
}

fn sarif_location_of_span(span: Span, sources: &Sources) -> Option<Value> {
    let file = sources.get(span.file)?;
    let start = sources.locate(span);
    let end = sources.locate(Span { start: span.end.max(span.start), ..span });
    Some(json!({"physicalLocation": {
        "artifactLocation": {"uri": uri_of_path(file.display_path())},
        "region": {"startLine": start.line, "startColumn": start.column,
            "endLine": end.line, "endColumn": end.column},
    }}))
}

/// A path as a relative reference (RFC 3986), and one from the root as a whole address: what is not plain in one is
/// percent-encoded.
fn uri_of_path(path: &str) -> String {
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(byte as char)
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::{CheckedDefinition, build_sarif_log, uri_of_path};
    use crate::findings::tests::findings;
    use cuegate_flow::{
        checks::Code,
        diagnostics::{Diagnostic, Sources, Span, Trace},
    };

    #[test]
    fn a_log_with_rules_places_and_traces() {
        let (findings, sources) = findings();
        let codes = [
            Code { name: "unused", page: "unused: is not listed\n\nText.\n" },
            Code {
                name: "unknown-target",
                page: "unknown-target: a name leads to no step\n\nWhat it means.\n",
            },
        ];
        let checked = [CheckedDefinition { diagnostics: &findings, sources: &sources }];
        let log = build_sarif_log(&checked, &codes, "1.2.3", false);
        insta::assert_snapshot!(serde_json::to_string_pretty(&log).unwrap(), @r#"
        {
          "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
          "version": "2.1.0",
          "runs": [
            {
              "tool": {
                "driver": {
                  "name": "cuegate",
                  "version": "1.2.3",
                  "rules": [
                    {
                      "id": "unknown-target",
                      "shortDescription": {
                        "text": "a name leads to no step"
                      },
                      "help": {
                        "text": "What it means."
                      }
                    }
                  ]
                }
              },
              "columnKind": "unicodeCodePoints",
              "results": [
                {
                  "ruleId": "unused-key",
                  "level": "warning",
                  "message": {
                    "text": "`priority` has no reader"
                  },
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "steps_registry.json"
                        },
                        "region": {
                          "startLine": 1,
                          "startColumn": 1,
                          "endLine": 1,
                          "endColumn": 1
                        }
                      }
                    }
                  ]
                },
                {
                  "ruleId": "unknown-target",
                  "level": "error",
                  "message": {
                    "text": "no step is called `gone`\nhelp: did you mean `done`?"
                  },
                  "ruleIndex": 0,
                  "codeFlows": [
                    {
                      "threadFlows": [
                        {
                          "locations": [
                            {
                              "location": {
                                "physicalLocation": {
                                  "artifactLocation": {
                                    "uri": "steps_registry.json"
                                  },
                                  "region": {
                                    "startLine": 2,
                                    "startColumn": 11,
                                    "endLine": 2,
                                    "endColumn": 17
                                  }
                                },
                                "message": {
                                  "text": "initial.issue --next→ gone"
                                }
                              }
                            }
                          ]
                        }
                      ]
                    }
                  ],
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "steps_registry.json"
                        },
                        "region": {
                          "startLine": 2,
                          "startColumn": 11,
                          "endLine": 2,
                          "endColumn": 17
                        }
                      }
                    }
                  ]
                },
                {
                  "ruleId": "no-entry",
                  "level": "error",
                  "message": {
                    "text": "nothing is entered first"
                  }
                }
              ]
            }
          ]
        }
        "#);
    }

    #[test]
    fn each_hop_is_told_where_it_is_written() {
        let mut sources = Sources::default();
        let (one, other) = (sources.add("a.json", "1\n2\n3\n"), sources.add("b.json", "1\n2\n"));
        let at = |file, start| Span { file, start, end: start + 1 };
        let mut trace = Trace::default();
        trace.push("a --x→", at(one, 2));
        trace.push("b --y→", at(other, 2));
        trace.push("c", at(one, 4));
        let finding = |trace: Trace| Diagnostic::error("found", at(one, 0), "m").trace(trace);
        let places = |finding: Diagnostic| -> Vec<(String, u64)> {
            let checked = [CheckedDefinition { diagnostics: &[finding], sources: &sources }];
            let log = build_sarif_log(&checked, &[], "1", false);
            let flows = &log["runs"][0]["results"][0]["codeFlows"][0]["threadFlows"][0]["locations"];
            let place = |at: &serde_json::Value| {
                let place = &at["location"]["physicalLocation"];
                let file = place["artifactLocation"]["uri"].as_str().unwrap_or_default().to_owned();
                (file, place["region"]["startLine"].as_u64().unwrap_or_default())
            };
            flows.as_array().into_iter().flatten().map(place).collect()
        };
        let file = |name: &str, line| (name.to_owned(), line);
        assert_eq!(places(finding(trace)), [file("a.json", 2), file("b.json", 2), file("a.json", 3)]);
        let unknown = Diagnostic { trace: vec!["a --x→".to_owned()], ..finding(Trace::default()) };
        assert_eq!(places(unknown), [file("a.json", 1)], "where it was found");
    }

    #[test]
    fn paths_are_references() {
        assert_eq!(uri_of_path(".agent/ein ding/ü.json"), ".agent/ein%20ding/%C3%BC.json");
        assert_eq!(uri_of_path("a:b"), "a%3Ab");
        assert_eq!(uri_of_path("/home/me/a b.yaml"), "file:///home/me/a%20b.yaml");
    }
}
