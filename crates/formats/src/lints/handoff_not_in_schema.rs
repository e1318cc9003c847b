//! Found in `climpt::schemas::answer`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "handoff-not-in-schema",
    page: "\
handoff-not-in-schema: a step is to leave data that its answer cannot have

A path of `handoffFields` leads to no field of the step's schema. Later steps would wait for it in vain.
Where the author left a nested object open it is a warning: schemas are closed when they are sent, so that
the field stays absent.

Add the field to the schema, or correct the path.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""handoffFields": ["status"]"#, r#""handoffFields": ["state"]"#)],
        &[(r#""handoffFields": ["state"]"#, r#""handoffFields": ["status"]"#)],
    ),
    super::closing(
        &[(r#"["plan.approach"]"#, r#"["plan.approach", "plan.risks"]"#)],
        &[(
            r#""approach": { "type": "string" }"#,
            r#""approach": { "type": "string" }, "risks": { "type": "string" }"#,
        )],
    ),
];
