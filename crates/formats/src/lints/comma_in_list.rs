//! Found in `climpt::agent::parameters`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "comma-in-list",
    page: "\
comma-in-list: an item of a default holds a comma

A parameter of type `array` is one text in prompts and on the command line, its items separated by commas. An
item that holds a comma itself cannot be told from two items.

Write the item without a comma, or give the parameter the type `string`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(
        r#""type": "string", "description": "Base", "default": "main""#,
        r#""type": "array", "description": "Base", "default": ["a,b"]"#,
    )],
    &[(r#"["a,b"]"#, r#"["a", "b"]"#)],
)];
