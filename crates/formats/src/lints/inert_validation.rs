//! Found in `climpt::validation::guarded_steps`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "inert-validation",
    page: "\
inert-validation: validators belong to a step that never completes the run

A key of `validationSteps` is a step, but one that cannot decide `closing`: no closure step, or one that does
not allow it. Only `closing` is guarded, so that these validators would never run.

Name the closure step, or let it decide `closing`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(
        r#""closure.fix": {
      "stepId": "closure.fix", "name": "Clean tree""#,
        r#""initial.fix": {
      "stepId": "initial.fix", "name": "Clean tree""#,
    )],
    &[(
        r#""initial.fix": {
      "stepId": "initial.fix", "name": "Clean tree""#,
        r#""closure.fix": {
      "stepId": "closure.fix", "name": "Clean tree""#,
    )],
)];
