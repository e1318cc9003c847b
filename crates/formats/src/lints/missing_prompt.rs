use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "missing-prompt",
    page: "\
missing-prompt: a step has no prompt

What it means: None of the prompt files that the finding lists exists: Cuegate tries the path template
below `userPromptsBase`, then below `runner.flow.prompts.fallbackDir`. Or the file is empty or holds only
front matter. As a warning: a registry of the \"complete\" generation uses a built-in prompt instead of the
missing file. Several prompts that are missing because of one key are one finding at that key.

Why it matters: Without a prompt the agent has no task. A built-in prompt is general and does not know your
task.

Example:
    \"c2\": \"continuation\", \"c3\": \"mend\"      # prompts/steps/continuation/mend/ does not exist

Fix: Write the file, or correct `c2`, `c3`, `edition`, `adaptation` or the folders.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""c2": "continuation", "c3": "fix""#, r#""c2": "continuation", "c3": "mend""#)],
        &[(
            "",
            "//- .agent/fixer/prompts/steps/continuation/mend/f_default.md\n{uv-approach}, {uv-previous_summary}\n",
        )],
    ),
    super::twins_of_complete(
        &[(
            r#""c2": "continuation", "c3": "fix""#,
            r#""c2": "continuation", "c3": "mend", "fallbackKey": "continuation_issue""#,
        )],
        &[(
            "",
            "//- .agent/solver/prompts/steps/continuation/mend/f_default.md\nGo on: {uv-initial_fix_approach}\n",
        )],
    ),
    super::twins_of_closing(
        &[("Be kind. ", "")],
        &[("", "//- .agent/fixer/prompts/steps/section/context/f_default.md\nBe brief.\n")],
    ),
    super::twins_of_piece(
        &[("Money is counted in cents.", "")],
        &[("", "//- .takt/knowledge/domain.md\nMoney is counted in cents.\n")],
    ),
];
