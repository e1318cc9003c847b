//! Found in `climpt::validation::lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-validator",
    page: "\
unknown-validator: a validation names a validator that is not there

`validationConditions` name entries of `validators`. This one does not exist, so that it could never pass.

Correct the name, or add the validator.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""validator": "git-clean""#, r#""validator": "git-cleen""#)],
    &[("git-cleen", "git-clean")],
)];
