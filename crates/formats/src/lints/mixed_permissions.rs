use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "mixed-permissions",
    page: "\
mixed-permissions: members that may not write work beside members that may

The members of a parallel movement work at the same time in one tree. Which of them wrote a file cannot be
told, so that what is written counts for the movement as a whole: it is allowed where one member may write,
and what a member writes that may change nothing is not found, even if it commits it.

Put the members that may change files into a movement of their own, or let all members only read.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[(
        "        edit: false\n        instruction_template: Review the architecture.",
        "        edit: true\n        instruction_template: Review the architecture.",
    )],
    &[(
        "        edit: false\n        pass_previous_response: false",
        "        edit: true\n        pass_previous_response: false",
    )],
)];
