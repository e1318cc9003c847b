//! Found in `takt::movement`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "contradicting-permission",
    page: "\
contradicting-permission: two keys disagree about what a movement may do

`edit: false` says that files stay as they are, `permission_mode` `edit` or `full` that they may change.

Make them agree.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[("edit: true", "edit: false")],
    &[("edit: false\n    permission_mode", "edit: true\n    permission_mode")],
)];
