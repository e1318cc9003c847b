//! Found in `registry::answer_words`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "unbound-step-id",
    page: "\
unbound-step-id: the schema does not hold an answer to its step

The schema of a step lists in `stepId` (`const`, or `enum`) which step it belongs to, so that an answer for
another step is refused at once. This one has no such property, or one that takes any text (a warning), or
one that does not list the step (an error: no answer of this step could be right).

Add `\"stepId\": { \"const\": … }` with the name of the step to the `properties` of its schema.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::complete(
        &[(r#""stepId": { "const": "initial.fix" }"#, r#""stepId": { "const": "initial.issue" }"#)],
        &[(r#""const": "initial.issue""#, r#""const": "initial.fix""#)],
    ),
    super::complete(
        &[(r#""stepId": { "const": "initial.fix" }"#, r#""stepId": { "type": "string" }"#)],
        &[(r#""stepId": { "type": "string" }"#, r#""stepId": { "enum": ["initial.fix"] }"#)],
    ),
];
