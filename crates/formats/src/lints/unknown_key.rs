use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-key",
    page: "\
unknown-key: a key is unknown

What it means: The format does not have this key at this place; most often it is a typing error. In a JSON
Schema it is no keyword but looks like one. In the `responseFormat` of a check, where any key is a field of
the answer, it is a warning about a key that is nearly `result` or `message`.

Why it matters: Nothing reads the key, so the value that was meant has no effect: a misspelt
`permission_mode` would change what an agent may do, and a misspelt schema keyword would check nothing. A
required key that is missing beside it belongs to the same finding.

Example:
    - name: implement
      edit: true
      permision_mode: edit

Fix: Correct the key; the hint names the nearest known one or the object it belongs into. Write notes into
`description`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""usesStdin": true"#, r#""usesStdin": true, "useStdin": true"#)],
        &[(r#", "useStdin": true"#, "")],
    ),
    super::twins_of_check_flow(
        &[(r#""message": "string""#, r#""messag": "string""#)],
        &[(r#""messag": "string""#, r#""message": "string""#)],
    ),
    super::twins_of_piece(
        &[("permission_mode: edit", "permision_mode: edit")],
        &[("permision_mode", "permission_mode")],
    ),
];
