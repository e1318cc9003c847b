use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "shadowed-variable",
    page: "\
shadowed-variable: a parameter has the name of a built-in variable

Prompts read `iteration`, `completed_iterations`, `max_iterations`, `remaining`, `previous_summary`, `task`
and `check_count` without any parameter. A parameter of such a name wins: `{uv-NAME}` is the value that the
run was given at its start, and what the run knows itself cannot be read any more.

The same goes for an input of a step with the name of a parameter or of such a variable: in this step that one
cannot be read.

Give the parameter or the input another name, or remove it where the built-in variable is meant.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    // An input with the name of a parameter.
    super::closing(
        &[
            (r#""approach": { "from""#, r#""issue": { "from""#),
            ("{uv-approach} /", "{uv-issue} /"),
            (r#"["approach", "previous_summary"]"#, r#"["issue", "previous_summary"]"#),
        ],
        &[
            (r#""issue": { "from""#, r#""plan": { "from""#),
            ("{uv-issue} /", "{uv-plan} /"),
            (r#"["issue", "previous_summary"]"#, r#"["plan", "previous_summary"]"#),
        ],
    ),
    // An input with the name of what every run has.
    super::closing(
        &[
            (r#""approach": { "from""#, r#""iteration": { "from""#),
            ("{uv-approach} /", "{uv-iteration} /"),
            (r#"["approach", "previous_summary"]"#, r#"["iteration", "previous_summary"]"#),
        ],
        &[
            (r#""iteration": { "from""#, r#""plan": { "from""#),
            ("{uv-iteration} /", "{uv-plan} /"),
            (r#"["iteration", "previous_summary"]"#, r#"["plan", "previous_summary"]"#),
        ],
    ),
    super::closing(
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
    ),
];
