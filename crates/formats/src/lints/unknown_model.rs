use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-model",
    page: "\
unknown-model: a model is none of those that the format names

The format knows `sonnet`, `opus` and `haiku`. Any other name goes to the provider as it is written: one that
knows it takes that model, one that does not refuses the ask.

Correct the name, or say in cuegate.toml what the provider you run with calls it, as
`NAME = 'MODEL'` below `[models.PROVIDER]`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] =
    &[super::closing(&[(r#""sonnet""#, r#""sonet""#)], &[(r#""sonet""#, r#""opus""#)])];
