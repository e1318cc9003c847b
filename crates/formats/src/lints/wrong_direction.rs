//! Found in `climpt::registry::gate_lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "wrong-direction",
    page: "\
wrong-direction: an intent leads to a kind of step that it must not lead to

`next` and `jump` lead to work and verification steps, `escalate` too, `handoff` to closure steps or into
another flow, `repeat` not from work into closure. Otherwise a run could skip its verification.

Lead the intent elsewhere, or use the intent that is meant for it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""repeat": { "target": "continuation.fix" }"#, r#""repeat": { "target": "closure.fix" }"#)],
        &[(
            r#""repeat": { "target": "closure.fix" }, "handoff""#,
            r#""repeat": { "target": "initial.fix" }, "handoff""#,
        )],
    ),
    super::complete(
        &[(
            r#""next": { "target": "continuation.fix" },
        "repeat": { "target": "continuation.fix" }"#,
            r#""next": { "target": "complete.fix" },
        "repeat": { "target": "continuation.fix" }"#,
        )],
        &[(r#""next": { "target": "complete.fix" }"#, r#""next": { "target": "initial.fix" }"#)],
    ),
];
