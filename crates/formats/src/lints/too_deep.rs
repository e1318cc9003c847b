use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "too-deep",
    page: "\
too-deep: objects and lists are nested more than 64 levels deep

What it means: Objects and lists in this file contain each other more than 64 levels deep. Definitions need
about a dozen levels.

Why it matters: The file cannot be read, so nothing in it can be checked or run.

Example:
    \"enum\": [\"ready\", [[[[[[…]]]]]]]

Fix: Look for a closing bracket that is missing, or for a generator that went wrong.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(
            r#""status": { "enum": ["ready", "blocked"] }"#,
            r#""status": { "enum": ["ready", [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]] }"#,
        )],
        &[(
            "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
            "[[]]",
        )],
    ),
    super::twins_of_piece(
        &[(
            "description: A piece with everything",
            "description: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
        )],
        &[(
            "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
            "A piece",
        )],
    ),
];
