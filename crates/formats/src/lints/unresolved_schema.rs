use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unresolved-schema",
    page: "\
unresolved-schema: the schema of a step cannot be resolved

The file is missing, holds nothing under that name, refers to something that is not there or to itself, or
is no valid JSON Schema. An answer could not be checked.

Correct the reference or the schema. A bare name is looked up in `definitions`, `$defs` and the top level;
`#/$defs/name` is a pointer.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""file": "fix.json", "schema": "initial.fix""#, r#""file": "fix.json", "schema": "initial.fx""#)],
    &[(r#""schema": "initial.fx""#, r##""schema": "#/$defs/initial.fix""##)],
)];
