use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "front-matter-mismatch",
    page: "\
front-matter-mismatch: the front matter of a prompt contradicts the registry

What it means: The front matter of a prompt file repeats what the registry says: `stepId`, `stepKind`,
`c1`, `c2`, `c3`, `edition`, `adaptation`, `usesStdin`, and `params` in failure prompts. Here the two
differ. A file that serves several steps has to agree with one of them.

Why it matters: The registry decides, and the front matter has no effect. Perhaps the file serves the wrong
step.

Example:
    ---
    stepId: initial.issue      # the registry uses this file for `initial.fix`
    ---

Fix: Correct the front matter, or the registry.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_closing(
    &[("stepId: initial.fix\n", "stepId: initial.issue\n")],
    &[("stepId: initial.issue\n", "stepId: initial.fix\n")],
)];
