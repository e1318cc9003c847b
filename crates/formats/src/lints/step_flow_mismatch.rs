//! Found in `climpt::older::check_flow::agent_limits`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "step-flow-mismatch",
    page: "\
step-flow-mismatch: agent and registry say different things about what ends a run

A check flow is done when a check leads to `complete`. Its agent says so by the `completionType` `stepFlow`
(or by the verdict `detect:graph`, or not at all). Other completion types belong to registries whose steps
decide themselves, and `stepFlow` to a registry whose steps have a `check`.

Correct `completionType`, or name the registry that it belongs to.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::check_flow(
    &[(r#""stepFlow""#, r#""iterationBudget""#)],
    &[(r#""iterationBudget""#, r#""stepFlow""#)],
)];
