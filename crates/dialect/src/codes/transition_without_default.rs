//! Found in `registry::jump` and `registry::select`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "transition-without-default",
    page: "\
transition-without-default: a conditional transition does not cover every value

The schema allows values that `targets` does not name, or answers without the value, and there is no
`default`. Such an answer is a bad answer.

Add `default`; or list in the schema's `enum` exactly the values that `targets` names, and the field in
`required`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(
            r#""repeat": { "target": "continuation.fix" }"#,
            r#""repeat": { "condition": "status", "targets": { "ready": "initial.fix" } }"#,
        )],
        &[(r#""ready": "initial.fix""#, r#""ready": "initial.fix", "default": "continuation.fix""#)],
    ),
    // An answer without the value.
    super::closing(
        &[(
            r#""repeat": { "target": "continuation.fix" }"#,
            r#""repeat": { "condition": "status", "targets": { "ready": "initial.fix", "blocked": "continuation.fix" } }"#,
        )],
        &[(
            r#""continuation.fix": {
      "type": "object", "required": ["next_action"]"#,
            r#""continuation.fix": {
      "type": "object", "required": ["next_action", "status"]"#,
        )],
    ),
];
