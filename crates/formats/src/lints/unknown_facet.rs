//! Found in `takt::movement`, `takt::renamed` and `takt::sections`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-facet",
    page: "\
unknown-facet: a movement names a text that the piece does not have

`persona`, `policy`, `knowledge`, `instruction` and `format` are keys of `personas`, `policies`,
`knowledge`, `instructions` and `report_formats`. There is no such key, and the word alone would tell an
agent nothing. Where several movements name one that is not there, and one that is there is named nowhere,
the latter is what was changed, and the finding stands there.

Correct the key; the hint names the nearest one. Or add it with the path of its file.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] =
    &[super::piece(&[("[coding, careful]", "[codng, coding, careful]")], &[("[codng, ", "[")])];
