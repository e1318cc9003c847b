use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-value",
    page: "\
invalid-value: a value is not allowed

The value has the right type, but is none of those that the format allows: an unknown word, a number out of
range, an empty text, a path that is none.

Correct the value. The hint names the nearest one there is.

- an item of a default holds a comma
- an input says nowhere where it comes from
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""type": "number""#, r#""type": "numer""#)],
        &[(r#""type": "numer""#, r#""type": "number""#)],
    ),
    super::piece(
        &[("permission_mode: edit", "permission_mode: write")],
        &[("permission_mode: write", "permission_mode: full")],
    ),
    super::closing(
        &[(
            r#""type": "string", "description": "Base", "default": "main""#,
            r#""type": "array", "description": "Base", "default": ["a,b"]"#,
        )],
        &[(r#"["a,b"]"#, r#"["a", "b"]"#)],
    ),
    super::closing(
        &[(r#""from": "initial.fix.approach""#, r#""from": "approach""#)],
        &[(r#""from": "approach""#, r#""from": "initial.fix.approach""#)],
    ),
];
