//! Runs of pieces.

use serde_json::{Value, json};

use crate::support::{Project, visits};

/// A plan with a report, work that is judged, two reviewers, and a rule that asks a person.
const PIECE: &str = r##"
name: small
max_iterations: 12
initial_movement: plan
personas:
  planner: ../personas/the-planner.md
movements:
  - name: plan
    persona: planner
    edit: false
    instruction_template: "Plan it. Before: {user_inputs}"
    output_contracts:
      report:
        - name: 00-plan.md
          format: "# Plan\n{what}"
    rules:
      - condition: Planned
        next: work
      - condition: Unclear
        next: plan
        requires_user_input: true
        appendix: |
          Which file is meant?
  - name: work
    edit: true
    session: refresh
    instruction_template: |
      Do this: {report:00-plan.md}
      Visit {movement_iteration} of {task}; not yet: {report:no.md}
    quality_gates:
      - { command: "test -f made.txt" }
    rules:
      - condition: Done
        next: reviewers
      - condition: ai("nothing was to be done")
        next: COMPLETE
      - condition: Needs a decision
        next: work
        requires_user_input: true
  - name: reviewers
    parallel:
      - name: style
        edit: false
        instruction_template: Review the style.
        rules:
          - condition: approved
          - condition: needs_fix
      - name: tests
        edit: false
        instruction_template: Review the tests.
        rules:
          - condition: approved
          - condition: needs_fix
    rules:
      - condition: all("approved")
        next: COMPLETE
      - condition: any("needs_fix")
        next: work
loop_monitors:
  - cycle: [work, reviewers]
    threshold: 2
    judge:
      persona: planner
      instruction_template: "{cycle_count} times round."
      rules:
        - condition: Healthy
          next: work
        - condition: Stuck
          next: ABORT
"##;

fn project() -> Project {
    let project = Project::empty();
    project.write(".takt/pieces/small.yaml", PIECE);
    project.write(".takt/personas/the-planner.md", "You plan.\n");
    project.write(".gitignore", "/script*\n/made.txt\n");
    project.init();
    project
}

fn planned() -> Value {
    json!({"step": "plan", "persona": "the-planner",
        "output": {"outcome": "Planned", "response": "a plan", "reports": {"00-plan.md": "# Plan\nmade.txt"}}})
}

fn done() -> Value {
    json!({"step": "work", "output": {"outcome": "Done", "response": "did it"},
        "writes": [{"path": "made.txt", "content": "x"}]})
}

fn review(step: &str, outcome: &str) -> Value {
    json!({"step": step, "output": {"outcome": outcome, "response": "looked"}})
}

/// The rows of the last run: step, outcome, target, asks.
fn rows(status: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let row = |row: &Value| {
        format!(
            "{}: {} → {} ({})",
            text(&row["step"]),
            text(&row["outcome"]),
            text(&row["target"]),
            row["asks"]
        )
    };
    visits(status).iter().map(row).collect()
}

#[test]
fn one_ask_a_movement() {
    let project = project();
    project.script(
        "script.json",
        &json!([planned(), done(), review("style", "approved"), review("tests", "approved")]),
    );
    let ran = project.run(&["run", "small", "Make it", "--script", "script.json", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let status = ran.json();
    assert_eq!(status["dialect"], "takt");
    assert_eq!(
        rows(&status),
        [
            "plan: Planned → work (1)",
            "work: Done → reviewers (1)",
            "style: approved → - (1)",
            "tests: approved → - (1)",
            "reviewers: all(\"approved\") → @completed (0)",
        ]
    );
    let report = &status["reports"][0];
    assert_eq!((report["name"].as_str(), report["visit"].as_u64()), (Some("00-plan.md"), Some(1)));
    assert_eq!(project.read(report["path"].as_str().unwrap()), "# Plan\nmade.txt");
    assert_eq!(project.run(&["report", "last", "00-plan.md"]).stdout, "# Plan\nmade.txt\n");
    assert_eq!(project.run(&["report", "last", "none.md"]).code, 2);
    let whole = project.run(&["report", "last"]).stdout;
    assert!(whole.contains("\n- reports/00-plan.md (plan #1)\n"), "{whole}");
    let work = &project.prompts()[1];
    assert!(work.contains("made.txt</data") || work.contains("made.txt\n</data"), "{work}");
    assert!(work.contains("Visit 1 of Make it; not yet: (no report yet: no.md)"), "{work}");
    let system = project.events("answered")[0]["system_prompt"].as_str().unwrap().to_owned();
    assert!(system.contains("You plan."), "{system}");
}

#[test]
fn plain_text_answers_are_tagged_reported_and_judged() {
    let project = project();
    project.script(
        "script.json",
        &json!([
            {"step": "plan", "text": "I have a plan. [PLAN:1]"},
            {"step": "plan", "kind": "report", "text": "```markdown\n# Plan\n```"},
            {"step": "work", "text": "Nothing was there to do."},
            {"step": "work@ai", "kind": "judge", "output": {"outcome": "nothing was to be done", "reason": "so it says"}},
        ]),
    );
    project.write("made.txt", "x");
    let ran = project.run(&["run", "small", "Make it", "--script", "script.json", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let status = ran.json();
    assert_eq!(
        rows(&status),
        ["plan: Planned → work (2)", "work: ai(\"nothing was to be done\") → @completed (2)"]
    );
    assert_eq!((&status["asks"]["report"], &status["asks"]["judge"]), (&json!(1), &json!(1)));
    assert_eq!(project.read(status["reports"][0]["path"].as_str().unwrap()), "# Plan");
}

#[test]
fn separate_phases_survive_a_resume() {
    let project = project();
    project.script("script.json", &json!([{"step": "plan", "kind": "work", "text": "planned"}]));
    let args = ["run", "small", "Make it", "--phases", "separate", "--script", "script.json"];
    assert_eq!(project.run(&args).code, 4, "the script is used up");
    project.script(
        "script-2.json",
        &json!([
            {"step": "plan", "kind": "report", "text": "# Plan"},
            {"step": "plan@judge", "output": {"outcome": "Planned", "reason": "it is there"}},
            {"step": "work", "text": "did", "writes": [{"path": "made.txt", "content": "x"}]},
            {"kind": "judge", "output": {"outcome": "none", "reason": "no"}},
            {"kind": "judge", "output": {"outcome": "Done", "reason": "yes"}},
            {"step": "style", "text": "good"}, {"step": "tests", "text": "fine [tests:2]"},
            {"step": "style@judge", "output": {"outcome": "approved", "reason": "good"}},
            {"step": "tests@judge", "output": {"outcome": "approved", "reason": "a quotation"}},
        ]),
    );
    let ran = project.run(&["resume", "last", "--script", "script-2.json", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let asks = &ran.json()["asks"];
    assert_eq!((&asks["work"], &asks["report"], &asks["judge"]), (&json!(4), &json!(1), &json!(5)));
    assert_eq!(project.run(&["run", "--phases", "separate", ".agent"]).code, 2);
}

#[test]
fn a_person_is_asked_and_answers_later() {
    let project = project();
    project.script(
        "script.json",
        &json!([
            {"step": "plan", "output": {"outcome": "Unclear", "response": "?", "reports": {"00-plan.md": "-"}}},
            {"step": "plan", "output": {"blocked": "no network"}},
            planned(), done(), review("style", "approved"), review("tests", "approved"),
        ]),
    );
    let ran = project.run(&["run", "small", "Make it", "--script", "script.json"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("Which file is meant?"), "{}", ran.stderr);
    assert_eq!(project.run(&["answer", "last", "made.txt", "--no-continue"]).code, 0);
    assert_eq!(project.run(&["resume", "last"]).code, 3, "it is blocked now");
    let ran = project.run(&["answer", "last", "it is back", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let prompts = project.prompts();
    assert!(prompts[1].contains("made.txt") && !prompts[1].contains("it is back"), "{}", prompts[1]);
    assert!(prompts[2].contains("made.txt\nit is back"), "{}", prompts[2]);
    // Both versions are kept; the plain name is the newest.
    let reports = ran.json()["reports"].clone();
    let paths: Vec<&str> =
        reports.as_array().unwrap().iter().map(|at| at["path"].as_str().unwrap()).collect();
    let texts: Vec<String> = paths.iter().map(|path| project.read(path)).collect();
    assert_eq!(texts, ["-", "# Plan\nmade.txt"]);
}

#[test]
fn failed_gates_are_retried_and_loops_are_monitored() {
    let project = project();
    project.script(
        "script.json",
        &json!([
            planned(),
            {"step": "work", "output": {"outcome": "Done", "response": "not really"}},
            {"step": "work", "kind": "remedy", "output": {"outcome": "Done", "response": "now"},
                "writes": [{"path": "made.txt", "content": "x"}]},
            review("style", "needs_fix"), review("tests", "approved"),
            done(), review("style", "needs_fix"), review("tests", "approved"),
            done(), review("style", "needs_fix"), review("tests", "approved"),
            {"step": "monitor:work+reviewers", "output": {"outcome": "Stuck", "reason": "no progress"}},
        ]),
    );
    let ran = project.run(&["run", "small", "Make it", "--script", "script.json", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let status = ran.json();
    assert_eq!(status["state"], "aborted");
    let rows = rows(&status);
    assert!(rows.contains(&"monitor:work+reviewers: Stuck → @aborted (1)".to_owned()), "{rows:#?}");
    let last = status["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(last["overridden_by"], "monitor:work+reviewers");
    assert_eq!(status["asks"]["remedy"], 1);
}

#[test]
fn a_mock_scenario_is_a_script() {
    let project = project();
    project.write(
        "script.json",
        &json!([
            {"persona": "the-planner", "status": "done", "content": "planned"},
            {"persona": "conductor", "status": "done", "content": "[PLAN:1]"},
            {"content": "# Plan"},
            {"content": "done [WORK:1]"},
            {"content": "[STYLE:1]"},
            {"content": "[TESTS:1]"},
        ])
        .to_string(),
    );
    project.write("made.txt", "x");
    let ran = project.run(&["run", "small", "Make it", "--script", "script.json", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["asks"]["judge"], 1);
}

#[test]
fn a_killed_and_resumed_piece_ends_the_same() {
    let project = project();
    let slow = |mut answer: Value| {
        answer["delay_ms"] = json!(60_000);
        answer
    };
    project.script("script.json", &json!([planned(), slow(done())]));
    let mut job = project.start(&["run", "small", "Make it", "--script", "script.json"]);
    crate::support::until("the report is there", || {
        let folder = project.path().join(".cuegate/runs");
        std::fs::read_dir(folder)
            .is_ok_and(|mut runs| runs.any(|run| run.unwrap().path().join("reports/00-plan.md").exists()))
    });
    job.kill().unwrap();
    job.wait().unwrap();
    project.all_gone();
    let report = project.status()["reports"][0]["path"].as_str().unwrap().to_owned();
    std::fs::remove_file(project.path().join(&report)).unwrap();
    project
        .script("script-2.json", &json!([done(), review("style", "approved"), review("tests", "approved")]));
    let ran = project.run(&["resume", "last", "--script", "script-2.json", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let status = ran.json();
    assert_eq!(status["asks"]["work"], 4, "an ask that was cut off is no ask");
    assert_eq!(
        rows(&status),
        [
            "plan: Planned → work (1)",
            "work: Done → reviewers (1)",
            "style: approved → - (1)",
            "tests: approved → - (1)",
            "reviewers: all(\"approved\") → @completed (0)",
        ]
    );
    assert_eq!(project.read(&report), "# Plan\nmade.txt", "what was lost is made again");
}

/// A blocked movement has no finished work that a gate command could check.
#[test]
fn a_blocked_movement_skips_its_quality_gates() {
    let project = project();
    project.script(
        "script.json",
        &json!([
            planned(),
            {"step": "work", "output": {"outcome": "Needs a decision", "response": "Red or blue?"}},
            done(), review("style", "approved"), review("tests", "approved"),
        ]),
    );
    let ran = project.run(&["run", "small", "Make it", "--script", "script.json"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let ran = project.run(&["answer", "last", "red", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let status = ran.json();
    assert_eq!((&status["asks"]["work"], &status["asks"]["remedy"]), (&json!(5), &json!(0)));
    assert!(rows(&status).contains(&"work: Needs a decision → work (1)".to_owned()), "{status:#}");
}

#[test]
fn the_task_comes_from_an_argument_a_file_or_standard_input() {
    let project = project();
    let script = json!([planned(), done(), review("style", "approved"), review("tests", "approved")]);
    project.script("script.json", &script);
    project.write("script-task.txt", "Make it\n");
    let ran = project.run(&["run", "small", "--input", "script-task.txt", "--script", "script.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(project.prompts()[1].contains("Visit 1 of Make it"), "{}", project.prompts()[1]);
    let ran = project.run_with_input(&["run", "small", "--script", "script.json"], "Bake it");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(project.prompts()[1].contains("Visit 1 of Bake it"), "{}", project.prompts()[1]);
    let ran = project.run(&["run", "small", "--script", "script.json"]);
    assert_eq!((ran.code, project.runs()), (2, 2), "{}", ran.stderr);
    assert!(ran.stderr.contains("the definition needs a task"), "{}", ran.stderr);
}

/// At a terminal the program prompts for answers, with the context; an empty line leaves the run suspended.
#[test]
fn at_a_terminal_questions_are_prompted() {
    let project = project();
    project.script(
        "script.json",
        &json!([
            {"step": "plan", "output": {"outcome": "Unclear", "response": "There are\ntwo.", "reports": {"00-plan.md": "-"}}},
            planned(),
            {"step": "work", "output": {"blocked": "The disk is full."}},
            done(), review("style", "approved"), review("tests", "approved"),
        ]),
    );
    let run = ["run", "small", "Make it", "--script", "script.json"];
    let Some(ran) = project.at_terminal(&run, "the second\n\n") else { return };
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    let shown = ran.stdout.replace('\r', "");
    assert!(shown.contains("\nplan answered:\nThere are\ntwo.\n\nWhich file is meant?\nanswer ("), "{shown}");
    assert!(shown.contains("cannot proceed: The disk is full."), "{shown}");
    let ran = project.at_terminal(&["resume", "last"], "there is room now\n").unwrap();
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("`test -f made.txt` passes"), "{}", ran.stdout);
    let prompts = project.prompts();
    assert!(prompts[1].contains("the second") && prompts[3].contains("there is room now"), "{prompts:#?}");
}
