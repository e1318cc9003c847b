use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-variable",
    page: "\
unused-variable: a value is promised to a prompt that does not read it

`uvVariables` of a step or of a front matter list the value, `inputs` bring it from another step, or
`usesStdin` asks for the task. The prompt does not use it. (For an input, the failure prompts that can stand
in for the step's prompt are looked into as well.)

Write `{uv-name}`, or `{input_text}` for the task, in the prompt, or take the promise back.

- a value is taken out of a validator's output for nobody
- a parameter that no prompt reads
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[("Close #{uv-issue}", "Close it")],
        &[(r#""permissionMode": "plan", "uvVariables": ["issue"],"#, r#""permissionMode": "plan","#)],
    ),
    super::closing(
        &[(
            r#""changedFiles": "parseChangedFiles""#,
            r#""changedFiles": "parseChangedFiles", "branch": "stdout""#,
        )],
        &[("Commit for #{uv-issue}", "Commit {{branch}}")],
    ),
    super::closing(
        &[(" against {uv-base-branch}", ""), (r#"["issue", "baseBranch"]"#, r#"["issue"]"#)],
        &[("of {unknown}", "of {uv-base-branch}")],
    ),
];
