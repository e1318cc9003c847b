//! Pieces in one string, findings and drafts as text.

use cuegate_dialect::{Loaded, PieceOptions, load_piece};
use cuegate_flow::{Act, Ask, Draft, Name, Step, Template};

use crate::support::{Case, Project, edit, findings_of, project};
use std::fmt::Write as _;

/// Where the sound piece lies.
pub const FILE: &str = ".takt/pieces/sound.yaml";

/// Loads a piece.
pub fn load(files: &Project, change: impl FnOnce(&mut PieceOptions)) -> Loaded {
    let mut options = PieceOptions { file: FILE.to_owned(), ..PieceOptions::default() };
    change(&mut options);
    load_piece(files, &options)
}

/// A step of a draft.
pub fn step<'d>(draft: &'d Draft, name: &str) -> &'d Step<Name> {
    draft.steps.iter().find(|step| &*step.name == name).unwrap_or_else(|| panic!("there is no step {name}"))
}

/// How a step asks.
pub fn ask<'d>(draft: &'d Draft, name: &str) -> &'d Ask {
    match &step(draft, name).act {
        Act::Ask(ask) => ask,
        other => panic!("{name} does not ask: {other:?}"),
    }
}

/// A prompt as it reads.
pub fn prompt(template: &Template) -> String {
    crate::support::template(template).trim_matches(['“', '”']).replace('⏎', "\n")
}

/// A draft as text, without what is said.
pub fn structure(draft: &Draft) -> String {
    let lines = crate::support::dump(draft);
    let silent = |line: &&str| !line.starts_with("  prompt ") && !line.starts_with("  system ");
    let cut = |line: &str| line.split(", with “").next().unwrap_or_default().to_owned();
    lines.lines().filter(silent).map(|line| cut(line) + "\n").collect()
}

/// The sound piece after some replacements.
pub fn changed(edits: &[(&str, &str)]) -> Project {
    edits.iter().fold(sound(), |files, (from, to)| edit(&files, from, to))
}

/// What is found in the sound piece after some replacements.
pub fn broken(edits: &[(&str, &str)]) -> String {
    findings_of(load(&changed(edits), |_| {}))
}

/// What is found in each case; in the sound piece itself nothing is.
pub fn table(cases: &[Case<'_>]) -> String {
    let mut text = String::new();
    for (name, edits) in cases {
        let found = broken(edits);
        writeln!(text, "# {name}").unwrap();
        text.push_str(if found.is_empty() { "nothing\n" } else { &found });
    }
    text
}

/// The files of the sound piece.
pub fn sound() -> Project {
    project(SOUND)
}

/// A sound piece: every key that there is, and nothing to find.
pub const SOUND: &str = r##"
//- .takt/pieces/sound.yaml
name: sound
description: A piece with everything
max_iterations: 12
policies:
  coding: ../policies/coding.md
  careful: Change one thing at a time.
personas:
  coder: ../personas/coder.md
  reviewer: ../personas/reviewer.md
instructions:
  implement: ../instructions/implement.md
report_formats:
  plan: ../formats/plan.md
knowledge:
  domain: ../knowledge/domain.md
initial_movement: plan
movements:
  - name: plan
    description: Think first
    persona: reviewer
    persona_name: Planner
    edit: false
    allowed_tools: [Read, Grep]
    model: opus
    instruction_template: |
      Plan {task}. Round {movement_iteration}.
    output_contracts:
      report:
        - name: 00-plan.md
          order: Be short.
          format: plan
    rules:
      - condition: The plan stands
        next: implement
      - condition: Something is unclear
        next: implement
        requires_user_input: true
        interactive_only: true
        appendix: |
          What is unclear?
          - {Question 1}
      - condition: ai("the task is impossible")
        next: ABORT
  - name: implement
    persona: coder
    policy: [coding, careful]
    knowledge: domain
    edit: true
    permission_mode: edit
    session: refresh
    pass_previous_response: true
    instruction: implement
    quality_gates:
      - All tests pass
      - command: cargo test
        timeout_ms: 90000
    output_contracts:
      report:
        - Scope: 01-scope.md
        - Decisions: 02-decisions.md
    rules:
      - condition: Done
        next: reviewers
      - condition: Cannot proceed
        next: ABORT
  - name: reviewers
    parallel:
      - name: arch-review
        persona: reviewer
        edit: false
        instruction_template: Review the architecture.
        rules:
          - condition: approved
          - condition: needs_fix
      - name: qa-review
        edit: false
        pass_previous_response: false
        instruction_template: Review the tests.
        rules:
          - condition: approved
          - condition: needs_fix
    rules:
      - condition: all("approved")
        next: COMPLETE
      - condition: any("needs_fix")
        next: implement
      - condition: ai("the reviewers contradict each other")
        next: plan
loop_monitors:
  - cycle: [implement, reviewers]
    threshold: 2
    judge:
      persona: reviewer
      instruction_template: |
        {cycle_count} rounds. See {report:01-scope.md}.
      rules:
        - condition: Healthy
          next: implement
        - condition: Unproductive
          next: ABORT
//- .takt/personas/coder.md
You write code.
//- .takt/personas/reviewer.md
You look closely.
//- .takt/policies/coding.md
# Coding

Simple before easy. {task} stays text here.
//- .takt/knowledge/domain.md
Money is counted in cents.
//- .takt/instructions/implement.md
Follow {report:00-plan.md}. {"json": true} and {Question 2} are text.
//- .takt/formats/plan.md
```markdown
# Plan for {iteration}
```
"##;
