//! Found in `climpt::older::stages`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "incomplete-domain",
    page: "\
incomplete-domain: a domain lacks one of its three stages

What a registry works on is a domain: the word behind the stage in `initial.issue`, `continuation.issue`,
`complete.issue`. Every domain has all three stages, so that every flow has the same simple shape. A run is
possible without.

Add the step that is missing, or remove the domain.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::complete(
    &[
        (
            r#""continuation.fix": {
      "stepId": "continuation.fix""#,
            r#""continuation.mend": {
      "stepId": "continuation.mend""#,
        ),
        (r#"["initial.fix", "continuation.fix"]"#, r#"["continuation.mend", "continuation.fix"]"#),
        (
            r#""next": { "target": "continuation.fix" },
        "repeat": { "target": "initial.fix" }"#,
            r#""next": { "target": "continuation.mend" },
        "repeat": { "target": "initial.fix" }"#,
        ),
        (
            r#""next": { "target": "continuation.fix" },
        "repeat": { "target": "continuation.fix" }"#,
            r#""next": { "target": "continuation.mend" },
        "repeat": { "target": "continuation.mend" }"#,
        ),
    ],
    &[
        (
            r#""continuation.mend": {
      "stepId": "continuation.mend""#,
            r#""continuation.fix": {
      "stepId": "continuation.fix""#,
        ),
        (
            r#""next": { "target": "continuation.mend" },
        "repeat": { "target": "initial.fix" }"#,
            r#""next": { "target": "continuation.fix" },
        "repeat": { "target": "initial.fix" }"#,
        ),
        (
            r#""next": { "target": "continuation.mend" },
        "repeat": { "target": "continuation.mend" }"#,
            r#""next": { "target": "continuation.fix" },
        "repeat": { "target": "continuation.fix" }"#,
        ),
    ],
)];
