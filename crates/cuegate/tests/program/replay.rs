//! `replay`: recorded runs, decided again as they were and through edited workflows.

use serde_json::json;

use crate::support::{Project, Ran};

const WORKFLOW: &str = "\
name: it
max_steps: 6
initial_step: work
steps:
  - name: work
    edit: true
    instruction: Work.
    rules:
      - { condition: Done, next: COMPLETE }
      - { condition: More to do, next: more }
  - name: more
    edit: true
    instruction: More.
    rules:
      - { condition: Enough, next: check }
      - { condition: Not enough, next: work }
  - name: check
    edit: false
    instruction: Check.
    rules:
      - { condition: Good, next: COMPLETE }
      - { condition: Bad, next: work }
";

/// A project with a run that visited `work`, `more` and `check`.
fn recorded() -> Project {
    let project = Project::empty();
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    project.write(".gitignore", "/script.json\n");
    project.init();
    project.write(
        "script.json",
        &json!({"answers": [
            {"step": "work", "output": {"outcome": "More to do", "response": "Half."}, "writes": [{"path": "half.txt", "content": "half\n"}]},
            {"step": "more", "output": {"outcome": "Enough", "response": "All."}, "writes": [{"path": "half.txt", "content": "all\n"}, {"path": "new.txt", "content": "1\n"}]},
            {"step": "check", "output": {"outcome": "Good", "response": "Good."}}
        ]})
        .to_string(),
    );
    let ran = project.run(&["run", "it", "Do it", "--script", "script.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    project
}

/// The run as it would go in an edited workflow.
fn edited(project: &Project, from: &str, to: &str, more: &[&str]) -> Ran {
    assert!(WORKFLOW.contains(from), "{from}");
    project.write(".takt/workflows/it.yaml", &WORKFLOW.replace(from, to));
    let ran = project.run(&[&["replay", "--flow", "it"], more].concat());
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    ran
}

#[test]
fn a_run_decides_as_recorded() {
    let project = recorded();
    let run = project.status()["run"].as_str().unwrap().to_owned();
    let ran = project.run(&["replay"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let decisions = project.log().last().unwrap()["seq"].as_u64().unwrap() + 1;
    assert_eq!(ran.stdout, format!("run {run}: identical, {decisions} decisions\n"));
    let all = project.run(&["replay", "--all", "--since", "1h", "--json"]);
    let rows = all.json()["runs"].clone();
    assert_eq!((&rows[0]["run"], &rows[0]["same"]), (&json!(run), &json!(true)), "{rows}");
    assert_eq!(project.runs(), 1, "nothing was written");
    let none = project.run(&["replay", "--all", "--flow", "minimal"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""), "{}", none.stderr);
}

#[test]
fn an_edited_edge_leads_elsewhere() {
    let project = recorded();
    let same = project.run(&["replay", "--flow", "it"]);
    assert_eq!(same.code, 0, "{}", same.stdout);
    assert!(same.stdout.contains("the same path to its end, completed (3 of 3 recorded results used)"));
    let ran =
        edited(&project, "{ condition: Enough, next: check }", "{ condition: Enough, next: COMPLETE }", &[]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains(": goes otherwise (2 of 3 recorded results used)\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("  recorded  more #1: Enough → check\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("  now       more #1: Enough → done\n"), "{}", ran.stdout);
    // Another way needs a call that nobody made.
    let ran = edited(&project, "{ condition: Good, next: COMPLETE }", "{ condition: Good, next: work }", &[]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("  now       check #1: Good → work\n"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("  ends at   the call of visit 2 of `work`: the recording has no result of it\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("  to know   at most "), "{}", ran.stdout);
}

#[test]
fn an_edited_prompt_is_another_question() {
    let project = recorded();
    let ran = edited(&project, "instruction: More.", "instruction: More of it.", &["--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let row = ran.json()["runs"][0].clone();
    assert_eq!(
        (&row["needs"], &row["other"], &row["results_used"]),
        (
            &json!({"step": "more", "visit": 1, "call": true, "why": "its prompt is another one"}),
            &json!(null),
            &json!(1)
        ),
        "{row}"
    );
    assert!(row["rest"]["calls_max"].as_u64() >= Some(5), "{row}");
    let ran = edited(&project, "instruction: More.", "instruction: More of it.", &["--same-answers"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("used though the prompt of visit 1 of `more` is another one"),
        "{}",
        ran.stdout
    );
    let wrong = edited(&project, "initial_step: work", "initial_step: wrok", &[]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("`it` has errors"), "{}", wrong.stderr);
}
