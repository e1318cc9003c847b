use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-definition",
    page: "\
unused-definition: an entry is defined and never used

What it means: Nothing refers to this entry: no step, report or judge names the entry of `personas`,
`policies`, `knowledge`, `instructions` or `report_formats`, no validator names the failure pattern, no
`validationConditions` name the validator, or no prompt includes the `section.*` step. As an error:
`validationSteps` names a step that cannot decide `closing`, so its validators would never run.

Why it matters: It has no effect; often the place that should name it is misspelt or missing. Validators
that never run are worse: the author relies on a check that does not happen.

Example:
    \"validators\": {
      \"git-clean\": { \"type\": \"command\", \"command\": \"git status --porcelain\", \"successWhen\": \"empty\",
        \"failurePattern\": \"git-dirty\" }
    },
    \"validationSteps\": {}

Fix: Name the entry where it was meant, or remove it. Guard a closure step that allows `closing`. A section
that should run as a step needs `structuredGate`, `transitions` and `outputSchemaRef`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(
            r#""closure.fix": {
      "stepId": "closure.fix", "name": "Clean tree""#,
            r#""initial.fix": {
      "stepId": "initial.fix", "name": "Clean tree""#,
        )],
        &[(
            r#""initial.fix": {
      "stepId": "initial.fix", "name": "Clean tree""#,
            r#""closure.fix": {
      "stepId": "closure.fix", "name": "Clean tree""#,
        )],
    ),
    super::twins_of_piece(
        &[("    knowledge: domain\n", "")],
        &[("    policy: [coding, careful]\n", "    policy: [coding, careful]\n    knowledge: [domain]\n")],
    ),
    super::twins_of_closing(
        &[(
            r#""failurePatterns": {"#,
            r#""failurePatterns": { "spare": { "description": "x", "edition": "failed" },"#,
        )],
        &[(r#" "spare": { "description": "x", "edition": "failed" },"#, "")],
    ),
    super::twins_of_closing(&[("{section.context}", "")], &[("Approach: ", "{section.context}Approach: ")]),
    super::twins_of_closing(
        &[(
            r#""git-clean": {
      "type""#,
            r#""spare": { "type": "command", "command": "true", "successWhen": "empty", "failurePattern": "git-dirty", "extractParams": { "changedFiles": "parseChangedFiles" } }, "git-clean": {
      "type""#,
        )],
        &[(
            r#"[{ "validator": "git-clean" }]"#,
            r#"[{ "validator": "git-clean" }, { "validator": "spare" }]"#,
        )],
    ),
];
