//! Found in `climpt::prompts::step_prompt`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "built-in-prompt",
    page: "\
built-in-prompt: a step is asked with a built-in prompt instead of its own

The step has no prompt file, and `fallbackKey` names a built-in prompt. That one is a safety net for a
definition that is not finished: it knows nothing of this registry, so that the flow would run on words that
nobody wrote for it. In a finished one every step has a file.

Write the file that the hint names.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::complete(
    &[(
        r#""c2": "continuation", "c3": "fix""#,
        r#""c2": "continuation", "c3": "mend", "fallbackKey": "continuation_issue""#,
    )],
    &[(
        "",
        "//- .agent/solver/prompts/steps/continuation/mend/f_default.md\nGo on: {uv-initial_fix_approach}\n",
    )],
)];
