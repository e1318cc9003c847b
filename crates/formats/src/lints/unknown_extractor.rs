//! Found in `climpt::validation::definition`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-extractor",
    page: "\
unknown-extractor: an extractor is not there

`extractParams` name what is taken out of a validator's output. There is no extractor of this name, so that
the value stays empty in the failure prompt.

Correct the name, or use `stdout`, `stderr` or `errorOutput`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""parseChangedFiles""#, r#""parseChanges""#)],
    &[(r#""parseChanges""#, r#""parseUntrackedFiles""#)],
)];
