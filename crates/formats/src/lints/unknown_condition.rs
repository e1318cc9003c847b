//! Found in `climpt::registry::conditional_transitions`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-condition",
    page: "\
unknown-condition: a condition names data that no step leaves

`condition` is the name of a handed-on value: the last segment of one of `handoffFields`, or the whole path
where that is ambiguous. No step leaves a value of this name, so that the condition is never decided: with a
`default` that is always taken (a warning), without one the run cannot go on (an error).

Add the field to `handoffFields`, or correct the name.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[
            (
                r#""repeat": { "target": "continuation.fix" }"#,
                r#""repeat": { "condition": "stats", "targets": { "ready": "initial.fix", "blocked": "continuation.fix" } }"#,
            ),
            (
                r#""continuation.fix": {
      "type": "object", "required": ["next_action"]"#,
                r#""continuation.fix": {
      "type": "object", "required": ["next_action", "status"]"#,
            ),
        ],
        &[(r#""stats""#, r#""status""#)],
    ),
    super::closing(
        &[(
            r#""repeat": { "target": "continuation.fix" }"#,
            r#""repeat": { "condition": "stats", "targets": { "ready": "initial.fix", "default": "continuation.fix" } }"#,
        )],
        &[(r#""stats""#, r#""status""#)],
    ),
];
