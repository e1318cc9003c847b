//! Found in `registry::beside_ref`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "beside-ref",
    page: "\
beside-ref: what stands beside a `$ref` has no force

In the draft of JSON Schema that step schemas are written in, a `$ref` stands for the whole schema.
Constraints beside it are dropped: an answer is neither asked to keep them nor checked for them.

Put the `$ref` into an `allOf`, and the rest beside that: `\"allOf\": [{ \"$ref\": … }], \"required\": …`.
(Notes like `description` are dropped as well, which is not reported.)
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[
        (
            r#""status": { "enum": ["ready", "blocked"] }"#,
            r##""status": { "$ref": "#/words", "minLength": 3 }"##,
        ),
        (r#""$defs": {"#, r#""words": { "enum": ["ready", "blocked"] }, "$defs": {"#),
    ],
    &[(
        r##"{ "$ref": "#/words", "minLength": 3 }"##,
        r##"{ "allOf": [{ "$ref": "#/words" }], "minLength": 3 }"##,
    )],
)];
