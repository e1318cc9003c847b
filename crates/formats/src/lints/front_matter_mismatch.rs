use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "front-matter-mismatch",
    page: "\
front-matter-mismatch: a front matter contradicts what uses the prompt

The front matter of a prompt file repeats what the registry says: `stepId`, `stepKind`, `c1`, `c2`, `c3`,
`edition`, `adaptation`, `usesStdin`, in failure prompts `params`. The registry decides, so that the front
matter has no effect where it says otherwise; perhaps the file serves the wrong step. A file that serves
several steps has to agree with one of them.

Correct the front matter, or the registry.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[("stepId: initial.fix\n", "stepId: initial.issue\n")],
    &[("stepId: initial.issue\n", "stepId: initial.fix\n")],
)];
