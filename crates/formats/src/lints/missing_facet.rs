//! Found in `takt::sections`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "missing-facet",
    page: "\
missing-facet: a file that a piece names is not there

Entries of `personas`, `policies`, `knowledge`, `instructions` and `report_formats` are paths, relative to
the folder of the piece. This file does not exist; its path would have become the text that an agent is
told.

Write the file, or correct the path. A text may stand in place of a path: it has more than one word.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[("../policies/coding.md", "../policies/codng.md")],
    &[("", "//- .takt/policies/codng.md\nSimple before easy.\n")],
)];
