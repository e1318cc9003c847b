use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "missing-key",
    page: "\
missing-key: a required key is missing

What it means: The format requires this key here. Besides single keys this covers: a step of the flow
without its gate, transitions or schema (in a check flow without `check`), a step without `stepKind` whose
`c2` implies none, a verdict without the `config` that it needs, a validator without `failurePattern`, and
a `poll:state` verdict without a parameter `file` or `url` that always has a value. Without `max_steps` a
workflow runs, with a warning: it ends after 10 steps, as in TAKT.

Why it matters: Cuegate does not guess the value, so the definition cannot run.

Example:
    \"initial.fix\": {
      \"stepId\": \"initial.fix\", \"name\": \"Plan\", \"stepKind\": \"work\",
      \"structuredGate\": { \"allowedIntents\": [\"next\"] },
      \"transitions\": { \"next\": { \"target\": \"continuation.fix\" } }
    }

Fix: Add the key; here `outputSchemaRef`. A step that other prompts only include needs no gate: call it
`section.*`. For `poll:state`, make the parameter required, give it a `default`, or pass it with `--set`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(
            r#"  "c1": "steps",
"#,
            "",
        )],
        &[(r#""agentId": "fixer","#, r#""agentId": "fixer", "c1": "steps","#)],
    ),
    super::twins_of_piece(
        &[("max_iterations: 12\n", "")],
        &[("name: sound\n", "name: sound\nmax_iterations: 9\n")],
    ),
    super::twins_of_piece(
        &[("max_iterations: 12\n", ""), ("\nmovements:\n", "\nsteps:\n")],
        &[("name: sound\n", "name: sound\nmax_steps: 9\n")],
    ),
    super::twins_of_closing(
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
    super::twins_of_complete(
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
    super::twins_of_closing(
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
    super::twins_of_unguarded(
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
