use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "self-next",
    page: "\
self-next: `next` leads to the same step

The step goes on to itself.

In a registry that works, but `repeat` says so: use `repeat` for another round of the same step. In a check
flow everything that is counted begins anew then, so that nothing bounds the rounds of the step: use `retry`
with `maxRetries`. In a piece a rule that leads back to its own movement asks the same again, with nothing new
but the answer before, and costs an iteration each time: lead to a movement that does what is missing, or let
the rule ask a person with `requires_user_input`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
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
    super::check_flow(
        &[(r#""onFail": { "fallback": "s_a8f3" }"#, r#""onFail": { "next": "s_b2c1de" }"#)],
        &[(r#""onFail": { "next": "s_b2c1de" }"#, r#""onFail": { "retry": true, "maxRetries": 1 }"#)],
    ),
    super::piece(
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
