use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "report-name",
    page: "\
report-name: the name of a report cannot be used

What it means: A report is a file in the run's report folder. Its name has to be a relative path without
`..`, not below another report, and used once in a step. As a warning: members of one parallel step
write the same report, or two names differ only in upper and lower case.

Why it matters: Reports would overwrite each other: of reports that members write at the same time, only
the newest is read later, and names that differ in case are one file on macOS and Windows.

Example:
    output_contracts:
      report:
        - Scope: 01-scope.md
        - Decisions: 01-scope.md

Fix: Rename the report, for example `02-decisions.md`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_piece(
        &[("Decisions: 02-decisions.md", "Decisions: 01-scope.md")],
        &[("Decisions: 01-scope.md", "Decisions: 03-decisions.md")],
    ),
    super::twins_of_piece(
        &[("Decisions: 02-decisions.md", "Decisions: 01-Scope.md")],
        &[("Decisions: 01-Scope.md", "Decisions: 02-Scope.md")],
    ),
];
