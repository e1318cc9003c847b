use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "undeclared-variable",
    page: "\
undeclared-variable: a prompt reads a variable that is not declared for it

What it means: The prompt or its front matter reads a variable that `uvVariables` of the step does not
list, or reads `{input_text}` although `usesStdin` is `false`, or a failure prompt reads a value that
`extractParams` of its validator do not extract.

Why it matters: A value that is given is filled in anyway, but the declaration is wrong: whoever reads the
step does not see what it needs. In a failure prompt the value is empty.

Example:
    \"closure.fix\": { \"uvVariables\": [\"issue\"] }
    prompts/steps/closure/fix/f_default.md:
        Close #{uv-issue} {uv-baseBranch}

Fix: Add the variable to `uvVariables`, set `usesStdin` to `true`, or add the value to `extractParams`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[("Close #{uv-issue}", "Close #{uv-issue} {uv-baseBranch}")],
        &[(
            r#""permissionMode": "plan", "uvVariables": ["issue"]"#,
            r#""permissionMode": "plan", "uvVariables": ["issue", "baseBranch"]"#,
        )],
    ),
    super::twins_of_closing(
        &[("Commit for #{uv-issue}", "Commit {{branch}}")],
        &[(
            r#""changedFiles": "parseChangedFiles""#,
            r#""changedFiles": "parseChangedFiles", "branch": "stdout""#,
        )],
    ),
];
