use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "conflicting-keys",
    page: "\
conflicting-keys: two keys of a step contradict each other

What it means: Either `edit: false` forbids changes to files and `permission_mode: edit` or `full` allows
them, which is an error. Or the step has both `instruction`, which names an entry of `instructions`, and
`instruction_template`, which is the instruction itself; the template holds, which is a warning.

Why it matters: One of the two keys has no effect, and Cuegate cannot know which one is meant.

Example:
    - name: implement
      edit: false
      permission_mode: edit

Fix: Make `edit` and `permission_mode` agree. Of the two instructions, keep one.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_piece(
        &[("edit: true", "edit: false")],
        &[("edit: false\n    permission_mode", "edit: true\n    permission_mode")],
    ),
    super::twins_of_piece(
        &[("    instruction: implement\n", "    instruction: implement\n    instruction_template: Do it.\n")],
        &[("    instruction_template: Do it.\n", "")],
    ),
];
