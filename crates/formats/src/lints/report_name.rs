use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "report-name",
    page: "\
report-name: the name of a report cannot be used

A report is a file in the run's folder of reports. Its name is a relative path without `..`, below no
other report, and each report of a movement has a name of its own. As a warning: members of one parallel
movement write the same report, so that only the newest of them is read later; or two names differ in case
only, and are one file on the file systems of macOS and Windows.

Rename the report.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::piece(
        &[("Decisions: 02-decisions.md", "Decisions: 01-scope.md")],
        &[("Decisions: 01-scope.md", "Decisions: 03-decisions.md")],
    ),
    super::piece(
        &[("Decisions: 02-decisions.md", "Decisions: 01-Scope.md")],
        &[("Decisions: 01-Scope.md", "Decisions: 02-Scope.md")],
    ),
];
