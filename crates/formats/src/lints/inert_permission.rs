//! Found in `climpt::agent::permission_mode`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "inert-permission",
    page: "\
inert-permission: a step asks for more than its agent may do

What a step may do is the more restrictive of its own `permissionMode` and the agent's, in the order `plan`,
`default`, `acceptEdits`, `bypassPermissions`. This step names a wider one than the agent, so that it changes
nothing.

Widen `runner.boundaries.permissionMode`, or remove the step's.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""permissionMode": "plan""#, r#""permissionMode": "bypassPermissions""#)],
    &[(r#""permissionMode": "acceptEdits""#, r#""permissionMode": "bypassPermissions""#)],
)];
