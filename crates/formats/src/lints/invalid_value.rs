use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-value",
    page: "\
invalid-value: a value is not allowed

What it means: The value has the right type, but the format does not allow it: an unknown word, a number
out of range, an empty text, an unusable path, an input whose `from` is not `STEP.NAME`, or (as a warning)
a comma in an item of an array default, where commas separate the items.

Why it matters: The run would need a value that the definition does not give.

Example:
    \"issue\": { \"type\": \"numer\", \"description\": \"The issue\", \"cli\": \"--issue\" }

Fix: Write an allowed value; the hint names the nearest one or the form that is expected.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""type": "number""#, r#""type": "numer""#)],
        &[(r#""type": "numer""#, r#""type": "number""#)],
    ),
    super::twins_of_piece(
        &[("permission_mode: edit", "permission_mode: write")],
        &[("permission_mode: write", "permission_mode: full")],
    ),
    super::twins_of_closing(
        &[(
            r#""type": "string", "description": "Base", "default": "main""#,
            r#""type": "array", "description": "Base", "default": ["a,b"]"#,
        )],
        &[(r#"["a,b"]"#, r#"["a", "b"]"#)],
    ),
    super::twins_of_closing(
        &[(r#""from": "initial.fix.approach""#, r#""from": "approach""#)],
        &[(r#""from": "approach""#, r#""from": "initial.fix.approach""#)],
    ),
];
