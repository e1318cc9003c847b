//! Found in `climpt::prompts::unused`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-parameter",
    page: "\
unused-parameter: a parameter that no prompt reads

The parameter can be given at the start of a run, but neither the prompt of a step, nor a failure prompt, nor
the system prompt reads it, so that giving it changes nothing. (Commands of validators are not given any.)

Write `{uv-name}` in the prompt that needs it, or remove the parameter.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(" against {uv-base-branch}", ""), (r#"["issue", "baseBranch"]"#, r#"["issue"]"#)],
    &[("of {unknown}", "of {uv-base-branch}")],
)];
