//! Keys of pieces, movements, reports and gates: their effect on prompts and results.

use serde_json::{Value, json};

use crate::support::{Project, visits};

/// A project with this piece and these files.
pub fn project(piece: &str, files: &[(&str, &str)]) -> Project {
    let project = Project::empty();
    project.write(".takt/pieces/rows.yaml", piece);
    for (path, text) in files {
        project.write(path, text);
    }
    project.write(".gitignore", "/script*\n");
    project.init();
    project
}

/// Runs it with these answers.
pub fn run(project: &Project, answers: &Value, more: &[&str]) -> (i32, Value) {
    project.script("script.json", answers);
    let args = ["run", "rows", "Paint the door", "--script", "script.json", "--json"];
    let ran = project.run(&[&args[..], more].concat());
    (ran.code, ran.json())
}

/// An answer that names an outcome.
pub fn said(step: &str, outcome: &str) -> Value {
    json!({"step": step, "output": {"outcome": outcome, "response": format!("{step} has spoken")}})
}

/// What has been found by `check`.
fn found(project: &Project) -> (i32, Vec<String>) {
    let ran = project.run(&["check", "rows", "--json"]);
    let json = ran.json();
    let text = |finding: &Value| format!("{}: {}", finding["severity"], finding["message"]).replace('"', "");
    (ran.code, json["diagnostics"].as_array().unwrap().iter().map(text).collect())
}

const TEXTS: &str = "
name: painters
description: Paints things
max_iterations: 7
initial_movement: paint
personas: { painter: ../personas/painter.md }
policies: { clean: ../policies/clean.md, quiet: ../policies/quiet.md }
knowledge: { doors: ../knowledge/doors.md }
instructions: { paint: ../instructions/paint.md }
report_formats: { done: ../formats/done.md }
movements:
  - name: look
    description: Looks at it
    policy: quiet
    edit: false
    pass_previous_response: true
    instruction_template: Look at it.
    rules:
      - { condition: Good, next: COMPLETE }
  - name: paint
    persona: painter
    persona_name: Master
    policy: [clean, quiet]
    knowledge: doors
    edit: true
    instruction: paint
    output_contracts:
      report:
        - { name: 01-done.md, format: done }
    quality_gates:
      - Nothing drips
    rules:
      - { condition: Painted, next: look }
";

fn painters() -> Project {
    let texts = [
        (".takt/personas/painter.md", "You paint."),
        (".takt/policies/clean.md", "Leave no drop."),
        (".takt/policies/quiet.md", "Make no noise."),
        (".takt/knowledge/doors.md", "Doors are wet for an hour."),
        (".takt/instructions/paint.md", "Paint it green."),
        (".takt/formats/done.md", "# Painted: {task}"),
        // The same names from elsewhere: paths are relative to the folder of the piece, not to the project's.
        ("personas/painter.md", "WRONG"),
        ("policies/clean.md", "WRONG"),
        ("instructions/paint.md", "WRONG"),
    ];
    project(TEXTS, &texts)
}

fn painted() -> Value {
    let reports = json!({"01-done.md": "# Painted: the door"});
    json!({"step": "paint", "output": {"outcome": "Painted", "response": "It is green now.", "reports": reports}})
}

#[test]
fn a_piece_has_a_name_a_description_and_an_initial_movement() {
    let project = painters();
    let (code, status) = run(&project, &json!([painted(), said("look", "Good")]), &[]);
    assert_eq!((code, &status["flow"], &status["iterations_max"]), (0, &json!("painters"), &json!(7)));
    let steps: Vec<Value> = visits(&status).iter().map(|row| row["step"].clone()).collect();
    assert_eq!(steps, ["paint", "look"], "`initial_movement`, not the first one");
    let prompts = project.prompts();
    assert!(prompts[0].contains("- Workflow: painters: Paints things\n- Step: paint (2 of 2)\n"));
    assert!(prompts[0].contains("- You are: Master\n- Iteration 1 of at most 7; visit 1 of this step\n"));
    assert!(prompts[1].contains("- Step: look (1 of 2): Looks at it\n- Iteration 2 of at most 7;"));
    assert_eq!(found(&project).0, 0);
}

#[test]
fn facet_keys_resolve_relative_to_the_piece() {
    let project = painters();
    assert_eq!(run(&project, &json!([painted(), said("look", "Good")]), &[]).0, 0);
    let answered = project.events("answered");
    assert!(answered[0]["system_prompt"].as_str().unwrap().contains("You paint."), "`persona`");
    assert!(answered[1]["system_prompt"].is_null(), "a movement without one has none");
    let prompts = project.prompts();
    let part = |prompt: &str, from: &str, to: &str| {
        let rest = &prompt[prompt.find(from).unwrap_or_else(|| panic!("{from}: {prompt}"))..];
        rest[..rest.find(to).unwrap_or(rest.len())].to_owned()
    };
    let policy = part(&prompts[0], "# Policy\n", "# Where you are");
    assert!(policy.contains("Leave no drop.\n\n---\n\nMake no noise."), "a list, in its order: {policy}");
    assert!(prompts[0].contains("The policy at the beginning holds to the end: clean, quiet."));
    assert!(part(&prompts[0], "# Knowledge", "# Instruction").contains("Doors are wet for an hour."));
    assert!(part(&prompts[0], "# Instruction", "# Task").contains("Paint it green."));
    assert!(part(&prompts[0], "# Reports", "# Quality").contains("# Painted: Paint the door"), "`format`");
    assert!(part(&prompts[0], "# Quality gates", "# Policy").contains("- Nothing drips\n"));
    let policy = part(&prompts[1], "# Policy\n", "# Where you are");
    assert!(policy.contains("Make no noise.") && !policy.contains("drop"), "one key: {policy}");
    assert!(part(&prompts[1], "# Instruction", "# Task").contains("Look at it."), "`instruction_template`");
    assert!(!prompts.concat().contains("WRONG"));
}

#[test]
fn pass_previous_response_controls_the_previous_answer() {
    let before = |key: &str| {
        let project = painters();
        project.write(".takt/pieces/rows.yaml", &TEXTS.replace("    pass_previous_response: true\n", key));
        assert_eq!(run(&project, &json!([painted(), said("look", "Good")]), &[]).0, 0);
        project.prompts()[1].contains("It is green now.")
    };
    assert!(before("    pass_previous_response: true\n"));
    assert!(before(""), "true by default");
    assert!(!before("    pass_previous_response: false\n"));
}

#[test]
fn a_template_holds_beside_an_instruction() {
    let project = painters();
    let both = "    instruction: paint\n    instruction_template: Paint it red.\n";
    project.write(".takt/pieces/rows.yaml", &TEXTS.replace("    instruction: paint\n", both));
    let said = "warning: both `instruction` and `instruction_template` are given; the template holds";
    assert_eq!(found(&project), (0, vec![said.to_owned()]));
    assert_eq!(run(&project, &json!([painted(), self::said("look", "Good")]), &[]).0, 0);
    assert!(project.prompts()[0].contains("Paint it red."));
    // Without one the task alone is done.
    project.write(".takt/pieces/rows.yaml", &TEXTS.replace("    instruction: paint\n", ""));
    assert_eq!(found(&project).0, 0);
}

/// The result of a movement that writes, by its permission.
#[test]
fn permission_mode_and_edit_control_writes() {
    let writes = |keys: &str| {
        let project = painters().outside();
        project.write(".takt/pieces/rows.yaml", &TEXTS.replace("    edit: true\n", keys));
        let mut answer = painted();
        answer["writes"] = json!([{"path": "door.txt", "content": "green"}]);
        let (code, status) = run(&project, &json!([answer, said("look", "Good")]), &[]);
        (code, status["state"].as_str().unwrap().to_owned())
    };
    let (may, may_not) = ((0, "completed".to_owned()), (1, "failed".to_owned()));
    assert_eq!(writes("    edit: true\n"), may);
    assert_eq!(writes("    edit: true\n    permission_mode: edit\n"), may);
    assert_eq!(writes("    permission_mode: edit\n"), may, "the mode alone says it");
    assert_eq!(writes("    edit: true\n    permission_mode: full\n"), may);
    assert_eq!(writes("    edit: false\n"), may_not);
    assert_eq!(writes("    edit: true\n    permission_mode: readonly\n"), may_not, "the stricter one");
    assert_eq!(writes("    edit: false\n    permission_mode: readonly\n"), may_not);
    assert_eq!(writes(""), may_not, "missing is false");
    let contradicts = TEXTS.replace("    edit: true\n", "    edit: false\n    permission_mode: edit\n");
    let project = painters();
    project.write(".takt/pieces/rows.yaml", &contradicts);
    assert_eq!(
        found(&project),
        (2, vec!["error: `permission_mode: edit` contradicts `edit: false`".to_owned()])
    );
}

const REPORTS: &str = "
name: writers
max_iterations: 4
initial_movement: write
report_formats: { plan: \"# The plan form\" }
movements:
  - name: write
    edit: false
    instruction_template: Write.
    output_contracts:
      report:
        - { name: 01-plan.md, format: plan }
        - name: deep/02-inline.md
          order: Keep it short.
          format: |
            # The inline form
            {what}
        - Decisions: 03-decisions.md
    rules:
      - { condition: Written, next: COMPLETE }
      - { condition: Not written, next: ABORT }
";

/// Three forms of naming a report, all of them files with their content; one ask each has its own form only.
#[test]
fn reports_in_all_three_forms_become_files() {
    let names = ["01-plan.md", "deep/02-inline.md", "03-decisions.md"];
    let contents = ["# Plan\nall", "# Inline", "# Decided"];
    let project = project(REPORTS, &[]);
    let reports: serde_json::Map<String, Value> =
        names.iter().zip(contents).map(|(name, content)| ((*name).to_owned(), json!(content))).collect();
    let answer =
        json!({"step": "write", "output": {"outcome": "Written", "response": "r", "reports": reports}});
    let (code, fused) = run(&project, &json!([answer]), &[]);
    let prompt = project.prompts()[0].clone();
    let parts: Vec<&str> = prompt.split("\n## ").skip(1).collect();
    assert!(parts[0].starts_with("01-plan.md\n") && parts[0].contains("# The plan form"), "{prompt}");
    assert!(parts[1].starts_with("deep/02-inline.md\n\nKeep it short.\n"), "{prompt}");
    assert!(parts[1].contains("# The inline form\n{what}") && !parts[1].contains("plan form"), "{prompt}");
    assert!(parts[2].starts_with("03-decisions.md (Decisions)\n") && !parts[2].contains("form:"), "{prompt}");
    let texts = |status: &Value| -> Vec<String> {
        let find = |name: &&str| {
            let reports = status["reports"].as_array().unwrap();
            let report = reports.iter().find(|report| report["name"] == **name).unwrap();
            project.read(report["path"].as_str().unwrap())
        };
        names.iter().map(find).collect()
    };
    assert_eq!((code, texts(&fused)), (0, contents.map(str::to_owned).to_vec()));
    // Asked for one by one.
    let report = |content: &str| json!({"step": "write", "kind": "report", "text": content});
    let answers = json!([
        {"step": "write", "kind": "work", "text": "I wrote it."},
        report(contents[0]), report(contents[1]), report(contents[2]),
        {"step": "write@judge", "output": {"outcome": "Written", "reason": "so it says"}},
    ]);
    let (code, apart) = run(&project, &answers, &["--phases", "separate"]);
    assert_eq!((code, texts(&apart)), (0, contents.map(str::to_owned).to_vec()));
    let asks = project.prompts();
    let has = |at: usize, text: &str| asks[at].contains(text);
    assert!(has(1, "# The plan form") && !has(1, "inline form"), "{}", asks[1]);
    assert!(has(2, "Keep it short.") && has(2, "# The inline form") && !has(2, "plan form"), "{}", asks[2]);
    assert!(has(3, "# 03-decisions.md (Decisions)") && !has(3, "form:"), "{}", asks[3]);
}

/// A missing required report is requested again; without it the run fails.
#[test]
fn a_missing_report_is_requested_again() {
    let project = project(REPORTS, &[]);
    let bare = json!({"step": "write", "output": {"outcome": "Written", "response": "r"}});
    let (code, status) = run(&project, &json!([bare, bare]), &[]);
    assert_eq!((code, &status["state"], &status["asks"]["repair"]), (1, &json!("failed"), &json!(1)));
    assert!(status["reason"].as_str().unwrap().contains("reports"), "{status:#}");
}

const TOGETHER: &str = "
name: together
max_iterations: 6
initial_movement: reviews
personas: { looker: You look. }
movements:
  - name: reviews
    parallel:
      - name: style
        persona: looker
        edit: false
        instruction_template: Look at the style.
        rules:
          - { condition: fine, next: ABORT }
          - { condition: bad }
      - name: tests
        edit: false
        instruction_template: Look at the tests.
        rules:
          - { condition: fine }
          - { condition: bad }
    rules:
      - { condition: all(\"fine\"), next: say }
      - { condition: any(\"bad\"), next: ABORT }
  - name: say
    edit: false
    instruction_template: Say it.
    rules:
      - { condition: Said, next: COMPLETE }
";

/// Members are asked at once, each with its own instruction; their rules name outcomes, and only the parent's lead on.
#[test]
fn members_answer_and_their_parent_routes() {
    let project = project(TOGETHER, &[]);
    let answers = json!([said("style", "fine"), said("tests", "fine"), said("say", "Said")]);
    let (code, status) = run(&project, &answers, &[]);
    assert_eq!(code, 0, "{status:#}");
    let rows: Vec<String> = visits(&status)
        .iter()
        .map(|row| format!("{} {} {}", row["step"], row["outcome"], row["target"]).replace('"', ""))
        .collect();
    assert_eq!(
        rows,
        ["style fine null", "tests fine null", r"reviews all(\fine\) say", "say Said @completed"],
        "`next` of a member leads nowhere"
    );
    assert_eq!(status["iterations"], 2, "all members are one iteration");
    let last = project.prompts().pop().unwrap();
    assert!(last.contains("style has spoken") && last.contains("tests has spoken"), "{last}");
    let prompts = project.prompts();
    let of = |text: &str| prompts.iter().filter(|prompt| prompt.contains(text)).count();
    assert_eq!((of("Look at the style."), of("Look at the tests.")), (1, 1));
    assert_eq!(found(&project).1, ["warning: `next` has no effect in a rule of a member"]);
    let answers = json!([said("style", "fine"), said("tests", "bad")]);
    assert_eq!(run(&project, &answers, &[]).1["state"], "aborted");
}

/// A member's command is run after its answer while others are still at work, and what it finds that member mends. What
/// commands change beside somebody who only reads is nobody's violation.
#[test]
fn gate_commands_of_members_run_and_retry_in_parallel() {
    let gate = "        edit: true\n        quality_gates: [{ command: echo was run >> made.txt && test -f styled.txt }]\n";
    let piece = TOGETHER
        .replacen("        edit: false\n", gate, 1)
        .replace("edit: false", "permission_mode: readonly");
    let project = project(&piece, &[]);
    let mut slow = said("tests", "fine");
    slow["delay_ms"] = json!(2_000);
    let mut mended = said("style", "fine");
    mended["kind"] = json!("remedy");
    mended["writes"] = json!([{"path": "styled.txt", "content": "x"}]);
    let answers = json!([said("style", "fine"), slow, mended, said("say", "Said")]);
    let (code, status) = run(&project, &answers, &[]);
    assert_eq!((code, &status["state"]), (0, &json!("completed")), "{status:#}");
    assert_eq!((&status["asks"]["work"], &status["asks"]["remedy"]), (&json!(3), &json!(1)));
    let passed: Vec<bool> =
        project.events("command_finished").iter().map(|event| event["passed"].as_bool().unwrap()).collect();
    assert_eq!((passed, project.read("made.txt")), (vec![false, true], "was run\nwas run\n".to_owned()));
    let told = project.run(&["log", "last"]).stdout;
    let failed = told.lines().find(|line| line.contains("failed: exit 1")).unwrap_or(&told);
    assert!(failed.contains("style #1"), "whose it is: {failed}");
    let changed = &visits(&status).into_iter().find(|row| row["step"] == "reviews").unwrap()["changed_files"];
    assert_eq!(*changed, json!(["made.txt", "styled.txt"]));
    // Whose commands keep failing has failed, and matches nothing.
    project.write("cuegate.toml", "[run]\nquality_gate_retries = 0\n");
    std::fs::remove_file(project.path().join("styled.txt")).unwrap();
    let (code, status) = run(&project, &json!([said("style", "fine"), said("tests", "fine")]), &[]);
    assert_eq!(code, 1, "{status:#}");
    assert_eq!(status["reason"], "no rule of `reviews` matched: `style` failed, `tests` fine");
}

/// Gate commands may write files; members that only read may not, whether a sibling has gate commands or not.
#[test]
fn a_gate_command_does_not_lift_the_boundary_of_its_siblings() {
    let gate = "        edit: false\n        quality_gates: [{ command: echo was run >> made.txt }]\n";
    let project = project(&TOGETHER.replacen("        edit: false\n", gate, 1), &[]).outside();
    let answers = |delayed: &str, tests: Value| {
        let mut answers = json!([said("style", "fine"), tests, said("say", "Said")]);
        answers[if delayed == "style" { 0 } else { 1 }]["delay_ms"] = json!(300);
        answers
    };
    let mut writes = said("tests", "fine");
    writes["writes"] = json!([{"path": "sneaked.txt", "content": "x"}]);
    for delayed in ["style", "tests"] {
        let (code, status) = run(&project, &answers(delayed, writes.clone()), &[]);
        assert_eq!((code, &status["state"]), (1, &json!("failed")), "{status:#}");
        let reason = status["reason"].as_str().unwrap();
        assert!(reason.contains("`tests` may not write") && reason.contains("`sneaked.txt`"), "{reason}");
        std::fs::remove_file(project.path().join("sneaked.txt")).unwrap();
        let (code, status) = run(&project, &answers(delayed, said("tests", "fine")), &[]);
        assert_eq!((code, &status["state"]), (0, &json!("completed")), "{status:#}");
    }
}

/// The agent that a movement names is called, unless a flag names one.
#[test]
fn a_script_answers_for_the_provider_of_a_movement() {
    let project = painters();
    project.write(
        ".takt/pieces/rows.yaml",
        &TEXTS.replace("    persona_name: Master\n", "    provider: codex\n"),
    );
    assert_eq!(found(&project), (0, Vec::new()));
    project.script("script.json", &json!([painted(), said("look", "Good")]));
    let ran = project.run(&["run", "rows", "Paint the door", "--script", "script.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.events("answered")[0]["provider"], "scripted");
}
