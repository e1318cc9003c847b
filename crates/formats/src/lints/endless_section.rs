use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "endless-section",
    page: "\
endless-section: a section includes itself

Directly or through other sections a section includes itself, or a prompt includes more than 64 sections.
The prompt would have no end.

Remove the inclusion.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[("Be kind. ", "Be kind. {section.context}")],
    &[("Be kind. {section.context}", "Be kind.")],
)];
