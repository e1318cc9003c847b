use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-key",
    page: "\
unknown-key: a key is unknown

Nothing reads this key. Most often it is a typing error, and what was meant has no effect.

In a schema it is a keyword that JSON Schema does not have, like one that it has and with such a value:
answers are not held to it. In the `responseFormat` of a check any key is a field of its answers; one that is
nearly `result` or `message`, which are all that is read of them, is a warning. Where something is missing
beside an unknown key, both are one finding.

Correct the key; the hint names the nearest known one. Notes belong into `description`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""usesStdin": true"#, r#""usesStdin": true, "useStdin": true"#)],
        &[(r#", "useStdin": true"#, "")],
    ),
    super::check_flow(
        &[(r#""message": "string""#, r#""messag": "string""#)],
        &[(r#""messag": "string""#, r#""message": "string""#)],
    ),
    super::piece(
        &[("permission_mode: edit", "permision_mode: edit")],
        &[("permision_mode", "permission_mode")],
    ),
];
