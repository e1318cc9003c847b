//! Found in `takt::movement`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "two-instructions",
    page: "\
two-instructions: a movement has two instructions

`instruction` is a key of `instructions`, `instruction_template` is the instruction itself. Only one of
them can be what the agent is told.

Keep one.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[("    instruction: implement\n", "    instruction: implement\n    instruction_template: Do it.\n")],
    &[("    instruction_template: Do it.\n", "")],
)];
