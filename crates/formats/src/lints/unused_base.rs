//! Found in `climpt::older::check_flow::prompt_files` and `climpt::prompts::files`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-base",
    page: "\
unused-base: a folder of prompts holds none of them

`userPromptsBase`, in a check flow `basePath`, is where prompts are looked for first. None was found below it:
all lie in the agent's `fallbackDir`. Most often the path is wrong.

Correct the path, or, where it is `userPromptsBase`, remove the key.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""userPromptsBase": ".agent/fixer/prompts""#, r#""userPromptsBase": ".agent/fixer/prompt""#)],
    &[(
        r#"  "userPromptsBase": ".agent/fixer/prompt",
"#,
        "",
    )],
)];
