//! Found in `climpt::schemas::answer`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "target-not-in-schema",
    page: "\
target-not-in-schema: the target of a jump is a field that the answer cannot have

`targetField` is where an answer of this step names the target of its `jump`. The step's schema is closed when
it is sent: an object that has `properties` and does not say `\"additionalProperties\": true` holds only those.
No answer can have this field, so that a jump takes the default target, or is a bad answer where there is
none.

Add the field to the schema, or correct the path.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[
        (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
        (
            r#""allowedIntents": ["next", "repeat"]"#,
            r#""allowedIntents": ["next", "jump"], "targetField": "next_action.to""#,
        ),
        (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
    ],
    &[("next_action.to", "plan.approach")],
)];
