//! Found in `takt::sections`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "path-for-key",
    page: "\
path-for-key: a path where a key belongs

Movements name texts by their keys. A path works, and is relative to the folder of the piece, but the same
file named in several places has to be changed in all of them.

Add the file to the map that the finding names, and write its key here.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[("instruction: implement", "instruction: ../instructions/implement.md")],
    &[("instruction: ../instructions/implement.md", "instruction: implement")],
)];
