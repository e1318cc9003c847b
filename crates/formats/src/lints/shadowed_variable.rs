use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "shadowed-variable",
    page: "\
shadowed-variable: a parameter or an input hides another variable

What it means: Every prompt can read `iteration`, `completed_iterations`, `max_iterations`, `remaining`,
`previous_summary`, `task` and `check_count`. A parameter of this name hides the built-in variable.
Likewise an input of a step hides the parameter or the built-in variable of the same name in that step.

Why it matters: `{uv-NAME}` shows the value of the parameter or input, and the hidden value cannot be read.

Example:
    \"remaining\": { \"type\": \"string\", \"description\": \"What is left\", \"cli\": \"--remaining\" }

Fix: Give the parameter or the input another name. Remove it if the built-in variable is meant.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    // An input with the name of a parameter.
    super::twins_of_closing(
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
    super::twins_of_closing(
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
    super::twins_of_closing(
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
