//! Found in `climpt::registry::gate_lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "end-with-target",
    page: "\
end-with-target: an intent that ends the run has a target

`closing` completes the run, `abort` gives it up. Neither leads to a step.

Write `\"target\": null`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""closing": { "target": null }"#, r#""closing": { "target": "initial.fix" }"#)],
    &[(r#""closing": { "target": "initial.fix" }"#, r#""closing": { "target": null }"#)],
)];
