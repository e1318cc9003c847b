use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-json",
    page: "\
invalid-json: a file is not valid JSON

What it means: Definitions are strict JSON: keys and texts in double quotes, a comma between entries and
none after the last one, no comments.

Why it matters: The file cannot be read, so nothing in it can be checked or run.

Example:
    \"displayName\": \"Fixer\"
    \"description\": \"Fixes an issue\"

Fix: Correct the place that the finding shows; here a comma is missing after `\"Fixer\"`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_closing(
    &[(r#""displayName": "Fixer","#, r#""displayName": "Fixer""#)],
    &[(r#""displayName": "Fixer""#, r#""displayName": "Fixer","#)],
)];
