//! Found in `climpt::prompts::unused`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-section",
    page: "\
unused-section: a section that no prompt includes

The text of a `section.*` step reaches an agent only where another prompt includes it with `{section.NAME}`.
No prompt does.

Include it, or remove the step. A step that is to be run needs `structuredGate`, `transitions` and
`outputSchemaRef`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] =
    &[super::closing(&[("{section.context}", "")], &[("Approach: ", "{section.context}Approach: ")])];
