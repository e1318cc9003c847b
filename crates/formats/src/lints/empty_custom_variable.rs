//! Found in `climpt::prompts::compile`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "empty-custom-variable",
    page: "\
empty-custom-variable: a custom variable stays empty

The front matter declares `customVariables`, and the prompt uses them as `{name}`. These are filled:
`iteration`, `completed_iterations`, `max_iterations`, `remaining`, `previous_summary`, `remaining_text` (how
many iterations remain) and `summary_section` (the last summary below a heading, where there is one). Nothing
fills others, so that they are replaced by nothing; one that the prompt does not use does nothing at all.

Use `{uv-name}` with a parameter or an input, or remove them.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[
        ("stepId: initial.fix\n", "stepId: initial.fix\ncustomVariables: [depth]\n"),
        ("{section.context}", "{section.context}{depth}"),
    ],
    &[("[depth]", "[remaining]"), ("{depth}", "{remaining}")],
)];
