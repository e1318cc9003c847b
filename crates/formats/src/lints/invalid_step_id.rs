//! Found in `climpt::older::check_flow::steps`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-step-id",
    page: "\
invalid-step-id: a step of a check flow has no proper id

Steps of a check flow are called `s_` and four to eight hexadecimal digits, such as `s_a8f3`: names that stay
the same when steps are put between others or change places.

Call it so, in its key, its `id` and in every transition that leads to it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::check_flow(
    &[
        (r#""s_b2c1de": {"#, r#""s_xyz": {"#),
        (r#""id": "s_b2c1de""#, r#""id": "s_xyz""#),
        (r#""next": "s_b2c1de""#, r#""next": "s_xyz""#),
    ],
    &[
        (r#""s_xyz": {"#, r#""s_0a1b": {"#),
        (r#""id": "s_xyz""#, r#""id": "s_0a1b""#),
        (r#""next": "s_xyz""#, r#""next": "s_0a1b""#),
    ],
)];
