//! Found in `climpt::registry::step_definition`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "no-step-kind",
    page: "\
no-step-kind: nothing says what kind of step this is

The kind decides which intents a step may allow. `stepKind` is absent, and the step's `c2` implies none
(`initial` and `continuation` imply `work`, `verification` and `closure` themselves).

Add `stepKind`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[
        (r#""c2": "continuation", "c3": "fix""#, r#""c2": "retry", "c3": "fix""#),
        ("", "//- .agent/fixer/prompts/steps/retry/fix/f_default.md\n{uv-approach}, {uv-previous_summary}\n"),
    ],
    &[(
        r#""c2": "retry", "c3": "fix", "model""#,
        r#""c2": "retry", "c3": "fix", "stepKind": "work", "model""#,
    )],
)];
