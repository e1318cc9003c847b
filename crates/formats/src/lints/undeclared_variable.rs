use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "undeclared-variable",
    page: "\
undeclared-variable: a prompt reads a variable that the step does not list

The step's `uvVariables` list what its prompt reads. This one is not in the list; the prompt or its front
matter has it. A run works all the same when the value is given.

The same goes for `{input_text}` where `usesStdin` is `false`: a run needs the task all the same.

Add it to `uvVariables`, or make `usesStdin` true.

- a failure prompt reads what its validator does not yield
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[("Close #{uv-issue}", "Close #{uv-issue} {uv-baseBranch}")],
        &[(
            r#""permissionMode": "plan", "uvVariables": ["issue"]"#,
            r#""permissionMode": "plan", "uvVariables": ["issue", "baseBranch"]"#,
        )],
    ),
    super::closing(
        &[("Commit for #{uv-issue}", "Commit {{branch}}")],
        &[(
            r#""changedFiles": "parseChangedFiles""#,
            r#""changedFiles": "parseChangedFiles", "branch": "stdout""#,
        )],
    ),
];
