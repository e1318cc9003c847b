use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "missing-edit",
    page: "\
missing-edit: a step does not say whether it may change files

What it means: `edit` is required in a step. Without it and without `permission_mode` the step may
only read. With `permission_mode: edit` or `full` and no `edit`, the mode alone allows changes.

Why it matters: In a step that may only read, each changed file is a violation.

Example:
    - name: implement
      persona: coder
      instruction: implement

Fix: Add `edit: true` or `edit: false`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_piece(
    &[("    edit: true\n", "")],
    &[("    permission_mode: edit", "    edit: true\n    permission_mode: edit")],
)];
