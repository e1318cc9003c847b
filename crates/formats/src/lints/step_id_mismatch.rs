//! Found in `climpt::older::check_flow::steps`, `climpt::registry::step_definition`, `climpt::registry::step_keys` and
//! `climpt::validation::definition`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "step-id-mismatch",
    page: "\
step-id-mismatch: a key and the `stepId` below it differ

A step is named by its key. Its `stepId` repeats that name and has to agree.

Make both equal. Where everything else names the step as its `stepId` does, the key is what was changed,
and the finding stands there.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""stepId": "initial.fix""#, r#""stepId": "initial.fx""#)],
    &[(r#""stepId": "initial.fx""#, r#""stepId": "initial.fix""#)],
)];
