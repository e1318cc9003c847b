//! Found in `climpt::prompts::placeholders`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-section",
    page: "\
unknown-section: a prompt includes a section that is not there

`{section.NAME}` stands for the prompt of the step `section.NAME`, which the registry does not have.

Add the step, or correct the name.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[("{section.context}", "{section.contxt}")],
    &[("{section.contxt}", "{section.context}")],
)];
