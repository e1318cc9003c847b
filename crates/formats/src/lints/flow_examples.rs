//! Twins of the codes that the check of the flow has, and that readers of formats report too.

use super::{Twins, check_flow, closing, complete, piece};

/// The code with its twins.
pub(super) const FLOW: &[(&str, &[Twins])] = &[
    (
        "no-entry",
        &[closing(
            &[(
                r#"  "entryStep": "initial.fix",
"#,
                "",
            )],
            &[(
                r#""c1": "steps","#,
                r#""c1": "steps", "entryStepMapping": { "detect:graph": "initial.fix" },"#,
            )],
        )],
    ),
    (
        "step-name",
        &[piece(
            &[("- name: qa-review", "- name: arch-review")],
            &[(
                "- name: arch-review\n        edit: false\n        pass",
                "- name: test-review\n        edit: false\n        pass",
            )],
        )],
    ),
    (
        "unknown-target",
        &[
            closing(
                &[(
                    r#""repeat": { "target": "continuation.fix" }"#,
                    r#""repeat": { "target": "continuation.fx" }"#,
                )],
                &[(r#""continuation.fx""#, r#""continuation.fix""#)],
            ),
            complete(
                &[(
                    r#""repeat": { "target": "continuation.fix" }"#,
                    r#""repeat": { "target": "continuation.fx" }"#,
                )],
                &[(r#""continuation.fx""#, r#""continuation.fix""#)],
            ),
            check_flow(
                &[(r#"{ "fallback": "s_a8f3" }"#, r#"{ "fallback": "s_a8f4" }"#)],
                &[(r#""s_a8f4""#, r#""s_a8f3""#)],
            ),
            piece(
                &[("next: ABORT\n  - name: reviewers", "next: ABORTED\n  - name: reviewers")],
                &[("ABORTED", "ABORT")],
            ),
        ],
    ),
    (
        "unknown-variable",
        &[
            closing(&[("Be kind. ", "Be kind to {uv-nobody}.")], &[("{uv-nobody}", "{uv-issue}")]),
            closing(
                &[
                    (
                        r#""entryStep": "initial.fix","#,
                        r#""entryStep": "initial.fix", "entryStepMapping": { "count:iteration": "initial.spare" },"#,
                    ),
                    (
                        r#""section.context": {"#,
                        r##""initial.spare": {
      "stepId": "initial.spare", "name": "Spare", "stepKind": "work", "c2": "initial", "c3": "spare",
      "outputSchemaRef": { "file": "fix.json", "schema": "initial.fix" },
      "structuredGate": { "allowedIntents": ["next", "repeat"], "intentField": "next_action.action",
        "intentSchemaRef": "#/properties/next_action/properties/action" },
      "transitions": { "next": { "target": "initial.fix" }, "repeat": { "target": "initial.spare" } }
    },
    "section.context": {"##,
                    ),
                    ("", "//- .agent/fixer/prompts/steps/initial/spare/f_default.md\nFor {uv-nobody}.\n"),
                ],
                &[("{uv-nobody}", "{uv-issue}")],
            ),
        ],
    ),
];
