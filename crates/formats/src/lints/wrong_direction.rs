use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "wrong-direction",
    page: "\
wrong-direction: an intent leads to a kind of step that it must not lead to

What it means: `next`, `jump` and `escalate` lead to work and verification steps, `handoff` to closure
steps or into another flow, `repeat` not from a work step to a closure step. `complete` (and
`completionSteps`) lead to `complete.*` steps. `closing` and `abort` end the run and have no target. As a
warning: `handoff` leads to a work step.

Why it matters: A transition in the wrong direction lets a run skip its verification, or turns an end into
another round.

Example:
    \"transitions\": {
      \"repeat\": { \"target\": \"closure.fix\" },
      \"handoff\": { \"target\": \"closure.fix\" }
    }

Fix: Lead the intent to another step, or use the intent that leads there. Write `\"target\": null` for an
intent that ends the run.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""repeat": { "target": "continuation.fix" }"#, r#""repeat": { "target": "closure.fix" }"#)],
        &[(
            r#""repeat": { "target": "closure.fix" }, "handoff""#,
            r#""repeat": { "target": "initial.fix" }, "handoff""#,
        )],
    ),
    super::twins_of_complete(
        &[(
            r#""next": { "target": "continuation.fix" },
        "repeat": { "target": "continuation.fix" }"#,
            r#""next": { "target": "complete.fix" },
        "repeat": { "target": "continuation.fix" }"#,
        )],
        &[(r#""next": { "target": "complete.fix" }"#, r#""next": { "target": "initial.fix" }"#)],
    ),
    super::twins_of_complete(
        &[(
            r#""repeat": { "target": "initial.fix" },
        "complete": { "target": "complete.fix" }"#,
            r#""repeat": { "target": "initial.fix" },
        "complete": { "target": "initial.fix" }"#,
        )],
        &[(r#""complete": { "target": "initial.fix" }"#, r#""complete": { "target": "complete.fix" }"#)],
    ),
    super::twins_of_closing(
        &[(r#""closing": { "target": null }"#, r#""closing": { "target": "initial.fix" }"#)],
        &[(r#""closing": { "target": "initial.fix" }"#, r#""closing": { "target": null }"#)],
    ),
    super::twins_of_closing(
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
