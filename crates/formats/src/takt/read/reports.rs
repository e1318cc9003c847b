//! Reads the reports that a step must write.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
};

use super::report_names::FileNames;
use super::sections::{FacetText, Section, Sections, is_path};
use crate::codes;
use crate::takt::spellings;
use crate::values::json::{Entry, Fields, Json, Kind, Text};

/// A report that a step must write.
#[derive(Debug, Clone)]
pub(crate) struct ReportDefinition {
    /// The file name as written: a safe relative path.
    pub(crate) name: Str,
    /// The place of the name.
    pub(crate) span: Span,
    /// The kind of report, if it has a label.
    pub(crate) label: Option<Str>,
    /// Instructions for writing it.
    pub(crate) order: Option<FacetText>,
    /// The format of its content.
    pub(crate) format: Option<FacetText>,
}

/// The longest name of a report, in bytes. File systems allow 255 for each path segment.
const NAME_BYTES_MAX: usize = 200;

/// A key of a report without effect.
const USE_JUDGE: &str = "use_judge";

/// Reads `output_contracts` of a step, or what it was before version 0.8: `report`, a name, one report or a list.
pub(crate) fn read_reports(
    owner: &Fields<'_, '_>,
    sections: &Sections<'_, '_>,
    step: &str,
) -> Vec<ReportDefinition> {
    owner.shunned("report");
    let mut reports = Vec::new();
    match spellings::find_renamed_entry(owner, "output_contracts", &["report"]) {
        (_, None) => return reports,
        ("report", Some(entry)) => match &entry.value.kind {
            Kind::Null => {}
            Kind::List(items) => {
                items.iter().for_each(|item| read_report(item, owner, sections, step, &mut reports));
            }
            Kind::Object(_) => read_report(&entry.value, owner, sections, step, &mut reports),
            _ => match owner.filled("report") {
                Some(name) => add_report(name, sections, None, None, None, owner, &mut reports),
                None => return reports,
            },
        },
        _ => {
            let Some(contracts) = owner.object("output_contracts") else { return reports };
            for item in contracts.items("report") {
                read_report(item, &contracts, sections, step, &mut reports);
            }
            contracts.finish();
        }
    }
    let (mut seen, mut names) = (Vec::<ReportDefinition>::new(), FileNames::default());
    for report in reports {
        match names.clash(&report.name).map(|at| &seen[at]) {
            Some(known) => {
                let message = if known.name == report.name {
                    format!("duplicate report `{}`", report.name)
                } else {
                    format!("`{}` and `{}` cannot both be files", known.name, report.name)
                };
                let finding = Diagnostic::error(codes::REPORT_NAME, report.span, message).step(step);
                owner.found.push(finding.hint("give each report a name of its own"));
            }
            None => {
                names.add(&report.name, seen.len());
                seen.push(report);
            }
        }
    }
    seen
}

fn read_report(
    item: &Json,
    contracts: &Fields<'_, '_>,
    sections: &Sections<'_, '_>,
    step: &str,
    reports: &mut Vec<ReportDefinition>,
) {
    let Kind::Object(entries) = &item.kind else {
        contracts.wrong_type("report", item, "a list of `{ name, format }` or `Label: path`");
        return;
    };
    // An entry with labels has none of these keys.
    let is_named = ["name", "format", "order"].iter().any(|key| item.entry(key).is_some());
    if !is_named {
        // Each key is a label, each value a file name.
        if entries.is_empty() {
            contracts.invalid(
                item.span,
                "this report has no name",
                "write `Label: path`, or `name` and `format`",
            );
        }
        for entry in entries.iter().filter(|entry| &*entry.key != USE_JUDGE) {
            match entry.value.as_text() {
                Some(text) => {
                    let name = Text { text, span: entry.value.span };
                    add_report(name, sections, Some(entry.key.clone()), None, None, contracts, reports);
                }
                None => contracts.wrong_type(&entry.key, &entry.value, "the name of a file"),
            }
        }
        return;
    }
    let Some(fields) = Fields::of(item, "a report", Some(step), contracts.found) else { return };
    fields.shunned(USE_JUDGE);
    let name = fields.required("name").or_else(|| meant_as_name(entries));
    let order = fields.filled("order").and_then(|text| resolve_report_format(text, &fields, sections));
    let format = fields.filled("format").and_then(|text| resolve_report_format(text, &fields, sections));
    fields.finish();
    if let Some(name) = name {
        add_report(name, sections, None, order, format, contracts, reports);
    }
}

/// The value of the only unknown key, which was probably meant as the name.
fn meant_as_name(entries: &[Entry]) -> Option<Text<'_>> {
    let is_known = |key: &str| ["name", "format", "order", USE_JUDGE].contains(&key);
    let mut others = entries.iter().filter(|entry| !is_known(&entry.key));
    match (others.next(), others.next()) {
        (Some(entry), None) => entry.value.as_text().map(|text| Text { text, span: entry.value.span }),
        _ => None,
    }
}

/// Resolves a format by its key, or takes it as inline text.
fn resolve_report_format(
    text: Text<'_>,
    fields: &Fields<'_, '_>,
    sections: &Sections<'_, '_>,
) -> Option<FacetText> {
    let single = Text { text: text.text.trim(), ..text };
    let is_named = sections.has(Section::ReportFormats, single.text) || is_path(single.text);
    if is_named && !sections.is_block(text) {
        return sections.resolve(Section::ReportFormats, single, fields);
    }
    Some(sections.inline(text))
}

fn add_report(
    name: Text<'_>,
    sections: &Sections<'_, '_>,
    label: Option<Str>,
    order: Option<FacetText>,
    format: Option<FacetText>,
    contracts: &Fields<'_, '_>,
    reports: &mut Vec<ReportDefinition>,
) {
    if let Some(reason) = unsafe_name(name.text) {
        let message = format!("`{}` cannot be the name of a report: {reason}", name.text.escape_debug());
        contracts.push(
            Diagnostic::error(codes::REPORT_NAME, name.span, message)
                .hint("name a file relative to the folder of reports: `00-plan.md`"),
        );
        return;
    }
    let whole = format!("{}{}", sections.report_prefix(), name.text);
    reports.push(ReportDefinition { name: whole.into(), span: name.span, label, order, format });
}

/// Why a name is no safe relative path; `None` if it is safe.
fn unsafe_name(name: &str) -> Option<&'static str> {
    let drive = name.as_bytes().get(1) == Some(&b':');
    let mut parts = name.split('/');
    if name.trim().is_empty() {
        Some("it is empty")
    } else if name.starts_with(['/', '~']) || drive {
        Some("it is not a relative path")
    } else if name.contains('\\') || name.chars().any(char::is_control) {
        Some("it holds a backslash or a control character")
    } else if name.len() > NAME_BYTES_MAX {
        Some("it is longer than 200 bytes")
    } else if parts.any(|part| part.is_empty() || part == "." || part == ".." || part.trim() != part) {
        Some("a part of it is empty, `.`, `..`, or begins or ends with a space")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::unsafe_name;

    #[test]
    fn only_safe_relative_paths_are_names() {
        for name in ["00-plan.md", "a/b.md", "計画.md", ".hidden", "a b.md", "…"] {
            assert_eq!(unsafe_name(name), None, "{name}");
        }
        for name in
            ["", " ", "/etc/x", "~/x", "../x", "a/../b", "a//b", "a/", "./a", "a\\b", "C:x", "a\nb", "a/ b"]
        {
            assert!(unsafe_name(name).is_some(), "{name}");
        }
        assert!(unsafe_name(&"x".repeat(201)).is_some());
    }
}
