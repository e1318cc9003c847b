use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "intent-not-of-kind",
    page: "\
intent-not-of-kind: a step allows an intent that its kind does not have

Work steps decide `next`, `repeat`, `jump`, `handoff`; verification steps `next`, `repeat`, `jump`,
`escalate`; closure steps `closing`, `repeat`. `abort` is always allowed. Only a closure step completes the
run, and verification cannot hand off past it.

Take the intent out of `allowedIntents`, or correct `stepKind`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[
        (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "repeat", "escalate"]"#),
        (r#""allowedIntents": ["next", "repeat"]"#, r#""allowedIntents": ["next", "repeat", "escalate"]"#),
        (
            r#""repeat": { "target": "initial.fix" } }"#,
            r#""repeat": { "target": "initial.fix" }, "escalate": { "target": "continuation.fix" } }"#,
        ),
    ],
    &[
        (r#""next", "repeat", "escalate"] },"#, r#""next", "repeat", "jump"] },"#),
        (
            r#""allowedIntents": ["next", "repeat", "escalate"]"#,
            r#""allowedIntents": ["next", "repeat", "jump"]"#,
        ),
        (r#""escalate": {"#, r#""jump": {"#),
    ],
)];
