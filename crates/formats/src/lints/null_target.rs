//! Found in `climpt::registry::gate_lowering` and `climpt::registry::transition`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "null-target",
    page: "\
null-target: a transition leads nowhere

Only `closing` of a closure step has `\"target\": null`: it completes the run. Everything else leads to a
step.

Name the step.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""repeat": { "target": "continuation.fix" }"#, r#""repeat": { "target": null }"#)],
    &[(r#""repeat": { "target": null }"#, r#""repeat": { "target": "initial.fix" }"#)],
)];
