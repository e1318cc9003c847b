//! Example pairs for the codes of the flow check that format readers report too.

use super::{Twins, twins_of_check_flow, twins_of_closing, twins_of_complete, twins_of_piece};

/// Each code with its examples.
pub(super) const FLOW: &[(&str, &[Twins])] = &[
    (
        "no-entry",
        &[twins_of_closing(
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
        &[
            twins_of_check_flow(
                &[
                    (r#""s_b2c1de": {"#, r#""s_xyz": {"#),
                    (r#""id": "s_b2c1de""#, r#""id": "s_xyz""#),
                    (r#""next": "s_b2c1de""#, r#""next": "s_xyz""#),
                ],
                &[
                    (r#""s_xyz": {"#, r#""s_0a1b": {"#),
                    (r#""id": "s_xyz""#, r#""id": "s_0a1b""#),
                    (r#""next": "s_xyz""#, r#""next": "s_0a1b""#),
                ],
            ),
            twins_of_piece(
                &[("- name: qa-review", "- name: arch-review")],
                &[(
                    "- name: arch-review\n        edit: false\n        pass",
                    "- name: test-review\n        edit: false\n        pass",
                )],
            ),
        ],
    ),
    (
        "unknown-target",
        &[
            twins_of_closing(
                &[("{section.context}", "{section.contxt}")],
                &[("{section.contxt}", "{section.context}")],
            ),
            twins_of_closing(
                &[(
                    r#""closure.fix": {
      "stepId": "closure.fix", "name": "Clean tree""#,
                    r#""closure.fx": {
      "stepId": "closure.fx", "name": "Clean tree""#,
                )],
                &[(
                    r#""closure.fx": {
      "stepId": "closure.fx""#,
                    r#""closure.fix": {
      "stepId": "closure.fix""#,
                )],
            ),
            twins_of_closing(
                &[(
                    r#""repeat": { "target": "continuation.fix" }"#,
                    r#""repeat": { "target": "continuation.fx" }"#,
                )],
                &[(r#""continuation.fx""#, r#""continuation.fix""#)],
            ),
            twins_of_complete(
                &[(
                    r#""repeat": { "target": "continuation.fix" }"#,
                    r#""repeat": { "target": "continuation.fx" }"#,
                )],
                &[(r#""continuation.fx""#, r#""continuation.fix""#)],
            ),
            twins_of_check_flow(
                &[(r#"{ "fallback": "s_a8f3" }"#, r#"{ "fallback": "s_a8f4" }"#)],
                &[(r#""s_a8f4""#, r#""s_a8f3""#)],
            ),
            twins_of_piece(
                &[("next: ABORT\n  - name: reviewers", "next: ABORTED\n  - name: reviewers")],
                &[("ABORTED", "ABORT")],
            ),
        ],
    ),
    (
        "unknown-variable",
        &[
            twins_of_closing(
                &[
                    ("stepId: initial.fix\n", "stepId: initial.fix\ncustomVariables: [depth]\n"),
                    ("{section.context}", "{section.context}{depth}"),
                ],
                &[("[depth]", "[remaining]"), ("{depth}", "{remaining}")],
            ),
            twins_of_closing(&[("Be kind. ", "Be kind to {uv-nobody}.")], &[("{uv-nobody}", "{uv-issue}")]),
            twins_of_closing(
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
    (
        "closure-skipped",
        &[twins_of_closing(
            &[(
                r#"{ "type": "detect:graph" }"#,
                r#"{ "type": "count:iteration", "config": { "maxIterations": 9 } }"#,
            )],
            &[(
                r#"{ "type": "count:iteration", "config": { "maxIterations": 9 } }"#,
                r#"{ "type": "detect:graph", "config": { "maxIterations": 9 } }"#,
            )],
        )],
    ),
    (
        "missing-transition",
        &[
            twins_of_check_flow(
                &[(r#""onFail": { "fallback": "s_a8f3" }"#, r#""onFail": {}"#)],
                &[(r#""onFail": {}"#, r#""onFail": { "retry": true, "maxRetries": 1 }"#)],
            ),
            twins_of_closing(
                &[(r#", "repeat": { "target": "initial.fix" } }"#, " }")],
                &[(
                    r#""next": { "target": "continuation.fix" }"#,
                    r#""repeat": { "target": "initial.fix" }, "next": { "target": "continuation.fix" }"#,
                )],
            ),
            twins_of_piece(
                &[(
                    "          - condition: approved\n          - condition: needs_fix\n    rules:",
                    "          - condition: approved\n            interactive_only: true\n          - condition: needs_fix\n            interactive_only: true\n    rules:",
                )],
                &[(
                    "            interactive_only: true\n          - condition: needs_fix\n            interactive_only: true\n",
                    "          - condition: needs_fix\n            interactive_only: true\n",
                )],
            ),
            twins_of_closing(
                &[(r#""repeat": { "target": "continuation.fix" }"#, r#""repeat": { "target": null }"#)],
                &[(r#""repeat": { "target": null }"#, r#""repeat": { "target": "initial.fix" }"#)],
            ),
            twins_of_closing(
                &[
                    (r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "jump"]"#),
                    (r#""allowedIntents": ["next", "repeat"]"#, r#""allowedIntents": ["next", "jump"]"#),
                    (r#", "repeat": { "target": "initial.fix" } }"#, " }"),
                ],
                &[(
                    r#""next": { "target": "continuation.fix" }"#,
                    r#""next": { "target": "continuation.fix" }, "jump": { "target": "continuation.fix" }"#,
                )],
            ),
        ],
    ),
    (
        "monitor-never-acts",
        &[twins_of_piece(
            &[("cycle: [implement, reviewers]", "cycle: [implement]")],
            &[("cycle: [implement]", "cycle: [implement, reviewers]")],
        )],
    ),
    (
        "unassigned-value",
        &[
            twins_of_closing(
                &[
                    (
                        r#""repeat": { "target": "continuation.fix" }"#,
                        r#""repeat": { "condition": "stats", "targets": { "ready": "initial.fix", "blocked": "continuation.fix" } }"#,
                    ),
                    (
                        r#""continuation.fix": {
      "type": "object", "required": ["next_action"]"#,
                        r#""continuation.fix": {
      "type": "object", "required": ["next_action", "status"]"#,
                    ),
                ],
                &[(r#""stats""#, r#""status""#)],
            ),
            twins_of_closing(
                &[(
                    r#""repeat": { "target": "continuation.fix" }"#,
                    r#""repeat": { "condition": "stats", "targets": { "ready": "initial.fix", "default": "continuation.fix" } }"#,
                )],
                &[(r#""stats""#, r#""status""#)],
            ),
        ],
    ),
    (
        "unreachable-transition",
        &[
            twins_of_check_flow(
                &[(r#"{ "fallback": "s_a8f3" }"#, r#"{ "fallback": "s_a8f3", "maxRetries": 3 }"#)],
                &[(
                    r#"{ "fallback": "s_a8f3", "maxRetries": 3 }"#,
                    r#"{ "fallback": "s_a8f3", "retry": true, "maxRetries": 3 }"#,
                )],
            ),
            twins_of_closing(
                &[
                    (r#""allowedIntents": ["repeat", "handoff"]"#, r#""allowedIntents": ["handoff"]"#),
                    (r#""enum": ["repeat", "handoff"]"#, r#""enum": ["handoff"]"#),
                ],
                &[(r#""repeat": { "target": "continuation.fix" }, "#, "")],
            ),
            twins_of_closing(
                &[(
                    r#""repeat": { "target": "continuation.fix" }"#,
                    r#""repeat": { "condition": "status", "targets": { "redy": "initial.fix", "default": "continuation.fix" } }"#,
                )],
                &[(r#""redy""#, r#""ready""#)],
            ),
        ],
    ),
    (
        "unwritten-report",
        &[twins_of_piece(
            &[("{report:00-plan.md}", "{report:plan.md}")],
            &[("{report:plan.md}", "{report:02-decisions.md}")],
        )],
    ),
];
