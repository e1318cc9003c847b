//! Found in `climpt::validation::failure_values`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-failure-param",
    page: "\
unused-failure-param: a value is taken out of a validator's output for nobody

`extractParams` of a validator and `params` of its failure pattern are for the failure prompt, and no failure
prompt of this validator reads the value. Where `onFailure` says `abort` or `skip`, or allows no attempt,
there is no failure prompt at all.

Write `{{name}}` in the prompt, or remove it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(
        r#""changedFiles": "parseChangedFiles""#,
        r#""changedFiles": "parseChangedFiles", "branch": "stdout""#,
    )],
    &[("Commit for #{uv-issue}", "Commit {{branch}}")],
)];
