use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "id-mismatch",
    page: "\
id-mismatch: a key and the `stepId` below it differ

A step is named by its key. Its `stepId` repeats that name and has to agree.

Make both equal. Where everything else names the step as its `stepId` does, the key is what was changed,
and the finding stands there.

`agentId` of the registry is not the `name` of the agent. The registry may be the wrong one.

Make both equal, or correct `runner.flow.prompts.registry`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""stepId": "initial.fix""#, r#""stepId": "initial.fx""#)],
        &[(r#""stepId": "initial.fx""#, r#""stepId": "initial.fix""#)],
    ),
    super::closing(
        &[(r#""agentId": "fixer""#, r#""agentId": "mender""#)],
        &[(r#""agentId": "mender""#, r#""agentId": "fixer""#)],
    ),
];
