//! Found in `takt::sections`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-facet",
    page: "\
unused-facet: a text that no movement uses

An entry of `personas`, `policies`, `knowledge`, `instructions` or `report_formats` is named by no
movement, no report and no judge. (A report in the form `Label: path` names no format.)

Name it where it was meant, or remove it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[("    knowledge: domain\n", "")],
    &[("    policy: [coding, careful]\n", "    policy: [coding, careful]\n    knowledge: [domain]\n")],
)];
