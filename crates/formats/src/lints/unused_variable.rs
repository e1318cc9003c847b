use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-variable",
    page: "\
unused-variable: a value is declared for a prompt that does not read it

What it means: `uvVariables` of a step or of a front matter list the value, `inputs` bring it from another
step, `usesStdin` asks for the task, `extractParams` extract it for a failure prompt, or it is a parameter
of the agent. No prompt that could read it does. (For an input, the failure prompts that can replace the
step's prompt are searched too.)

Why it matters: The agent does not get the value. Often the prompt has it under another name, or the text
was changed.

Example:
    \"uvVariables\": [\"issue\"]
    prompts/steps/closure/fix/f_default.md:
        Close it, {uv-remaining} left.

Fix: Write `{uv-name}` in the prompt, `{input_text}` for the task, or `{{name}}` in a failure prompt. Or
remove the declaration.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[("Close #{uv-issue}", "Close it")],
        &[(r#""permissionMode": "plan", "uvVariables": ["issue"],"#, r#""permissionMode": "plan","#)],
    ),
    super::twins_of_closing(
        &[(
            r#""changedFiles": "parseChangedFiles""#,
            r#""changedFiles": "parseChangedFiles", "branch": "stdout""#,
        )],
        &[("Commit for #{uv-issue}", "Commit {{branch}}")],
    ),
    super::twins_of_closing(
        &[(" against {uv-base-branch}", ""), (r#"["issue", "baseBranch"]"#, r#"["issue"]"#)],
        &[("of {unknown}", "of {uv-base-branch}")],
    ),
];
