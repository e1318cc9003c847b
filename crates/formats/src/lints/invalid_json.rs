use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-json",
    page: "\
invalid-json: a file is not JSON

Definitions are strict JSON: names and texts in double quotes, a comma between entries and none after the
last, no comments.

Correct the place that the finding shows.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""displayName": "Fixer","#, r#""displayName": "Fixer""#)],
    &[(r#""displayName": "Fixer""#, r#""displayName": "Fixer","#)],
)];
