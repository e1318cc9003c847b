use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "missing-edit",
    page: "\
missing-edit: a movement does not say whether it may change files

`edit` is required. Without it, and without `permission_mode`, a movement only reads: a file that it
changes is a violation. Where `permission_mode` is `edit` or `full`, the mode alone lets the movement change
files.

Add `edit: true` or `edit: false`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[("    edit: true\n", "")],
    &[("    permission_mode: edit", "    edit: true\n    permission_mode: edit")],
)];
