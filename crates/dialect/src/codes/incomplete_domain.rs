//! Found in `registry::stages`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "incomplete-domain",
    page: "\
incomplete-domain: a domain lacks one of its three stages

What a registry works on is a domain: the word behind the stage in `initial.issue`, `continuation.issue`,
`complete.issue`. Every domain has all three stages, so that every flow has the same simple shape. A run is
possible without.

Add the step that is missing, or remove the domain.
",
};
