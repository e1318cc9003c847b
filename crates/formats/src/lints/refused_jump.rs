//! Found in `climpt::registry::jump`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "refused-jump",
    page: "\
refused-jump: an answer that fits can ask for a jump that is refused

The schema of the step lists a step that its `jump` may not lead to: closure steps, steps that the
transition does not name, names of no step. Or it lets an answer leave out where to jump, and there is no
step to jump to then. Such an answer is a bad answer: it is asked again, and then the run has failed.

List in the schema the steps that are allowed, and require the field, or name a target in
`transitions.jump`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[
            (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
            (
                r#""allowedIntents": ["next", "repeat"]"#,
                r#""allowedIntents": ["next", "jump"], "targetField": "next_action.reason""#,
            ),
            (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
        ],
        &[("next_action.reason", "plan.approach")],
    ),
    super::closing(
        &[
            (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
            (
                r#""allowedIntents": ["next", "repeat"]"#,
                r#""allowedIntents": ["next", "jump"], "targetField": "plan.approach""#,
            ),
            (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
            (
                r#""approach": { "type": "string" }"#,
                r#""approach": { "enum": ["continuation.fix", "closure.fix"] }"#,
            ),
        ],
        &[(r#"["continuation.fix", "closure.fix"]"#, r#"["continuation.fix"]"#)],
    ),
];
