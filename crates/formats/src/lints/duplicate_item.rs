use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "duplicate-item",
    page: "\
duplicate-item: a list names the same item twice

What it means: A list whose order has no meaning holds the same name twice, or the rules of a parallel
member hold the same condition twice; the second one has no effect. Or two rules of a step have the
same condition (upper and lower case count as equal) and lead to different places.

Why it matters: Often another name was meant, and that one is missing. With two equal conditions nothing
decides which rule holds.

Example:
    \"allowedIntents\": [\"next\", \"repeat\", \"next\"]

Fix: Remove the repetition, or write the name that was meant. Give rules that lead to different places
conditions that differ.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""allowedIntents": ["next", "repeat"]"#, r#""allowedIntents": ["next", "repeat", "next"]"#)],
        &[(r#"["next", "repeat", "next"]"#, r#"["next", "repeat"]"#)],
    ),
    super::twins_of_piece(
        &[("[coding, careful]", "[coding, careful, coding]")],
        &[("[coding, careful, coding]", "[coding, careful]")],
    ),
];
