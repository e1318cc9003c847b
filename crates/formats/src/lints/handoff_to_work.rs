//! Found in `climpt::registry::gate_lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "handoff-to-work",
    page: "\
handoff-to-work: `handoff` leads to an ordinary work step

`handoff` hands the work to a closure step, or to the entry of another flow. This target is a work step that
no flow begins with.

Use `next` between work steps, or lead the handoff to a closure step.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[
        (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "repeat", "handoff"]"#),
        (r#""allowedIntents": ["next", "repeat"]"#, r#""allowedIntents": ["next", "repeat", "handoff"]"#),
        (
            r#""repeat": { "target": "initial.fix" } }"#,
            r#""repeat": { "target": "initial.fix" }, "handoff": { "target": "continuation.fix" } }"#,
        ),
    ],
    &[(r#""handoff": { "target": "continuation.fix" }"#, r#""handoff": { "target": "closure.fix" }"#)],
)];
