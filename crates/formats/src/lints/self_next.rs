use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "self-next",
    page: "\
self-next: a step leads to itself with `next`

What it means: The target of `next` (in a TAKT workflow, of a rule) is the step itself.

Why it matters: In a registry this works, but `repeat` is the intent for another round. In a check flow,
`next` restarts all counters, so nothing limits the rounds. In a TAKT workflow the step gets the same
instruction again, with nothing new but its last answer, and each round costs an iteration.

Example:
    - name: implement
      rules:
        - condition: Cannot proceed
          next: implement

Fix: In a registry use `repeat`. In a check flow use `retry` with `maxRetries`. In a TAKT workflow lead to a
step that does what is missing, or ask a person with `requires_user_input: true`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[
            (r#""enum": ["repeat", "handoff"]"#, r#""enum": ["next", "handoff"]"#),
            (r#""allowedIntents": ["repeat", "handoff"]"#, r#""allowedIntents": ["next", "handoff"]"#),
            (r#""repeat": { "target": "continuation.fix" }"#, r#""next": { "target": "continuation.fix" }"#),
        ],
        &[
            (r#""enum": ["next", "handoff"]"#, r#""enum": ["repeat", "handoff"]"#),
            (r#""allowedIntents": ["next", "handoff"]"#, r#""allowedIntents": ["repeat", "handoff"]"#),
            (
                r#""next": { "target": "continuation.fix" }, "handoff""#,
                r#""repeat": { "target": "continuation.fix" }, "handoff""#,
            ),
        ],
    ),
    super::twins_of_check_flow(
        &[(r#""onFail": { "fallback": "s_a8f3" }"#, r#""onFail": { "next": "s_b2c1de" }"#)],
        &[(r#""onFail": { "next": "s_b2c1de" }"#, r#""onFail": { "retry": true, "maxRetries": 1 }"#)],
    ),
    super::twins_of_piece(
        &[(
            "      - condition: Cannot proceed\n        next: ABORT",
            "      - condition: Cannot proceed\n        next: implement",
        )],
        &[(
            "      - condition: Cannot proceed\n        next: implement",
            "      - condition: Cannot proceed\n        requires_user_input: true\n        next: implement",
        )],
    ),
];
