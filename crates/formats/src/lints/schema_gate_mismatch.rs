use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "schema-gate-mismatch",
    page: "\
schema-gate-mismatch: the schema of a step and its gate disagree

What it means: The schema tells the agent what it can answer, and the gate reads the answer. Here they do
not fit:
- Intents: what `intentSchemaRef` points to has to list exactly the `allowedIntents` (or their aliases;
  `abort` may be missing on either side). `intentField` has to name a field that the schema has, requires,
  restricts with an `enum`, and leaves possible beside `anyOf`, `not` or `if`.
- Handoff and jump: `handoffFields` and `targetField` have to name fields of the schema. Schemas are closed
  when they are sent, so an object with `properties` has no others unless it says
  `\"additionalProperties\": true`. Jump targets in the schema have to be steps that the jump may lead to.
- `stepId`: the schema has to list this step (`const` or `enum`), if it lists any. In the \"complete\"
  generation each schema needs a `stepId`.

Why it matters: Either the agent gives an answer that the gate rejects, and after it was asked again the
run fails; or an allowed intent can never be chosen, or a field that later steps read is always missing.

Example:
    \"action\": { \"type\": \"string\", \"enum\": [\"next\"] }             (in the schema)
    \"structuredGate\": { \"allowedIntents\": [\"next\", \"repeat\"],    (in the registry)
      \"intentField\": \"next_action.action\", \"handoffFields\": [\"plan.risks\"] }

Fix: Make schema and gate agree: list the same intents in the `enum`, add the field to the schema and to
`required`, or correct the path. If an answer may come without an intent, add `fallbackIntent` (and
`\"failFast\": false` where that key exists).
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""handoffFields": ["status"]"#, r#""handoffFields": ["state"]"#)],
        &[(r#""handoffFields": ["state"]"#, r#""handoffFields": ["status"]"#)],
    ),
    super::twins_of_closing(
        &[(r#"["plan.approach"]"#, r#"["plan.approach", "plan.risks"]"#)],
        &[(
            r#""approach": { "type": "string" }"#,
            r#""approach": { "type": "string" }, "risks": { "type": "string" }"#,
        )],
    ),
    super::twins_of_closing(
        &[(r#""enum": ["next", "repeat"]"#, r#""enum": ["next"]"#)],
        &[(r#""enum": ["next"]"#, r#""enum": ["next", "repeat"]"#)],
    ),
    super::twins_of_complete(
        &[(r#""intentField": "next_action.action""#, r#""intentField": "decision""#)],
        &[(r#""intentField": "decision""#, r#""intentField": "next_action.action""#)],
    ),
    super::twins_of_closing(
        &[(r#""required": ["next_action", "plan"]"#, r#""required": ["plan"]"#)],
        &[(r#""required": ["plan"]"#, r#""required": ["next_action", "plan"]"#)],
    ),
    super::twins_of_closing(
        &[
            (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
            (
                r#""allowedIntents": ["next", "repeat"]"#,
                r#""allowedIntents": ["next", "jump"], "targetField": "next_action.reason""#,
            ),
            (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
        ],
        &[("next_action.reason", "plan.approach")],
    ),
    super::twins_of_closing(
        &[
            (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
            (
                r#""allowedIntents": ["next", "repeat"]"#,
                r#""allowedIntents": ["next", "jump"], "targetField": "plan.approach""#,
            ),
            (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
            (
                r#""approach": { "type": "string" }"#,
                r#""approach": { "enum": ["continuation.fix", "closure.fix"] }"#,
            ),
        ],
        &[(r#"["continuation.fix", "closure.fix"]"#, r#"["continuation.fix"]"#)],
    ),
    super::twins_of_closing(
        &[
            (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
            (
                r#""allowedIntents": ["next", "repeat"]"#,
                r#""allowedIntents": ["next", "jump"], "targetField": "next_action.to""#,
            ),
            (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
        ],
        &[("next_action.to", "plan.approach")],
    ),
    super::twins_of_closing(
        &[
            (
                r#""status": { "enum": ["ready", "blocked"] }"#,
                r#""status": { "enum": ["ready", "blocked"] }, "stepId": { "const": "continuation.fix" }"#,
            ),
            (r#""schema": "initial.fix""#, r#""schema": "continuation.fix""#),
        ],
        &[(
            r#""usesStdin": true,
      "outputSchemaRef": { "file": "fix.json", "schema": "continuation.fix" }"#,
            r#""usesStdin": true,
      "outputSchemaRef": { "file": "fix.json", "schema": "initial.fix" }"#,
        )],
    ),
    super::twins_of_closing(
        &[(
            r#""status": { "enum": ["ready", "blocked"] }"#,
            r#""status": { "enum": ["ready", "blocked"] }, "stepId": { "const": "continuation" }"#,
        )],
        &[(r#"{ "const": "continuation" }"#, r#"{ "const": "continuation.fix" }"#)],
    ),
    super::twins_of_complete(
        &[(r#""stepId": { "const": "initial.fix" }"#, r#""stepId": { "const": "initial.issue" }"#)],
        &[(r#""const": "initial.issue""#, r#""const": "initial.fix""#)],
    ),
    super::twins_of_complete(
        &[(r#""stepId": { "const": "initial.fix" }"#, r#""stepId": { "type": "string" }"#)],
        &[(r#""stepId": { "type": "string" }"#, r#""stepId": { "enum": ["initial.fix"] }"#)],
    ),
    super::twins_of_complete(
        &[(r#"{ "enum": ["next", "wait", "complete"] }"#, r#"{ "type": "string" }"#)],
        &[(r#""action": { "type": "string" }"#, r#""action": { "enum": ["next", "wait", "complete"] }"#)],
    ),
    super::twins_of_complete(
        &[(r#"["next", "wait", "complete"]"#, r#"["next", "wait", "complete", "done"]"#)],
        &[(r#", "done"]"#, "]")],
    ),
];
