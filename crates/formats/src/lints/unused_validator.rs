//! Found in `climpt::validation::failure_values`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-validator",
    page: "\
unused-validator: a validator that nothing runs

Validators run where `validationConditions` of `validationSteps` name them. None names this one.

Name it in the validation of a closure step, or remove it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(
        r#""git-clean": {
      "type""#,
        r#""spare": { "type": "command", "command": "true", "successWhen": "empty", "failurePattern": "git-dirty", "extractParams": { "changedFiles": "parseChangedFiles" } }, "git-clean": {
      "type""#,
    )],
    &[(r#"[{ "validator": "git-clean" }]"#, r#"[{ "validator": "git-clean" }, { "validator": "spare" }]"#)],
)];
