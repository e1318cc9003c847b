use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-key",
    page: "\
unused-key: a key or a value has no effect here

It is known from other places or from older definitions, but nothing reads it here, or something beside it
decides alone. The hint says why. Settings of a sandbox or worktree that is switched
off are a note.

Remove it, or what stands in its way.

In the drafts of JSON Schema that step schemas are mostly written in, and where a file names none,
a `$ref` stands for the whole schema. Constraints beside it are dropped: an answer is neither asked to
keep them nor checked for them. In a file whose `$schema` names draft 2019-09 or 2020-12 both hold, and
nothing is said.

Put the `$ref` into an `allOf`, and the rest beside that: `\"allOf\": [{ \"$ref\": … }], \"required\": …`.
(Notes like `description` are dropped as well, which is not reported.)

An unreadable intent ends the run unless `failFast` is false. `fallbackIntent` alone does nothing. Nor does
one that is `jump` where only the answer says where to: an answer that cannot be used names no step.

Add `\"failFast\": false`, or remove `fallbackIntent`. Give `transitions.jump.target`, or fall back to another
intent.

Steps or failure patterns differ in a part of their prompt's path, but the path template does not have that
part, so that what they say about it has no effect.

Add the placeholder to the template, or write the same everywhere.

Nothing says what an unreadable intent means instead, so that it ends the run all the same.

Add `fallbackIntent`.

A required parameter has to be given, so that its default is never used. An input of a step with a default is
never missing, so that requiring it has no effect.

Remove `required`, or the default.

`userPromptsBase`, in a check flow `basePath`, is where prompts are looked for first. None was found below it:
all lie in the agent's `fallbackDir`. Most often the path is wrong.

Correct the path, or, where it is `userPromptsBase`, remove the key.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""usesStdin": true"#, r#""priority": 1, "usesStdin": true"#)],
        &[(r#""priority": 1, "#, "")],
    ),
    super::closing(
        &[(
            r#""acceptEdits" }
  }"#,
            r#""acceptEdits" },
    "execution": { "worktree": { "enabled": false, "root": "../trees" } }
  }"#,
        )],
        &[(r#", "root": "../trees""#, "")],
    ),
    super::piece(
        &[("max_iterations: 12", "max_iterations: 12\nanswer_agent: coder")],
        &[("\nanswer_agent: coder", "")],
    ),
    super::closing(
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
    super::closing(
        &[(r#""failFast": false, "fallbackIntent": "repeat""#, r#""fallbackIntent": "repeat""#)],
        &[(r#""fallbackIntent": "repeat""#, r#""failFast": false, "fallbackIntent": "repeat""#)],
    ),
    super::closing(
        &[
            (
                r#""c1": "steps""#,
                r#""c1": "steps", "pathTemplateNoAdaptation": "{c1}/{c2}/{c3}/f_default.md""#,
            ),
            (r#""c2": "section", "c3": "context""#, r#""c2": "section", "c3": "context", "edition": "own""#),
        ],
        &[(r#""edition": "own""#, r#""edition": "default""#)],
    ),
    super::closing(
        &[(r#""failFast": false, "fallbackIntent": "repeat""#, r#""failFast": false"#)],
        &[(r#""failFast": false"#, r#""failFast": false, "fallbackIntent": "closing""#)],
    ),
    super::closing(
        &[(r#""default": "main""#, r#""default": "main", "required": true"#)],
        &[(r#""default": "main", "#, "")],
    ),
    super::closing(
        &[(r#""userPromptsBase": ".agent/fixer/prompts""#, r#""userPromptsBase": ".agent/fixer/prompt""#)],
        &[(
            r#"  "userPromptsBase": ".agent/fixer/prompt",
"#,
            "",
        )],
    ),
];
