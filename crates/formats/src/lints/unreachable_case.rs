//! Found in `climpt::registry::conditional_transitions`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unreachable-case",
    page: "\
unreachable-case: a target is never selected

The step's schema lists every value that can stand in the field that selects the target, and this one is not
among them.

Add the value to the schema's `enum`, or remove the target.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(
        r#""repeat": { "target": "continuation.fix" }"#,
        r#""repeat": { "condition": "status", "targets": { "redy": "initial.fix", "default": "continuation.fix" } }"#,
    )],
    &[(r#""redy""#, r#""ready""#)],
)];
