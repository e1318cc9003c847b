//! Found in `climpt::validation::lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "undeclared-failure-param",
    page: "\
undeclared-failure-param: a failure prompt reads what its validator does not yield

The failure pattern or its prompt uses a value that `extractParams` of the validator does not have, so that
it stays empty.

Add it to `extractParams`, or remove it from the prompt.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[("Commit for #{uv-issue}", "Commit {{branch}}")],
    &[(
        r#""changedFiles": "parseChangedFiles""#,
        r#""changedFiles": "parseChangedFiles", "branch": "stdout""#,
    )],
)];
