//! Found in `climpt::registry::definition`, `climpt::validation::guarded_steps`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-step",
    page: "\
unknown-step: validators belong to a step that is not there

A key of `validationSteps` is the closure step whose `closing` its validators guard. There is no such step,
so that they would never run.

Correct the key.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(
        r#""closure.fix": {
      "stepId": "closure.fix", "name": "Clean tree""#,
        r#""closure.fx": {
      "stepId": "closure.fx", "name": "Clean tree""#,
    )],
    &[(
        r#""closure.fx": {
      "stepId": "closure.fx""#,
        r#""closure.fix": {
      "stepId": "closure.fix""#,
    )],
)];
