//! Slips in pieces: what was meant as something else, and what is one mistake though it shows in many places.

use crate::piece_support::{broken, table};

/// What a monitor's judge is told is read from no file; the `order` of a report is a key, a file, or a text.
#[test]
fn a_path_is_no_text() {
    const TOLD: &str =
        "instruction_template: |\n        {cycle_count} rounds. See {report:01-scope.md}.\n      rules";
    let told = |path: &str| broken(&[(TOLD, &format!("instruction_template: {path}\n      rules"))]);
    for path in ["../instructions/judge.md", "judge.md", "./judge.txt"] {
        let found = told(path);
        let said = format!("warning[literal-path]: `{path}` is no file here: `judge.instruction_template`");
        assert!(found.contains(&said), "{found}");
    }
    assert!(!told("Does it help?").contains("literal-path"));
    let ordered = broken(&[("order: Be short.", "order: ../instructions/order.txt")]);
    assert!(ordered.contains("no file") || ordered.contains("[missing-facet]"), "{ordered}");
}

/// Lists that are no lists in YAML are texts, and so is a key where a text belongs.
#[test]
fn keys_are_no_text() {
    insta::assert_snapshot!(table(&[
        ("a list without dashes", &[("policy: [coding, careful]", "policy:\n      coding\n      careful")]),
        ("a second item further in", &[("policy: [coding, careful]", "policy:\n      - coding\n        - careful")]),
        ("a list without brackets", &[("policy: [coding, careful]", "policy: coding, careful")]),
        ("one of them misspelt", &[("policy: [coding, careful]", "policy: codng, careful")]),
        ("a text", &[("policy: [coding, careful]", "policy: [coding, careful, Do all with care]")]),
        ("a key for a text", &[("instruction_template: Review the tests.", "instruction_template: implement")]),
        ("a path with a blank", &[("../policies/coding.md", "../policies/my coding.txt")]),
    ]), @"
    # a list without dashes
    sound.yaml:47:7 warning[literal-keys]: `coding, careful` is taken for the text itself, though it looks like keys of `policies`
    # a second item further in
    sound.yaml:47:9 warning[literal-keys]: `coding, careful` is taken for the text itself, though it looks like keys of `policies`
    # a list without brackets
    sound.yaml:46:13 warning[literal-keys]: `coding, careful` is taken for the text itself, though it looks like keys of `policies`
    # one of them misspelt
    sound.yaml:46:13 warning[literal-keys]: `codng, careful` is taken for the text itself, though it looks like keys of `policies`
    # a text
    nothing
    # a key for a text
    sound.yaml:78:31 warning[literal-keys]: `implement` is taken for the text itself, though it is a key of `instructions`
    # a path with a blank
    sound.yaml:5:11 warning[literal-path]: `../policies/my coding.txt` is no file here: the entry of `policies` is what an agent is told, word for word
    ");
}

/// What a movement is not told it cannot show; and a movement that is called like an end is no place to go to.
#[test]
fn what_contradicts_is_one_finding() {
    insta::assert_snapshot!(table(&[
        ("the answer before, untold", &[
            ("  - name: plan\n", "  - name: plan\n    pass_previous_response: false\n"),
            ("Plan {task}.", "Plan {task}: {previous_response}."),
        ]),
        ("called like an end", &[("  - name: implement\n", "  - name: COMPLETE\n")]),
    ]), @"
    # the answer before, untold
    sound.yaml:27:20 warning[stray-key]: `{previous_response}` is always empty here: `pass_previous_response` is `false`
    # called like an end
    sound.yaml:44:11 error[step-name]: `COMPLETE` is an end, and cannot be the name of a movement
    ");
}

/// Beside `format` and `order` stands a `name`, and no label.
#[test]
fn reports_with_a_form_have_a_name() {
    insta::assert_snapshot!(table(&[
        ("a label with a form", &[("- name: 00-plan.md", "- Plan: 00-plan.md")]),
        ("a misspelt name", &[("- name: 00-plan.md", "- nmae: 00-plan.md")]),
        ("no name at all", &[("- name: 00-plan.md\n          ", "- "), ("{report:00-plan.md}", "it")]),
    ]), @"
    # a label with a form
    sound.yaml:29:11 error[unknown-key]: `Plan` is no key of a report; `name` is missing in a report
    # a misspelt name
    sound.yaml:29:11 error[unknown-key]: `nmae` is no key of a report
    # no name at all
    sound.yaml:29:11 error[missing-key]: `name` is missing in a report
    ");
}

/// What is lost or written otherwise for one reason is one finding, and the rest is read as it was meant.
#[test]
fn one_slip_is_one_finding() {
    insta::assert_snapshot!(table(&[
        ("movements among the monitors", &[
            ("\nmovements:\n", "\nloop_monitors:\n"),
            ("\nloop_monitors:\n  - cycle", "\n  - cycle"),
        ]),
        ("rules among the members", &[("    rules:\n      - condition: all(", "        rules:\n      - condition: all(")]),
        ("rules in the last member", &[
            ("    rules:\n      - condition: all(", "        rules:\n          - condition: all("),
            ("        next: COMPLETE\n      - condition: any(", "            next: COMPLETE\n          - condition: any("),
            ("        next: implement\n      - condition: ai(\"the", "            next: implement\n          - condition: ai(\"the"),
            ("        next: plan\nloop", "            next: plan\nloop"),
        ]),
        ("rules without their line", &[("    rules:\n      - condition: all(", "      - condition: all(")]),
        ("a name that stands twice", &[("  - name: implement\n", "  - name: implement\n  - name: implement\n")]),
        ("two movements that are nothing but the same name", &[("  - name: implement\n", "  - name: idle\n  - name: idle\n  - name: implement\n")]),
        ("members by another name", &[("    parallel:\n", "    members:\n")]),
        ("a rule in short", &[("      - condition: Done\n        next: reviewers\n", "      - Done: reviewers\n")]),
        ("a later condition", &[("      - condition: Done\n", "      - when: Done\n")]),
        ("a list of something else", &[("policy: [coding, careful]", "policy: [coding, careful, Read, Edit]")]),
        ("a sentence with a colon", &[("    quality_gates:\n", "    quality_gates:\n      - Tests: all pass\n")]),
        ("a part of a key", &[("    permission_mode: edit", "    permission: edit")]),
        ("a flag that is a text", &[
            ("next: implement\n        requires_user_input: true\n        interactive_only: true", "next: plan\n        requires_user_input: \"true\""),
        ]),
        ("a member without a name", &[
            ("      - name: qa-review\n", "      - id: qa-review\n        output_contracts: { report: [{ name: qa.md }] }\n"),
            ("Follow {report:00-plan.md}.", "Follow {report:00-plan.md} and {report:qa.md}."),
        ]),
    ]), @r#"
    # movements among the monitors
    sound.yaml:18:5 error[invalid-value]: 3 movements stand among the loop monitors
    # rules among the members
    sound.yaml:82:9 error[invalid-value]: `rules` is indented too far, so that its rules stand among the members
    # rules in the last member
    sound.yaml:82:9 error[invalid-value]: `rules` is indented too far, so that they stand in the member `qa-review`, which has some
    # rules without their line
    sound.yaml:82:9 error[invalid-value]: 3 rules stand among the members
    # a name that stands twice
    sound.yaml:44:5 error[step-name]: there is another movement `implement`, and this one is nothing but its name
    # two movements that are nothing but the same name
    sound.yaml:44:5 error[missing-key]: `instruction` is missing in the movement `idle`
    sound.yaml:44:5 error[missing-key]: `rules` is missing in the movement `idle`
    sound.yaml:44:5 warning[missing-edit]: `edit` is missing, so that `idle` may change nothing
    sound.yaml:45:5 error[step-name]: there is another movement `idle`, and this one is nothing but its name
    # members by another name
    sound.yaml:67:5 error[unknown-key]: `members` is no key of the movement `reviewers`
    # a rule in short
    sound.yaml:62:9 error[unknown-key]: `Done` is no key of a rule; `condition`, `next` are missing in a rule
    # a later condition
    sound.yaml:62:9 error[unsupported-yet]: `when` came with a later version of the format, which is not supported yet
    # a list of something else
    sound.yaml:46:31 error[unknown-facet]: `policy` names `Read`, `Edit`, which `policies` does not have
    # a sentence with a colon
    sound.yaml:54:9 error[invalid-value]: `Tests: all pass` is an object and no text, as a colon with a blank behind begins a value
    # a part of a key
    sound.yaml:49:5 error[unknown-key]: `permission` is no key of the movement `implement`
    # a flag that is a text
    sound.yaml:37:30 error[wrong-type]: `requires_user_input` must be `true` or `false`, not a text
    # a member without a name
    sound.yaml:75:9 error[unknown-key]: `id` is no key of a movement; `name` is missing in a movement
    "#);
}
