use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-key",
    page: "\
unused-key: a key has no effect

What it means: Nothing reads the key here, or something else overrides it; the message says which. Frequent
cases:
- `fallbackIntent` while `failFast` is not `false`, or `\"failFast\": false` without `fallbackIntent`;
- constraints beside a `$ref`: in schemas before draft 2019-09 the `$ref` replaces them;
- `edition`, `adaptation` or `c2` in steps whose path template has no placeholder for it; a
  `userPromptsBase` or `basePath` below which no prompt exists;
- `required` beside a `default`; `{cycle_count}` outside a judge; settings of a sandbox or worktree that is
  switched off (a note).

Why it matters: The author expects an effect that does not happen.

Example:
    \"structuredGate\": {
      \"allowedIntents\": [\"closing\", \"repeat\"], \"fallbackIntent\": \"repeat\"
    }

Fix: Remove the key, or what overrides it; the hint says how. Here add `\"failFast\": false`. Put a `$ref`
into an `allOf`: `\"allOf\": [{ \"$ref\": … }], \"minLength\": 3`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""usesStdin": true"#, r#""priority": 1, "usesStdin": true"#)],
        &[(r#""priority": 1, "#, "")],
    ),
    super::twins_of_closing(
        &[(
            r#""acceptEdits" }
  }"#,
            r#""acceptEdits" },
    "execution": { "worktree": { "enabled": false, "root": "../trees" } }
  }"#,
        )],
        &[(r#", "root": "../trees""#, "")],
    ),
    super::twins_of_piece(
        &[("max_iterations: 12", "max_iterations: 12\nanswer_agent: coder")],
        &[("\nanswer_agent: coder", "")],
    ),
    super::twins_of_closing(
        &[
            (
                r#""status": { "enum": ["ready", "blocked"] }"#,
                r##""status": { "$ref": "#/words", "minLength": 3 }"##,
            ),
            (r#""$defs": {"#, r#""words": { "enum": ["ready", "blocked"] }, "$defs": {"#),
        ],
        &[(
            r##"{ "$ref": "#/words", "minLength": 3 }"##,
            r##"{ "allOf": [{ "$ref": "#/words" }], "minLength": 3 }"##,
        )],
    ),
    super::twins_of_closing(
        &[(r#""failFast": false, "fallbackIntent": "repeat""#, r#""fallbackIntent": "repeat""#)],
        &[(r#""fallbackIntent": "repeat""#, r#""failFast": false, "fallbackIntent": "repeat""#)],
    ),
    super::twins_of_closing(
        &[
            (
                r#""c1": "steps""#,
                r#""c1": "steps", "pathTemplateNoAdaptation": "{c1}/{c2}/{c3}/f_default.md""#,
            ),
            (r#""c2": "section", "c3": "context""#, r#""c2": "section", "c3": "context", "edition": "own""#),
        ],
        &[(r#""edition": "own""#, r#""edition": "default""#)],
    ),
    super::twins_of_closing(
        &[(r#""failFast": false, "fallbackIntent": "repeat""#, r#""failFast": false"#)],
        &[(r#""failFast": false"#, r#""failFast": false, "fallbackIntent": "closing""#)],
    ),
    super::twins_of_closing(
        &[(r#""default": "main""#, r#""default": "main", "required": true"#)],
        &[(r#""default": "main", "#, "")],
    ),
    super::twins_of_closing(
        &[(r#""userPromptsBase": ".agent/fixer/prompts""#, r#""userPromptsBase": ".agent/fixer/prompt""#)],
        &[(
            r#"  "userPromptsBase": ".agent/fixer/prompt",
"#,
            "",
        )],
    ),
];
