//! Found in `climpt::load`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "agent-id-mismatch",
    page: "\
agent-id-mismatch: agent and registry have different names

`agentId` of the registry is not the `name` of the agent. The registry may be the wrong one.

Make both equal, or correct `runner.flow.prompts.registry`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""agentId": "fixer""#, r#""agentId": "mender""#)],
    &[(r#""agentId": "mender""#, r#""agentId": "fixer""#)],
)];
