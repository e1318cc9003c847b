use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "mixed-generations",
    page: "\
mixed-generations: a registry mixes the words of several generations

There are three generations of step registries: “closing” (kinds of steps, `handoff`, `closing`), “complete”
(`complete`, `completionSteps`) and the check flow (`check`, `onPass`, `onFail`). Each has its own rules, so
that a mixture means nothing. The finding names which part belongs to which of them. Names of steps count
only where nothing else tells a generation.

Write the whole registry in one of them.

- an agent is written in the words of two generations
- agent and registry say different things about what ends a run
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""c1": "steps","#, r#""c1": "steps", "completionSteps": {},"#)],
        &[(r#" "completionSteps": {},"#, "")],
    ),
    super::closing(
        &[(r#""displayName": "Fixer","#, r#""displayName": "Fixer", "behavior": {},"#)],
        &[(r#" "behavior": {},"#, "")],
    ),
    super::check_flow(
        &[(r#""stepFlow""#, r#""iterationBudget""#)],
        &[(r#""iterationBudget""#, r#""stepFlow""#)],
    ),
];
