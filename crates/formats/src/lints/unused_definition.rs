use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-definition",
    page: "\
unused-definition: validators belong to a step that never completes the run

A key of `validationSteps` is a step, but one that cannot decide `closing`: no closure step, or one that does
not allow it. Only `closing` is guarded, so that these validators would never run.

Name the closure step, or let it decide `closing`.

An entry of `personas`, `policies`, `knowledge`, `instructions` or `report_formats` is named by no
movement, no report and no judge. (A report in the form `Label: path` names no format.)

Name it where it was meant, or remove it.

A failure pattern chooses the prompt for the failure of the validators whose `failurePattern` it is. There is
none.

Name it in a validator, or remove it.

The text of a `section.*` step reaches an agent only where another prompt includes it with `{section.NAME}`.
No prompt does.

Include it, or remove the step. A step that is to be run needs `structuredGate`, `transitions` and
`outputSchemaRef`.

Validators run where `validationConditions` of `validationSteps` name them. None names this one.

Name it in the validation of a closure step, or remove it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
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
    super::piece(
        &[("    knowledge: domain\n", "")],
        &[("    policy: [coding, careful]\n", "    policy: [coding, careful]\n    knowledge: [domain]\n")],
    ),
    super::closing(
        &[(
            r#""failurePatterns": {"#,
            r#""failurePatterns": { "spare": { "description": "x", "edition": "failed" },"#,
        )],
        &[(r#" "spare": { "description": "x", "edition": "failed" },"#, "")],
    ),
    super::closing(&[("{section.context}", "")], &[("Approach: ", "{section.context}Approach: ")]),
    super::closing(
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
