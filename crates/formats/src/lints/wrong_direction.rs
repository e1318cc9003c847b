use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "wrong-direction",
    page: "\
wrong-direction: an intent leads to a kind of step that it must not lead to

`next` and `jump` lead to work and verification steps, `escalate` too, `handoff` to closure steps or into
another flow, `repeat` not from work into closure. Otherwise a run could skip its verification.

Lead the intent elsewhere, or use the intent that is meant for it.

- `complete` does not lead to a step that completes the run
- an intent that ends the run has a target
- `handoff` leads to an ordinary work step
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
    super::complete(
        &[(
            r#""repeat": { "target": "initial.fix" },
        "complete": { "target": "complete.fix" }"#,
            r#""repeat": { "target": "initial.fix" },
        "complete": { "target": "initial.fix" }"#,
        )],
        &[(r#""complete": { "target": "initial.fix" }"#, r#""complete": { "target": "complete.fix" }"#)],
    ),
    super::closing(
        &[(r#""closing": { "target": null }"#, r#""closing": { "target": "initial.fix" }"#)],
        &[(r#""closing": { "target": "initial.fix" }"#, r#""closing": { "target": null }"#)],
    ),
    super::closing(
        &[
            (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "repeat", "handoff"]"#),
            (r#""allowedIntents": ["next", "repeat"]"#, r#""allowedIntents": ["next", "repeat", "handoff"]"#),
            (
                r#""repeat": { "target": "initial.fix" } }"#,
                r#""repeat": { "target": "initial.fix" }, "handoff": { "target": "continuation.fix" } }"#,
            ),
        ],
        &[(r#""handoff": { "target": "continuation.fix" }"#, r#""handoff": { "target": "closure.fix" }"#)],
    ),
];
