//! Found in `climpt::registry::inputs`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-input",
    page: "\
invalid-input: an input says nowhere where it comes from

`from` is the name of a step, a dot, and the name its data is left under: `initial.issue.approach`.

Correct `from`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""from": "initial.fix.approach""#, r#""from": "approach""#)],
    &[(r#""from": "approach""#, r#""from": "initial.fix.approach""#)],
)];
