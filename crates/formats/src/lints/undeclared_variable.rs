//! Found in `climpt::older::check_flow::prompt_files` and `climpt::prompts::step_prompt`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "undeclared-variable",
    page: "\
undeclared-variable: a prompt reads a variable that the step does not list

The step's `uvVariables` list what its prompt reads. This one is not in the list; the prompt or its front
matter has it. A run works all the same when the value is given.

The same goes for `{input_text}` where `usesStdin` is `false`: a run needs the task all the same.

Add it to `uvVariables`, or make `usesStdin` true.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[("Close #{uv-issue}", "Close #{uv-issue} {uv-baseBranch}")],
    &[(
        r#""permissionMode": "plan", "uvVariables": ["issue"]"#,
        r#""permissionMode": "plan", "uvVariables": ["issue", "baseBranch"]"#,
    )],
)];
