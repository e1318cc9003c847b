//! Found in `climpt::registry::gate_lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "transition-without-intent",
    page: "\
transition-without-intent: a transition that is never taken

The step has a transition for an intent that it does not allow.

Add the intent to `allowedIntents` and to the schema, or remove the transition.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[
        (r#""allowedIntents": ["repeat", "handoff"]"#, r#""allowedIntents": ["handoff"]"#),
        (r#""enum": ["repeat", "handoff"]"#, r#""enum": ["handoff"]"#),
    ],
    &[(r#""repeat": { "target": "continuation.fix" }, "#, "")],
)];
