use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "intent-not-of-kind",
    page: "\
intent-not-of-kind: a step allows an intent that its kind does not have

What it means: Work steps can decide `next`, `repeat`, `jump` and `handoff`; verification steps `next`,
`repeat`, `jump` and `escalate`; closure steps `closing` and `repeat`. Every step can decide `abort`.

Why it matters: Only a closure step completes a run, and a verification step cannot hand off past the
verification. Another intent would break these rules.

Example:
    \"stepKind\": \"work\",
    \"structuredGate\": { \"allowedIntents\": [\"next\", \"repeat\", \"escalate\"] }

Fix: Take the intent out of `allowedIntents`, or correct `stepKind`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_closing(
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
