use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "missing-prompt",
    page: "\
missing-prompt: a prompt file is not there

The finding lists every path that was tried: the path template below `userPromptsBase`, then below
`runner.flow.prompts.fallbackDir`.

Where several prompts are missing because of one key, as a path template or the base of all, that is one
finding, at that key.

Write the file, or correct `c2`, `c3`, `edition`, `adaptation` or the bases.

- a step is asked with a built-in prompt instead of its own
- a prompt file holds no prompt
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""c2": "continuation", "c3": "fix""#, r#""c2": "continuation", "c3": "mend""#)],
        &[(
            "",
            "//- .agent/fixer/prompts/steps/continuation/mend/f_default.md\n{uv-approach}, {uv-previous_summary}\n",
        )],
    ),
    super::complete(
        &[(
            r#""c2": "continuation", "c3": "fix""#,
            r#""c2": "continuation", "c3": "mend", "fallbackKey": "continuation_issue""#,
        )],
        &[(
            "",
            "//- .agent/solver/prompts/steps/continuation/mend/f_default.md\nGo on: {uv-initial_fix_approach}\n",
        )],
    ),
    super::closing(
        &[("Be kind. ", "")],
        &[("", "//- .agent/fixer/prompts/steps/section/context/f_default.md\nBe brief.\n")],
    ),
    super::piece(
        &[("Money is counted in cents.", "")],
        &[("", "//- .takt/knowledge/domain.md\nMoney is counted in cents.\n")],
    ),
];
