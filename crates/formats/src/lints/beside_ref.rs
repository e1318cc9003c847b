//! Found in `climpt::schemas::beside_ref`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "beside-ref",
    page: "\
beside-ref: what stands beside a `$ref` has no force

In the drafts of JSON Schema that step schemas are mostly written in, and where a file names none,
a `$ref` stands for the whole schema. Constraints beside it are dropped: an answer is neither asked to
keep them nor checked for them. In a file whose `$schema` names draft 2019-09 or 2020-12 both hold, and
nothing is said.

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
