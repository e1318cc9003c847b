//! Found in `climpt::registry::gate_lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "no-fallback",
    page: "\
no-fallback: `failFast` is false, but there is no `fallbackIntent`

Nothing says what an unreadable intent means instead, so that it ends the run all the same.

Add `fallbackIntent`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""failFast": false, "fallbackIntent": "repeat""#, r#""failFast": false"#)],
    &[(r#""failFast": false"#, r#""failFast": false, "fallbackIntent": "closing""#)],
)];
