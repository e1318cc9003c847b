use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "id-mismatch",
    page: "\
id-mismatch: an id differs from the name that it repeats

What it means: A step is named by its key, and its `stepId` (in a check flow `id`) repeats that name. Or
`agentId` of the registry repeats the `name` of the agent. Here the two differ.

Why it matters: Other parts of the definition use one of the two names, and Cuegate cannot know which one
is right. A registry with another `agentId` may belong to another agent.

Example:
    \"initial.fix\": { \"stepId\": \"initial.fx\" }

Fix: Make both equal. If everything else uses the `stepId`, the key is wrong, and the finding points at the
key. If `agentId` differs, perhaps `runner.flow.prompts.registry` names the wrong file.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""stepId": "initial.fix""#, r#""stepId": "initial.fx""#)],
        &[(r#""stepId": "initial.fx""#, r#""stepId": "initial.fix""#)],
    ),
    super::twins_of_closing(
        &[(r#""agentId": "fixer""#, r#""agentId": "mender""#)],
        &[(r#""agentId": "mender""#, r#""agentId": "fixer""#)],
    ),
];
