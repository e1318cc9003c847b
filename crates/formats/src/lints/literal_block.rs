//! Found in `climpt::prompts::placeholders`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "literal-block",
    page: "\
literal-block: an ordinary prompt holds what only failure prompts know

`{{name}}`, `{{#each name}}` and `{{#if name}}` stand for what a failed validator tells. Only the prompts of
`failurePatterns` are filled so. In the prompt of a step, a section or an agent they stay as they are, and
the agent reads the braces.

Write `{uv-name}` for a value of the run, or move the text into a failure prompt.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] =
    &[super::closing(&[("Be kind. ", "Be kind to {{issue}}.")], &[("{{issue}}", "{uv-issue}")])];
