use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-model",
    page: "\
unknown-model: the format does not list a model

What it means: The format lists `sonnet`, `opus` and `haiku`. Another name goes to the provider as it is
written.

Why it matters: A provider that knows the name uses that model. Any other provider rejects the ask.

Example:
    \"defaultModel\": \"sonet\"

Fix: Correct the name, or say in cuegate.toml how your provider calls it: `NAME = 'MODEL'` below
`[models.PROVIDER]`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] =
    &[super::twins_of_closing(&[(r#""sonnet""#, r#""sonet""#)], &[(r#""sonet""#, r#""opus""#)])];
