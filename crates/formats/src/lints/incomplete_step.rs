//! Found in `climpt::older::check_flow::steps`, `climpt::older::completion_steps`, `climpt::registry::definition` and
//! `climpt::registry::step_definition`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "incomplete-step",
    page: "\
incomplete-step: a step of the flow lacks a part

Every step that a run can come to has `structuredGate`, `transitions` and `outputSchemaRef`. Only sections,
whose text other prompts include, have none of them.

Add what is missing, or call the step `section.NAME`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
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
];
