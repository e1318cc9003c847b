//! Found in `climpt::agent::parameters`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "duplicate-flag",
    page: "\
duplicate-flag: two parameters have the same flag

Both are given with the same flag on the command line, so that neither can be told from the other.

Give one of them another `cli`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""cli": "--base-branch""#, r#""cli": "--issue""#)],
    &[(r#""default": "main", "cli": "--issue""#, r#""default": "main", "cli": "--base""#)],
)];
