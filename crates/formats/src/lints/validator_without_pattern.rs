//! Found in `climpt::validation::definition` and `climpt::validation::guarded_steps`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "validator-without-pattern",
    page: "\
validator-without-pattern: a validator has no failure pattern

When the validator fails, the prompt of its failure pattern tells the agent what to mend. `failurePattern`
is missing, or names a pattern that is not there.

Name one of `failurePatterns`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""failurePattern": "git-dirty""#, r#""failurePattern": "git-dirt""#)],
    &[(r#""git-dirt""#, r#""git-dirty""#)],
)];
