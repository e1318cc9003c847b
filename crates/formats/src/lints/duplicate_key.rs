use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "duplicate-key",
    page: "\
duplicate-key: a key stands twice

An object holds the same key twice, or two parameters are the same variable (`iterateMax` is `iterate-max`).
Only one can hold, and which one is nowhere said. Several keys of one object are one finding: mostly two
objects became one there, as where the `- ` before an item of a list is gone.

Remove one of them, or part the objects.

- two parameters have the same flag
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""displayName": "Fixer""#, r#""displayName": "Mender", "displayName": "Fixer""#)],
        &[(r#""displayName": "Mender", "#, "")],
    ),
    super::piece(
        &[("max_iterations: 12", "max_iterations: 12\nmax_iterations: 20")],
        &[("max_iterations: 12\n", "")],
    ),
    super::closing(
        &[(r#""cli": "--base-branch""#, r#""cli": "--issue""#)],
        &[(r#""default": "main", "cli": "--issue""#, r#""default": "main", "cli": "--base""#)],
    ),
];
