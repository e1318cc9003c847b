//! Found in `climpt::prompts::step_prompt`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-fallback-key",
    page: "\
unknown-fallback-key: `fallbackKey` names no built-in prompt

The prompt file is there, so that nothing is missing; without it there would be no prompt. Keys are written
with underscores: `initial_issue`, not `initial.issue`.

Correct the key, or remove it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(
        r#""c2": "continuation", "c3": "fix""#,
        r#""c2": "continuation", "c3": "fix", "fallbackKey": "fix_default""#,
    )],
    &[(r#""fallbackKey": "fix_default""#, r#""fallbackKey": "continuation_issue""#)],
)];
