//! Found in `climpt::registry::gate_lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "intent-without-transition",
    page: "\
intent-without-transition: an allowed intent leads nowhere

The step allows the intent, but `transitions` does not say where it leads. A run that came there could not
go on.

Add the transition, or take the intent out of `allowedIntents`. (`jump` may do without one, `abort` needs
none.)
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#", "repeat": { "target": "initial.fix" } }"#, " }")],
    &[(
        r#""next": { "target": "continuation.fix" }"#,
        r#""repeat": { "target": "initial.fix" }, "next": { "target": "continuation.fix" }"#,
    )],
)];
