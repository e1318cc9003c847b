//! Found in `values::json::fields`, `takt::misplaced`, `takt::movement`, `takt::sections`, `climpt::registry::gate_lowering`,
//! `climpt::registry::generation`, `climpt::load`, `climpt::prompts::path_template`, `climpt::registry::step_definition`, `climpt::registry::transition` and
//! `climpt::validation::definition`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-value",
    page: "\
invalid-value: a value is not allowed

The value has the right type, but is none of those that the format allows: an unknown word, a number out of
range, an empty text, a path that is none.

Correct the value. The hint names the nearest one there is.
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
];
