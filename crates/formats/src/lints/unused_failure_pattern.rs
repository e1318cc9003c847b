//! Found in `climpt::validation::failure_values`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-failure-pattern",
    page: "\
unused-failure-pattern: a failure pattern that no validator names

A failure pattern chooses the prompt for the failure of the validators whose `failurePattern` it is. There is
none.

Name it in a validator, or remove it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(
        r#""failurePatterns": {"#,
        r#""failurePatterns": { "spare": { "description": "x", "edition": "failed" },"#,
    )],
    &[(r#" "spare": { "description": "x", "edition": "failed" },"#, "")],
)];
