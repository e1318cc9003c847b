//! Mistakes in pieces: misread values, and one mistake with several symptoms.

use crate::piece::piece_support::table;

/// A movement that does not receive the previous response cannot show it; a movement named like an end is no target.
#[test]
fn a_contradiction_is_one_finding() {
    insta::assert_snapshot!(table(&[
        ("the answer before, untold", &[
            ("  - name: plan\n", "  - name: plan\n    pass_previous_response: false\n"),
            ("Plan {task}.", "Plan {task}: {previous_response}."),
        ]),
        ("called like an end", &[("  - name: implement\n", "  - name: COMPLETE\n")]),
    ]), @"
    # the answer before, untold
    sound.yaml:27:20 warning[unused-key]: `{previous_response}` is always empty here: `pass_previous_response` is `false`
    # called like an end
    sound.yaml:44:11 error[step-name]: `COMPLETE` is an end, and cannot be the name of a step
    ");
}

/// Beside `format` and `order` a report needs a `name`, not a label.
#[test]
fn reports_with_a_format_need_a_name() {
    insta::assert_snapshot!(table(&[
        ("a label with a form", &[("- name: 00-plan.md", "- Plan: 00-plan.md")]),
        ("a misspelt name", &[("- name: 00-plan.md", "- nmae: 00-plan.md")]),
        ("no name at all", &[("- name: 00-plan.md\n          ", "- "), ("{report:00-plan.md}", "it")]),
    ]), @"
    # a label with a form
    sound.yaml:29:11 error[unknown-key]: unknown key `Plan` in a report; `name` is missing in a report
    # a misspelt name
    sound.yaml:29:11 error[missing-key]: `name` is missing in a report
    sound.yaml:29:11 error[unknown-key]: unknown key `nmae` in a report
    # no name at all
    sound.yaml:29:11 error[missing-key]: `name` is missing in a report
    ");
}
