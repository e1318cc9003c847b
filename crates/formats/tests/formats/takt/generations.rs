//! Spellings of other versions of TAKT.

use cuegate_flow::model::Target;
use cuegate_formats::upgrade_takt_workflow;

use super::takt_support::{ask, prompt, step};
use super::workflows::{FILE, load, one};
use crate::support::{dump, findings_of};

#[test]
fn the_generation_is_told_by_the_keys() {
    let format = |text: &str| load(&[(FILE, text)]).run.format;
    assert_eq!(format(&one("")), "TAKT workflow");
    let piece = |more: &str| {
        format!(
            "name: main\nmax_movements: 5\nmovements:\n  - name: a\n    edit: false\n{more}    rules: [{{ condition: done, next: COMPLETE }}]\n"
        )
    };
    assert_eq!(format(&piece("    agent: ./a.md\n")), "TAKT workflow with the keys of 0.7");
    assert_eq!(format(&piece("")), "TAKT workflow with the keys of 0.8");
    assert_eq!(format(&piece("    required_permission_mode: edit\n")), "TAKT workflow with the keys of 0.33");
}

/// A workflow with all that was spelled otherwise before version 0.8.
const OLDEST: &str = "name: main\nmax_iterations: 9\ninitial_step: plan\nsteps:
  - { name: plan, edit: false, agent: ../agents/planner.md, agent_name: Planner, permission_mode: default, report: 00-plan.md,
      rules: [{ condition: clear, next: work }], instruction_template: Plan. }
  - { name: work, edit: true, agent: ~/.takt/agents/coder.md, permission_mode: acceptEdits,
      report: [{ Scope: 01-scope.md }, { name: 02-log.md, format: A log. }],
      rules: [{ condition: done, next: reviews }], instruction_template: Work. }
  - name: reviews
    parallel:
      - { name: first, edit: false, agent: ../agents/planner.md, report: { name: 03-review.md, order: Say it., format: A list. },
          rules: [{ condition: good }, { condition: bad }], instruction_template: Review. }
    rules: [{ condition: all(\"good\"), next: free }, { condition: any(\"bad\"), next: work }]
  - { name: free, edit: true, permission_mode: bypassPermissions, rules: [{ condition: done, next: COMPLETE }],
      instruction_template: Run. }
loop_monitors:
  - { cycle: [work, reviews], judge: { agent: ../agents/planner.md, instruction_template: Judge.,
      rules: [{ condition: goes on, next: work }, { condition: does not, next: ABORT }] } }
";

#[test]
fn the_oldest_spellings_are_the_same_flow() {
    let pages = [(".takt/agents/planner.md", "You plan."), ("~/.takt/agents/coder.md", "You code.")];
    let load_text = |text: &str| load(&[&[(FILE, text)][..], &pages].concat());
    let older = load_text(OLDEST);
    assert_eq!(older.run.format, "TAKT workflow with the keys of 0.7");
    let later = [
        ("max_iterations", "max_steps"),
        ("agent_name:", "persona_name:"),
        (" agent:", " persona:"),
        (" permission_mode: default,", ""),
        ("acceptEdits", "edit"),
        ("bypassPermissions", "full"),
        ("report: 00-plan.md", "output_contracts: { report: [{ name: 00-plan.md }] }"),
        (
            "report: [{ Scope: 01-scope.md }, { name: 02-log.md, format: A log. }]",
            "output_contracts: { report: [{ Scope: 01-scope.md }, { name: 02-log.md, format: A log. }] }",
        ),
        (
            "report: { name: 03-review.md, order: Say it., format: A list. }",
            "output_contracts: { report: [{ name: 03-review.md, order: Say it., format: A list. }] }",
        ),
    ];
    let text = later.iter().fold(OLDEST.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    let newer = load_text(&text);
    assert_eq!(newer.run.format, "TAKT workflow");
    assert_eq!(dump(&newer.draft), dump(&older.draft));
    assert_eq!(findings_of(older), "");
    assert_eq!(findings_of(newer), "");

    // A name is a file of the folder of that time as well.
    let named = load_text(&OLDEST.replace("../agents/planner.md", "planner"));
    assert_eq!(findings_of(named), "");

    // Of two spellings none is dropped silently, and `~` opens no other folder of the user.
    for (from, to, says) in [
        ("agent_name: Planner", "persona: x", "error[conflicting-keys]: `agent` and `persona` mean the same"),
        ("report: 00-plan.md", "report: 7", "`report`"),
        ("report: 00-plan.md", "report: ../plan.md", "error[report-name]: `../plan.md` cannot be the name"),
        (
            "report: 00-plan.md",
            "report: a.md, output_contracts: {}",
            "`report` and `output_contracts` mean the same",
        ),
        ("~/.takt/agents/coder.md", "~/.takt/../coder.md", "error[escapes-root]: `~/.takt/../coder.md`"),
        ("~/.takt/agents/coder.md", "~/.taktx/coder.md", "error[escapes-root]: `~/.taktx/coder.md`"),
    ] {
        let found = findings_of(load_text(&OLDEST.replacen(from, to, 1)));
        assert!(found.contains(says), "{to}: {found}");
    }
}

/// The same in blocks, with comments.
const OLDEST_IN_BLOCKS: &str = "# How we work.
name: main # by Ann
max_iterations: 9
initial_movement: plan
movements:
  # First of all
  - name: plan
    edit: false
    agent: ../agents/planner.md # who plans
    permission_mode: default
    report: 00-plan.md # the plan
    instruction_template: |
      Plan {movement_iteration} of {max_iterations}.

    rules:
      - when: true # always
        next: work

  - permission_mode: acceptEdits # may edit
    name: work
    edit: true
    report:
      # the reports
      - Scope: 01-scope.md
      - name: 02-log.md
        format: |
          # Log

            - what

    # and then
    rules:
    - condition: done
      next: reviews
    instruction_template: Work
  - name: reviews
    parallel:
      - name: first
        edit: false
        agent: ../agents/planner.md
        report:
          # about the review
          name: 03-review.md # a name
          format: |
            # Review
              indented
        rules:
          - condition: good
          - condition: bad
        instruction_template: \"Review it now.\"
    rules:
      - { condition: all(\"good\"), next: COMPLETE }
      - { condition: any(\"bad\"), next: work }
loop_monitors:
  - cycle: [work, reviews]
    judge:
      agent: ../agents/planner.md
      instruction_template: Judge
      rules: [{ condition: goes on, next: work }, { condition: 'ai(\"does not\")', next: ABORT }]
";

#[test]
fn an_upgraded_workflow_is_the_same_flow_with_its_comments() {
    let pages = [(".takt/agents/planner.md", "You plan."), ("~/.takt/agents/coder.md", "You code.")];
    let load_text = |text: &str| load(&[&[(FILE, text)][..], &pages].concat());
    let windows = OLDEST_IN_BLOCKS.replace('\n', "\r\n");
    for older in [OLDEST, OLDEST_IN_BLOCKS, &windows] {
        let upgraded = upgrade_takt_workflow(FILE, older).unwrap();
        let newer = load_text(&upgraded.text);
        assert_eq!(newer.run.format, "TAKT workflow", "{}", upgraded.text);
        assert_eq!(dump(&newer.draft), dump(&load_text(older).draft), "{}", upgraded.text);
        assert_eq!(findings_of(newer), "", "{}", upgraded.text);
        let comments = |text: &str| text.matches(" # ").count();
        assert_eq!(comments(&upgraded.text), comments(older));
        let left = upgraded.text.contains("ai(").then(|| {
            vec![(59, "TAKT refuses `ai(\"…\")` today: write its text as the condition".to_owned())]
        });
        assert_eq!(upgraded.left, left.unwrap_or_default(), "{}", upgraded.text);
        let again = upgrade_takt_workflow(FILE, &upgraded.text).unwrap();
        assert_eq!((again.changes, &again.text), (0, &upgraded.text));
        let is_mixed = upgraded.text.contains("\r\n") && upgraded.text.replace("\r\n", "").contains('\n');
        assert!(!is_mixed, "{:?}", upgraded.text);
    }
    // Where comments, quotes and blocks stand changes nothing.
    let report = |written: &str| OLDEST.replacen("report: 00-plan.md", written, 1);
    let in_block =
        |key: &str, written: &str| OLDEST_IN_BLOCKS.replacen(&format!("{key}\n"), &format!("{written}\n"), 1);
    for older in [
        report("report: 'a-{step_iteration}.md'"),
        report("report: [{ name: a.md, format: 'Round {movement_iteration}', order: '{max_iterations}' }]"),
        in_block("    report: 00-plan.md # the plan", "    report: a-{x}.md # the plan"),
        in_block(
            "    report: 00-plan.md # the plan",
            "    report:\n    # one\n    - Label: b.md\n    # two\n    - name: c.md\n      format: F.",
        ),
        in_block("    instruction_template: Work", "    instruction_template: Work # keep it short"),
        in_block("      - when: true # always", "      - when: >-\n          true\n          && true"),
    ] {
        let before = load_text(&older);
        let upgraded = upgrade_takt_workflow(FILE, &older).unwrap();
        let after = load_text(&upgraded.text);
        assert_eq!(dump(&after.draft), dump(&before.draft), "{older}\n{}", upgraded.text);
        assert_eq!(findings_of(after), findings_of(before), "{older}\n{}", upgraded.text);
        for gone in ["{max_iterations}", "{movement_iteration}"] {
            assert!(!upgraded.text.contains(gone), "{}", upgraded.text);
        }
    }
    // What cannot be spelled otherwise is named and stays.
    for (text, line, says) in [
        ("steps:\n  - { name: a, instruction_template: word }\n", 2, "a word alone is the name of a file"),
        ("max_iterations: 1\nmax_steps: 2\n", 1, "`max_steps` is there as well"),
        ("steps:\n  - name: a\n    model: x\n", 3, "move it to `runtime.yaml`"),
        ("steps:\n  - instruction: a\n    instruction_template: b c\n", 3, "`instruction_template` holds"),
        ("steps:\n  - allowed_tools: [Read]\n", 2, "TAKT takes tools from `capabilities`"),
        ("tags: [x]\n", 1, "TAKT knows no `tags` of a workflow"),
        ("a: &r x.md\nsteps:\n  - report: *r\n    name: a\n", 3, "an anchor or an alias"),
        ("steps:\n  - permission_mode: &m acceptEdits\n", 2, "an anchor or an alias"),
        ("steps:\n  - report: # why\n      a.md\n", 2, "write the report in the line of its key"),
    ] {
        let upgraded = upgrade_takt_workflow(FILE, text).unwrap();
        assert!(upgraded.left[0].0 == line && upgraded.left[0].1.contains(says), "{:?}", upgraded.left);
        assert_eq!((upgraded.changes, &*upgraded.text), (0, text));
    }
    for broken in ["a: [", "[1, 2]", "text"] {
        let (findings, _) = upgrade_takt_workflow(FILE, broken).unwrap_err();
        assert_eq!(findings.len(), 1, "{findings:?}");
    }
}

#[test]
fn spellings_of_other_versions_are_read() {
    let main = "name: main\nschemas: {}\nsteps:\n\
        \x20 - { name: work, persona: sub/coder, policy: old, instruction: Do it., capabilities: [edit], structured_output: { schema_ref: verdict },\n\
        \x20     rules: [{ when: 'structured.work.ok == true', next: part, command_gates: skip }, { when: true, next: ABORT }] }\n\
        \x20 - { name: part, kind: workflow_call, call: ./parts/part, rules: [{ condition: COMPLETE, next: COMPLETE }] }\n";
    let part = "name: part\nsubworkflow: { callable: true }\nmax_steps: 3\nsteps:\n\
        \x20 - { name: do, edit: false, instruction: '{task}', rules: [{ condition: done, next: COMPLETE }] }\n";
    let schema = r#"{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}"#;
    let mut texts = vec![
        (FILE, main),
        (".takt/facets/personas/sub/coder.md", "You code."),
        (".takt/policies/old.md", "An old folder."),
        (".takt/schemas/verdict.json", schema),
        (".takt/workflows/parts/part.yaml", part),
    ];
    let loaded = load(&texts);
    let work = step(&loaded.draft, "work");
    assert!(work.boundary.permission.may_write());
    assert!(prompt(&ask(&loaded.draft, "work").prompt).contains("An old folder."));
    assert!(matches!(&work.edges[0].to, Target::Step(to) if *to.text == *"part/do"));
    let found = findings_of(loaded);
    assert!(
        found.lines().count() == 1 && found.contains("`max_steps` is missing; a run ends after 10"),
        "{found}"
    );

    // TAKT takes a name that it does not find for the text.
    texts.remove(2);
    assert!(findings_of(load(&texts)).contains("error[unknown-name]: `policy` names `old`"));
    texts.push(("<takt>/en/workflows/default.yaml", "name: default\n"));
    let loaded = load(&texts);
    assert!(prompt(&ask(&loaded.draft, "work").prompt).contains("\nold\n"));
    let found = findings_of(loaded);
    let expected =
        "warning[unknown-name]: `policy` names `old`, which is not found; the name itself becomes the text";
    assert!(found.contains(expected), "{found}");
}
