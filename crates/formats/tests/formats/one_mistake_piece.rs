//! One mistake is one finding in pieces: each case changes one place of a sound one, and one finding names that place.

use crate::one_mistake::{first, not_one, not_said};
use crate::piece_support;
use crate::support::{Project, edit, findings_of};

/// What is changed in a piece, into what, and the code of what is found.
pub const IN_A_PIECE: &[(&str, &str, &str)] = &[
    ("        next: implement\n", "        nxt: implement\n", "unknown-key"),
    ("  - name: implement\n", "  - name: COMPLETE\n", "step-name"),
    ("  - name: implement\n", "  - description: x\n", "missing-key"),
    ("    edit: true\n", "    <<: { edit: true }\n", "invalid-yaml"),
    ("initial_movement", "initial_movment", "unknown-key"),
    ("      - condition: The plan stands\n", "      - condition:\n", "wrong-type"),
    ("        next: implement\n", "        next:\n", "wrong-type"),
    ("  - name: implement\n", "  - name:\n", "wrong-type"),
    ("max_iterations: 12", "max_iterations:", "wrong-type"),
    ("  reviewer: ../personas/reviewer.md\n", "", "unknown-facet"),
    (
        "policies:\n  coding: ../policies/coding.md\n  careful: Change one thing at a time.\n",
        "",
        "unknown-facet",
    ),
    (
        "policies:\n  coding: ../policies/coding.md\n  careful: Change one thing at a time.\n",
        "policies: 7\n",
        "wrong-type",
    ),
    ("    instruction: implement\n", "", "missing-key"),
    ("    persona: coder\n", "    persona:\n", "wrong-type"),
    ("    persona: coder\n", "    zork: coder\n", "unknown-key"),
    ("    output_contracts:\n", "    zork:\n", "unknown-key"),
    ("        - name: 00-plan.md\n", "        - name: 7\n", "wrong-type"),
    ("        - Scope: 01-scope.md\n", "        - Scope:\n", "wrong-type"),
    ("rules:", "ruls:", "unknown-key"),
    ("loop_monitors:\n", "", "invalid-value"),
    ("max_iterations: 12", "max_rounds: 12", "unknown-key"),
];

#[test]
fn in_a_piece() {
    let found =
        not_one(IN_A_PIECE, piece_support::sound(), |files| findings_of(piece_support::load(files, |_| {})));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A monitor that stands among the movements is one all the same, wherever the others stand.
#[test]
fn monitors_among_the_movements() {
    const MONITOR: &str = "  - cycle: [plan, implement]\n    threshold: 2\n    judge:\n      rules:\n        \
                           - condition: Healthy\n          next: plan\n        - condition: Stuck\n          next: ABORT\n";
    let found = |text: &str| {
        let files = first(piece_support::sound(), "loop_monitors:\n", text);
        let found = piece_support::load(&files, |_| {}).diagnostics.into_iter();
        let found = found.filter(|found| found.severity == cuegate_flow::diagnostics::Severity::Error);
        found.map(|found| format!("{}: {}", found.message, found.hint.unwrap())).collect::<Vec<String>>()
    };
    let above = "write `loop_monitors:` above it, as far to the left as `movements:`";
    assert_eq!(found(""), [format!("a loop monitor stands among the movements: {above}")]);
    assert_eq!(found(MONITOR), [format!("2 loop monitors stand among the movements: {above}")]);
    let below = "a loop monitor stands among the movements: move it below `loop_monitors`";
    assert_eq!(found(&format!("{MONITOR}loop_monitors:\n")), [below]);
}

/// What everything goes by is changed where it is given only.
#[test]
fn names_of_a_piece_that_were_changed() {
    let found = |files: &Project| findings_of(piece_support::load(files, |_| {}));
    let piece = edit(&Project::from([(PIECE.to_owned(), NAMED.as_bytes().to_vec())]), "PLACE", "plan");
    assert_eq!(found(&piece), "");
    let cases = [
        ("  coder: ", "  codr: ", "yaml:6:3 error[unknown-facet]: `codr` of `personas` is named nowhere"),
        ("  coder: ", "  zork: ", "yaml:6:3 error[unknown-facet]: `zork` of `personas` is named nowhere"),
        ("  tidy: ", "  tdy: ", "error[unknown-facet]: `tdy` of `policies` is named nowhere"),
        ("- name: work", "- name: wrok", "error[unknown-target]: nothing leads to the movement `wrok`"),
        ("- name: work", "- name: zork", "error[unknown-target]: nothing leads to the movement `zork`"),
        (
            "- name: plan.md",
            "- name: pln.md",
            "warning[unwritten-report]: no movement writes the report `plan.md`",
        ),
        ("personas:", "xyzzy:", "error[unknown-key]: `xyzzy` is no key of the piece"),
        // One place may as well be the one that is wrong.
        (
            "initial_movement: plan",
            "initial_movement: pln",
            "error[unknown-target]: `initial_movement` leads to `pln`",
        ),
        ("policy: tidy", "policy: tydi", "error[unknown-facet]: `policy` names `tydi`"),
    ];
    assert_eq!(not_said(&cases, &piece, found), "");
}

const PIECE: &str = ".takt/pieces/sound.yaml";

/// A piece in which each name is said twice.
const NAMED: &str = "\
name: named
max_iterations: 9
initial_movement: PLACE
personas:
  planner: You plan things.
  coder: You write code.
policies:
  tidy: Leave nothing behind.
movements:
  - name: plan
    persona: planner
    edit: false
    instruction_template: Plan.
    output_contracts:
      report:
        - name: plan.md
          format: |
            # Plan
            What is to be done.
    rules:
      - condition: Planned
        next: work
  - name: work
    persona: coder
    policy: tidy
    edit: true
    instruction_template: \"Read {report:plan.md}.\"
    rules:
      - condition: Done
        next: review
      - condition: Not clear
        next: plan
  - name: review
    persona: coder
    policy: tidy
    edit: false
    instruction_template: \"Compare with {report:plan.md}.\"
    rules:
      - condition: Good
        next: COMPLETE
      - condition: Bad
        next: work
";

/// What is wrong with rules that several movements have by an alias is wrong once.
#[test]
fn rules_by_an_alias() {
    let files = first(
        piece_support::sound(),
        "    rules:\n",
        "    rules:\n      - &way { condition: Zork, next: zork }\n",
    );
    let files = first(
        files,
        "  - name: implement\n",
        "  - name: again\n    edit: false\n    instruction_template: Again.\n    rules: [*way]\n  - name: implement\n",
    );
    let found = findings_of(piece_support::load(&files, |_| {}));
    assert_eq!(found.matches("leads to `zork`").count(), 1, "{found}");
}

/// What an alias repeats is written once.
#[test]
fn what_is_read_twice_is_wrong_once() {
    let files = first(
        piece_support::sound(),
        "    rules:\n",
        "    rules:\n      - &way { condition: Zork, nxt: implement }\n",
    );
    let files = first(
        files,
        "  - name: implement\n",
        "  - name: again\n    edit: false\n    instruction_template: Again.\n    rules: [*way]\n  - name: implement\n",
    );
    let found = findings_of(piece_support::load(&files, |_| {}));
    assert_eq!(found.matches("`nxt` is no key of a rule").count(), 1, "{found}");
    assert_eq!(found.matches("error").count(), 1, "{found}");
}

/// Where a `- ` is gone a movement, a member or a rule became part of the one before it.
#[test]
fn what_became_one_is_not_missed() {
    let found = |files: &Project| findings_of(piece_support::load(files, |_| {}));
    let cases = [
        ("  - name: implement\n", "    name: implement\n", "duplicate-key"),
        ("  - name: implement\n", "", "duplicate-key"),
        ("      - name: qa-review\n", "        name: qa-review\n", "duplicate-key"),
        (
            "      - name: arch-review\n",
            "      - output_contracts: {report: [{name: x.md}]}\n",
            "missing-key",
        ),
        ("      - name: qa-review\n", "", "duplicate-key"),
        ("      - condition: Cannot proceed\n", "        condition: Cannot proceed\n", "duplicate-key"),
    ];
    let found = not_one(&cases, piece_support::sound(), found);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// That it is to be parallel at all nobody knows; where it is, what has no effect has none for one reason.
#[test]
fn a_movement_that_asks_and_is_parallel() {
    let found = |files: &Project| findings_of(piece_support::load(files, |_| {}));
    let with = |parallel: &str| {
        let asks = "  - name: implement\n";
        found(&first(piece_support::sound(), asks, &format!("{asks}    parallel: {parallel}\n")))
    };
    for (parallel, code) in [("true", "wrong-type"), ("[]", "invalid-value")] {
        let found = with(parallel);
        assert!(found.lines().count() == 1 && found.contains(&format!("error[{code}]")), "{found}");
    }
    let found = with("[{name: m, edit: false, instruction_template: x, rules: [{condition: Done}]}]");
    assert_eq!(found.matches("stray-key").count(), 1, "{found}");
    assert!(found.contains("`persona`, `policy`, `knowledge`, `edit`"), "{found}");
}
