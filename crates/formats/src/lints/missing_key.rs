use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "missing-key",
    page: "\
missing-key: a required key is missing

The format requires this key.

Add it.

- a step of the flow lacks a part
- nothing says what kind of step this is
- the verdict looks at something, and nothing says at what
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(
            r#"  "c1": "steps",
"#,
            "",
        )],
        &[(r#""agentId": "fixer","#, r#""agentId": "fixer", "c1": "steps","#)],
    ),
    super::piece(&[("max_iterations: 12\n", "")], &[("name: sound\n", "name: sound\nmax_iterations: 9\n")]),
    super::closing(
        &[(
            r##"      "outputSchemaRef": { "file": "fix.json", "schema": "#/$defs/closure.fix" },
"##,
            "",
        )],
        &[(
            r#""permissionMode": "plan", "uvVariables": ["issue"],"#,
            r#""permissionMode": "plan", "uvVariables": ["issue"], "outputSchemaRef": { "file": "fix.json", "schema": "closure.fix" },"#,
        )],
    ),
    super::complete(
        &[(
            r##"      "outputSchemaRef": { "file": "fix.json", "schema": "#/definitions/initial.fix" },
"##,
            "",
        )],
        &[(
            r#""edition": "default","#,
            r#""edition": "default", "outputSchemaRef": { "file": "fix.json", "schema": "initial.fix" },"#,
        )],
    ),
    super::closing(
        &[
            (r#""c2": "continuation", "c3": "fix""#, r#""c2": "retry", "c3": "fix""#),
            (
                "",
                "//- .agent/fixer/prompts/steps/retry/fix/f_default.md\n{uv-approach}, {uv-previous_summary}\n",
            ),
        ],
        &[(
            r#""c2": "retry", "c3": "fix", "model""#,
            r#""c2": "retry", "c3": "fix", "stepKind": "work", "model""#,
        )],
    ),
    super::unguarded(
        &[(
            r#"{ "type": "detect:graph" }"#,
            r#"{ "type": "poll:state", "config": { "resourceType": "file" } }"#,
        )],
        &[(
            r#""parameters": {"#,
            r#""parameters": {
    "file": { "type": "string", "description": "F", "required": true, "cli": "--file" },"#,
        )],
    ),
];
