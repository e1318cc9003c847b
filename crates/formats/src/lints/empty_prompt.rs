//! Found in `takt::sections` and `climpt::prompts::compile`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "empty-prompt",
    page: "\
empty-prompt: a prompt file holds no prompt

The file is empty, or holds nothing but a front matter, which is not part of the prompt. An agent would be
told nothing.

Write the prompt, or remove what uses the file.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[("Be kind. ", "")],
        &[("", "//- .agent/fixer/prompts/steps/section/context/f_default.md\nBe brief.\n")],
    ),
    super::piece(
        &[("Money is counted in cents.", "")],
        &[("", "//- .takt/knowledge/domain.md\nMoney is counted in cents.\n")],
    ),
];
