use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "endless-section",
    page: "\
endless-section: a section includes itself

What it means: A section includes itself, directly or through other sections, or a prompt includes more
than 64 sections.

Why it matters: Such a prompt would have no end, so Cuegate cannot build it.

Example:
    prompts/steps/section/context/f_default.md:
        Be kind. {section.context}

Fix: Remove the `{section.NAME}` that closes the circle, or include fewer sections.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_closing(
    &[("Be kind. ", "Be kind. {section.context}")],
    &[("Be kind. {section.context}", "Be kind.")],
)];
