use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "duplicate-item",
    page: "\
duplicate-item: a list names the same thing twice

The order of this list means nothing and each name counts once, so that the repetition has no effect. Often
another name was meant.

Correct the repetition, or remove it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""allowedIntents": ["next", "repeat"]"#, r#""allowedIntents": ["next", "repeat", "next"]"#)],
        &[(r#"["next", "repeat", "next"]"#, r#"["next", "repeat"]"#)],
    ),
    super::piece(
        &[("[coding, careful]", "[coding, careful, coding]")],
        &[("[coding, careful, coding]", "[coding, careful]")],
    ),
];
