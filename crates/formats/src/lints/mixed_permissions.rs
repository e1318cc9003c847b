use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "mixed-permissions",
    page: "\
mixed-permissions: read-only members run in parallel with members that write

What it means: The members of this parallel step work at the same time in one worktree. Some may change
files and others may not.

Why it matters: Changes cannot be attributed to a member. Cuegate allows all of them as soon as one member
may write, and does not notice when a read-only member changes or commits files.

Example:
    parallel:
      - name: arch-review
        edit: true
      - name: qa-review
        edit: false

Fix: Move the members that write into a step of their own, or let all members only read.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_piece(
    &[(
        "        edit: false\n        instruction_template: Review the architecture.",
        "        edit: true\n        instruction_template: Review the architecture.",
    )],
    &[(
        "        edit: false\n        pass_previous_response: false",
        "        edit: true\n        pass_previous_response: false",
    )],
)];
