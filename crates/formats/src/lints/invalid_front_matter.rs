//! Found in `climpt::prompts::front_matter` and `climpt::prompts::front_matter_slips`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-front-matter",
    page: "\
invalid-front-matter: the front matter of a prompt cannot be read

What stands between the two lines of `---` at the beginning of the file is no YAML. Or, as a warning,
something stands before the first of these lines, so that the front matter is part of the prompt.

Correct it, or remove the lines or what stands before them.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(&[("stepId: initial.fix\n", "stepId: [\n")], &[("stepId: [\n", "stepId: initial.fix\n")]),
    super::closing(
        &[("Close #{uv-issue}", "\n---\nstepId: closure.fix\n---\nClose #{uv-issue}")],
        &[("\n---\nstepId: closure.fix\n---\n", "---\nstepId: closure.fix\n---\n")],
    ),
];
