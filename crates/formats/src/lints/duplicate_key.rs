use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "duplicate-key",
    page: "\
duplicate-key: an object has the same key twice

What it means: An object holds a key twice, or two parameters are the same variable (`iterateMax` and
`iterate-max`) or have the same flag (`cli`). Several repeated keys of one object are one finding.

Why it matters: Only one of the values can count, and the definition does not say which. Often two objects
have become one, for example because the `- ` before an item of a list is missing.

Example:
    name: sound
    max_iterations: 12
    max_iterations: 20

Fix: Remove one of the keys, or separate the two objects. Give each parameter its own name and its own
`cli`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""displayName": "Fixer""#, r#""displayName": "Mender", "displayName": "Fixer""#)],
        &[(r#""displayName": "Mender", "#, "")],
    ),
    super::twins_of_piece(
        &[("max_iterations: 12", "max_iterations: 12\nmax_iterations: 20")],
        &[("max_iterations: 12\n", "")],
    ),
    super::twins_of_closing(
        &[(r#""cli": "--base-branch""#, r#""cli": "--issue""#)],
        &[(r#""default": "main", "cli": "--issue""#, r#""default": "main", "cli": "--base""#)],
    ),
];
