use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "mixed-generations",
    page: "\
mixed-generations: a definition mixes keys of several generations

What it means: There are three generations of step registries: \"closing\" (step kinds, `handoff`,
`closing`), \"complete\" (`complete`, `completionSteps`) and the check flow (`check`, `onPass`, `onFail`). A
registry mixes them, an agent has both `runner` and the older `behavior`, agent and registry disagree about
what ends a run (`completionType: stepFlow` is for check flows only), or `entryStepMapping` uses an older
name of a verdict type.

Why it matters: Each generation has its own rules, so a mixture has no meaning. The finding says which part
belongs to which generation.

Example:
    \"c1\": \"steps\",
    \"completionSteps\": {},
    \"steps\": { \"closure.fix\": { \"stepKind\": \"closure\" } }

Fix: Write agent and registry in one generation.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""c1": "steps","#, r#""c1": "steps", "completionSteps": {},"#)],
        &[(r#" "completionSteps": {},"#, "")],
    ),
    super::twins_of_closing(
        &[(r#""displayName": "Fixer","#, r#""displayName": "Fixer", "behavior": {},"#)],
        &[(r#" "behavior": {},"#, "")],
    ),
    super::twins_of_check_flow(
        &[(r#""stepFlow""#, r#""iterationBudget""#)],
        &[(r#""iterationBudget""#, r#""stepFlow""#)],
    ),
];
