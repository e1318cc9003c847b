//! Found in `climpt::schemas::step_id` and `climpt::older::answer_words`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unbound-step-id",
    page: "\
unbound-step-id: the schema does not hold an answer to its step

The schema of a step lists in `stepId` (`const`, or `enum`) which step it belongs to, so that an answer for
another step is refused at once. This one does not list the step. Where its file has one that is called like
the step, that one was meant, which is an error; so is any such schema in the \"complete\" generation, in which
no answer of the step could be right. In that generation a schema without `stepId`, or with one that takes any
text, is a warning.

Name the schema of the step, or list the step in `stepId`: `\"stepId\": { \"const\": … }` among the
`properties` of its schema.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[
            (
                r#""status": { "enum": ["ready", "blocked"] }"#,
                r#""status": { "enum": ["ready", "blocked"] }, "stepId": { "const": "continuation.fix" }"#,
            ),
            (r#""schema": "initial.fix""#, r#""schema": "continuation.fix""#),
        ],
        &[(
            r#""usesStdin": true,
      "outputSchemaRef": { "file": "fix.json", "schema": "continuation.fix" }"#,
            r#""usesStdin": true,
      "outputSchemaRef": { "file": "fix.json", "schema": "initial.fix" }"#,
        )],
    ),
    super::closing(
        &[(
            r#""status": { "enum": ["ready", "blocked"] }"#,
            r#""status": { "enum": ["ready", "blocked"] }, "stepId": { "const": "continuation" }"#,
        )],
        &[(r#"{ "const": "continuation" }"#, r#"{ "const": "continuation.fix" }"#)],
    ),
    super::complete(
        &[(r#""stepId": { "const": "initial.fix" }"#, r#""stepId": { "const": "initial.issue" }"#)],
        &[(r#""const": "initial.issue""#, r#""const": "initial.fix""#)],
    ),
    super::complete(
        &[(r#""stepId": { "const": "initial.fix" }"#, r#""stepId": { "type": "string" }"#)],
        &[(r#""stepId": { "type": "string" }"#, r#""stepId": { "enum": ["initial.fix"] }"#)],
    ),
];
