//! Found in `takt::instruction_template`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unwritten-report",
    page: "\
unwritten-report: an instruction reads a report that nobody writes

`{report:file}` stands for the newest content of a report. No movement owes one of this name, so that the
agent reads \"(no report yet: file)\" each time.

Correct the name; the hint names the nearest one. Or add the report to `output_contracts` of a movement.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[("{report:00-plan.md}", "{report:plan.md}")],
    &[("{report:plan.md}", "{report:02-decisions.md}")],
)];
