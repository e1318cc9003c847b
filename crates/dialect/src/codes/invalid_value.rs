//! Found in `json::fields`, `piece::misplaced`, `piece::movement`, `piece::sections`, `registry::gate`,
//! `registry::generation`, `registry::load`, `registry::path_template`, `registry::step`, `registry::transition` and
//! `registry::validation`.

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
