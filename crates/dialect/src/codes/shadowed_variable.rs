//! Found in `registry::parameters`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "shadowed-variable",
    page: "\
shadowed-variable: a parameter has the name of a built-in variable

Prompts read `iteration`, `completed_iterations`, `max_iterations`, `remaining`, `previous_summary`, `task`
and `check_count` without any parameter. A parameter of such a name wins: `{uv-NAME}` is the value that the
run was given at its start, and what the run knows itself cannot be read any more.

Give the parameter another name, or remove it where the built-in variable is meant.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[
        (r#""baseBranch": {"#, r#""remaining": {"#),
        ("against {uv-base-branch}", "against {uv-remaining}"),
        (r#"["issue", "baseBranch"]"#, r#"["issue", "remaining"]"#),
        (", {uv-remaining} left", ""),
    ],
    &[
        (r#""remaining": {"#, r#""rest": {"#),
        ("against {uv-remaining}", "against {uv-rest}"),
        (r#"["issue", "remaining"]"#, r#"["issue", "rest"]"#),
    ],
)];
