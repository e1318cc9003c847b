use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "conflicting-keys",
    page: "\
conflicting-keys: two keys disagree about what a movement may do

`edit: false` says that files stay as they are, `permission_mode` `edit` or `full` that they may change.

Make them agree.

`instruction` is a key of `instructions`, `instruction_template` is the instruction itself. Only one of
them can be what the agent is told.

Keep one.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::piece(
        &[("edit: true", "edit: false")],
        &[("edit: false\n    permission_mode", "edit: true\n    permission_mode")],
    ),
    super::piece(
        &[("    instruction: implement\n", "    instruction: implement\n    instruction_template: Do it.\n")],
        &[("    instruction_template: Do it.\n", "")],
    ),
];
