use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "impossible-schema",
    page: "\
impossible-schema: no answer fits the schema of a step

What it means: The schema rejects every answer. It requires a property that it does not allow, has an empty
`enum` or one whose values the rest of it rejects, combines types that exclude each other, requires a
length that its `pattern` cannot have or more items than there can be, or has bounds that contradict each
other. The finding names the part as a pointer into the schema.

Why it matters: The agent is asked again for an answer that fits, and then the run fails.

Example:
    \"action\": { \"type\": \"string\", \"enum\": [\"next\", \"repeat\"], \"minLength\": 20 }

Fix: Correct that part. Parts that no answer needs may be impossible.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "repeat"], "minLength": 20"#)],
        &[(r#", "minLength": 20"#, "")],
    ),
    super::twins_of_complete(
        &[(r#""enum": ["next", "wait", "complete"]"#, r#""enum": []"#)],
        &[(r#""enum": []"#, r#""enum": ["next", "wait", "complete"]"#)],
    ),
];
