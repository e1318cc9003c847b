//! Found in `climpt::registry::gate_lowering` and `climpt::registry::jump`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "inert-fallback",
    page: "\
inert-fallback: `fallbackIntent` has no effect

An unreadable intent ends the run unless `failFast` is false. `fallbackIntent` alone does nothing. Nor does
one that is `jump` where only the answer says where to: an answer that cannot be used names no step.

Add `\"failFast\": false`, or remove `fallbackIntent`. Give `transitions.jump.target`, or fall back to another
intent.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""failFast": false, "fallbackIntent": "repeat""#, r#""fallbackIntent": "repeat""#)],
    &[(r#""fallbackIntent": "repeat""#, r#""failFast": false, "fallbackIntent": "repeat""#)],
)];
