//! Retries in pieces: after failed gates, by judges, with separate phases.

use serde_json::{Value, json};

use crate::{
    support::Project,
    takt::rows::{project, run},
};

fn piece(movements: &str) -> String {
    format!("name: again\nmax_iterations: 9\ninitial_movement: plan\nmovements:\n{movements}")
}

const PLAN: &str = "  - name: plan
    edit: false
    instruction_template: Plan.
    rules:
      - { condition: Planned, next: work }
";

/// A plan, and work whose gate command fails until the file `ok` exists.
fn gated(rules: &str) -> Project {
    let work = format!(
        "  - name: work\n    edit: true\n    instruction_template: 'Work by: {{previous_response}}.'\n    \
         quality_gates:\n      - command: test -f ok\n    rules:\n{rules}"
    );
    project(&piece(&format!("{PLAN}{work}")), &[])
}

fn spoken(step: &str, outcome: &str, response: &str) -> Value {
    json!({"step": step, "output": {"outcome": outcome, "response": response}})
}

#[test]
fn a_person_does_not_lead_past_the_gates() {
    let project = gated("      - { condition: Done but ask, next: COMPLETE, requires_user_input: true }\n");
    let mends = json!({"step": "work", "kind": "remedy", "writes": [{"path": "ok", "content": "x"}],
        "output": {"outcome": "Done but ask", "response": "ok is there"}});
    let answers = json!([spoken("plan", "Planned", "P"), spoken("work", "Done but ask", "W"), mends]);
    let (code, status) = run(&project, &answers, &[]);
    assert_eq!((code, status["state"].as_str()), (3, Some("suspended")));
    // The gate runs after the person's answer and is retried; then the person is asked again.
    let ran = project.run(&["answer", "last", "yes", "--json"]);
    assert_eq!((ran.code, ran.json()["asks"]["remedy"].as_u64()), (3, Some(1)), "{}", ran.stderr);
    let ran = project.run(&["answer", "last", "yes", "--json"]);
    assert_eq!((ran.code, &ran.json()["validated"]), (0, &json!(true)), "{}", ran.stderr);
}

#[test]
fn a_retry_after_a_failed_gate_reads_the_same_values() {
    let project = gated("      - { condition: Done, next: COMPLETE }\n");
    let mends = json!({"step": "work", "kind": "remedy", "writes": [{"path": "ok", "content": "x"}],
        "output": {"outcome": "Done", "response": "again"}});
    let answers =
        json!([spoken("plan", "Planned", "THE PLAN"), spoken("work", "Done", "MY OWN WORDS"), mends]);
    let (code, _) = run(&project, &answers, &[]);
    assert_eq!(code, 0);
    let prompts = project.prompts();
    assert!(prompts[1].contains("THE PLAN"), "{}", prompts[1]);
    assert!(prompts[2].contains("THE PLAN") && !prompts[2].contains("MY OWN WORDS"), "{}", prompts[2]);
}

#[test]
fn a_judge_prompt_lists_the_allowed_outcomes() {
    let work = "  - name: plan\n    edit: false\n    instruction_template: Plan.\n    rules:\n      - { condition: 'ai(\"x y\")', \
                next: COMPLETE }\n      - { condition: 'ai(\"z\")', next: ABORT }\n";
    let project = project(&piece(work), &[]);
    let judge = |outcome: &str| json!({"step": "plan@ai", "output": {"outcome": outcome, "reason": "r"}});
    let answers = json!([{"step": "plan", "text": "I did."}, judge("q"), judge("x y")]);
    let (code, _) = run(&project, &answers, &[]);
    assert_eq!(code, 0);
    let repair = &project.prompts()[2];
    assert!(repair.contains("`outcome` is `q`, allowed are `x y`, `z`, `none`"), "{repair}");
}

#[test]
fn with_separate_phases_a_tag_in_the_work_answer_is_ignored() {
    let work = "  - name: plan\n    edit: false\n    instruction_template: Review.\n    rules:\n      - { condition: approved, \
                next: COMPLETE }\n      - { condition: rejected, next: ABORT }\n";
    let project = project(&piece(work), &[]);
    let answers = json!([{"step": "plan", "text": "README.md reads `[PLAN:1]`, which is wrong."},
        {"step": "plan@judge", "output": {"outcome": "rejected", "reason": "it is wrong"}}]);
    let (_, status) = run(&project, &answers, &["--phases", "separate"]);
    assert_eq!((&status["state"], &status["asks"]["judge"]), (&json!("aborted"), &json!(1)));
}
