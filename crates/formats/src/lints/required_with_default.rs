//! Found in `climpt::registry::inputs` and `climpt::agent::parameters`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "required-with-default",
    page: "\
required-with-default: something is required and has a default

A required parameter has to be given, so that its default is never used. An input of a step with a default is
never missing, so that requiring it has no effect.

Remove `required`, or the default.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""default": "main""#, r#""default": "main", "required": true"#)],
    &[(r#""default": "main", "#, "")],
)];
