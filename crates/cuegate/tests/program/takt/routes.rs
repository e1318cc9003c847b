//! Routing in pieces: conditions, tags, ends, person rules, placeholders and loops.

use serde_json::{Value, json};

use crate::{
    support::{Project, visits},
    takt::rows::{project, run, said},
};

/// A movement with these rules, and a possible target.
fn ruled(rules: &str) -> Project {
    let piece = format!(
        "name: ruled\nmax_iterations: 9\ninitial_movement: work\nmovements:\n  - name: work\n    edit: false\n    \
         instruction_template: Work.\n    rules:\n{rules}  - name: more\n    edit: false\n    instruction_template: More.\n    \
         rules:\n      - {{ condition: Enough, next: COMPLETE }}\n"
    );
    project(&piece, &[])
}

const RULES: &str = "      - { condition: Done, next: COMPLETE }
      - { condition: Hopeless, next: ABORT }
      - { condition: More to do, next: more }
      - { condition: ai(\"it was done before\"), next: COMPLETE }
";

fn judged(step: &str, outcome: &str) -> Value {
    json!({"step": step, "kind": "judge", "output": {"outcome": outcome, "reason": "so it is"}})
}

/// A condition is matched by the answer's field, by a tag in plain text or by a judge; `ai("…")` by its own judge.
#[test]
fn a_condition_is_named_tagged_or_judged() {
    let project = ruled(RULES);
    let plain = |text: &str| json!({"step": "work", "kind": "work", "text": text});
    let came = |answers: Value| {
        let (_, status) = run(&project, &answers, &[]);
        let row = &visits(&status)[0];
        (row["outcome"].as_str().unwrap_or("-").to_owned(), row["asks"].as_u64().unwrap())
    };
    let text = |outcome: &str, asks: u64| (outcome.to_owned(), asks);
    assert_eq!(came(json!([said("work", "Hopeless")])), text("Hopeless", 1));
    assert_eq!(
        came(json!([said("work", "  HOPELESS ")])),
        text("Hopeless", 1),
        "words are trimmed, case is none"
    );
    // Tags: ours count from one, `STEP` from zero; the last valid tag wins.
    assert_eq!(came(json!([plain("No way. [WORK:2]")])), text("Hopeless", 1));
    assert_eq!(came(json!([plain("No way. [step:1]")])), text("Hopeless", 1));
    assert_eq!(came(json!([plain("[WORK:1]? No: [work:2]")])), text("Hopeless", 1));
    assert_eq!(came(json!([plain("[WORK:2] and [MORE:1] and [WORK:9]")])), text("Hopeless", 1));
    // No tag, the tag of a judged rule, or an invalid tag: judges decide, first about `ai("…")`.
    let before = "ai(\"it was done before\")";
    for words in ["I have looked.", "I have looked. [WORK:4]", "[WORK:0]", "none"] {
        let answers = json!([plain(words), judged("work@ai", "it was done before")]);
        assert_eq!(came(answers), text(before, 2), "{words}");
        let answers = json!([plain(words), judged("work@ai", "none"), judged("work@judge", "Hopeless")]);
        assert_eq!(came(answers), text("Hopeless", 3), "{words}");
    }
    // Tags never override a structured answer.
    let quoted = |outcome: &str| json!({"step": "work", "text": "[WORK:2]", "output": {"outcome": outcome, "response": "It says [WORK:2] [STEP:1]."}});
    assert_eq!(came(json!([quoted("Done")])), text("Done", 1));
    let answers = json!([quoted("none"), judged("work@ai", "it was done before")]);
    assert_eq!(came(answers), text(before, 2));
    // An unknown outcome is an unusable answer; its tags are ignored and the answer is requested again.
    let answers = json!([quoted("Whatever"), said("work", "Done")]);
    assert_eq!(came(answers), text("Done", 2));
}

#[test]
fn a_movement_named_step_numbers_its_own_rules() {
    let piece = "name: s\nmax_iterations: 3\ninitial_movement: step\nmovements:\n  - name: step\n    edit: false\n    \
                 instruction_template: Go.\n    rules:\n      - { condition: One, next: COMPLETE }\n      - { condition: Two, \
                 next: ABORT }\n";
    let project = project(piece, &[]);
    let (_, status) = run(&project, &json!([{"step": "step", "text": "[STEP:1]"}]), &[]);
    assert_eq!(visits(&status)[0]["outcome"], "One", "counted from one, as by its name");
}

/// The outcomes of two members, and the result of the rules over them.
#[test]
fn rules_over_members_are_all_any_and_each() {
    let ended = |condition: &str, outcomes: [&str; 2]| {
        let piece = format!(
            "name: m\nmax_iterations: 3\ninitial_movement: both\nmovements:\n  - name: both\n    parallel:\n      - name: a\n        \
             edit: false\n        instruction_template: A.\n        rules: &r [{{ condition: good }}, {{ condition: fair }}, \
             {{ condition: bad }}]\n      - name: b\n        edit: false\n        instruction_template: B.\n        rules: *r\n    \
             rules:\n      - {{ condition: {condition}, next: COMPLETE }}\n      - {{ condition: 'any(\"good\", \"fair\", \
             \"bad\")', next: ABORT }}\n"
        );
        let project = project(&piece, &[]);
        let (_, status) = run(&project, &json!([said("a", outcomes[0]), said("b", outcomes[1])]), &[]);
        status["state"] == "completed"
    };
    let all = "all(\"good\")";
    assert!(ended(all, ["good", "good"]));
    assert!(!ended(all, ["good", "bad"]) && !ended(all, ["bad", "bad"]));
    let any = "any(\"bad\")";
    assert!(ended(any, ["good", "bad"]) && ended(any, ["bad", "bad"]));
    assert!(!ended(any, ["good", "fair"]));
    let one_of = "'any(\"bad\", \"fair\")'";
    assert!(ended(one_of, ["good", "fair"]) && !ended(one_of, ["good", "good"]));
    let each = "'all(\"good\", \"bad\")'";
    assert!(ended(each, ["good", "bad"]) && !ended(each, ["bad", "good"]) && !ended(each, ["good", "good"]));
}

/// A rule that asks a person, and an interactive-only rule.
#[test]
fn rules_that_ask_a_person_exist_only_in_interactive_runs() {
    let rules = "      - { condition: Done, next: COMPLETE }\n      - condition: Which one?\n        next: more\n        \
                 requires_user_input: true\n        interactive_only: true\n        appendix: |\n          - red or blue?\n";
    let project = ruled(rules);
    let unclear = said("work", "Which one?");
    // In a headless run the rule does not exist: neither in the prompt nor as an outcome.
    let (code, status) = run(&project, &json!([unclear, said("work", "Done")]), &[]);
    assert_eq!((code, &status["asks"]["repair"]), (0, &json!(1)));
    assert!(!project.prompts()[0].contains("Which one?"), "{}", project.prompts()[0]);
    // The numbers of later rules still count it.
    let (_, status) =
        run(&project, &json!([{"step": "work", "text": "[WORK:2]"}, judged("work@judge", "Done")]), &[]);
    assert_eq!(visits(&status)[0]["asks"], 2, "its tag means nothing");
    project.script("script.json", &json!([unclear, said("more", "Enough")]));
    let args = ["run", "rows", "Paint it", "--script", "script.json"];
    let Some(ran) = project.at_terminal(&args, "the blue one\n") else { return };
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("- red or blue?"), "`appendix` is shown: {}", ran.stdout);
    let prompts = project.prompts();
    assert!(
        prompts[0].contains("2. Which one?\n     With this one, end your answer with:\n     - red or blue?")
    );
    assert!(
        prompts[1].contains("# Instruction\n\nMore.") && prompts[1].contains("the blue one"),
        "it went to `next`"
    );
}

/// Every placeholder has its value in two rounds.
#[test]
fn placeholders_are_replaced_by_their_values() {
    let piece = "
name: holes
max_iterations: 8
initial_movement: work
movements:
  - name: work
    edit: false
    instruction_template: |
      task={task}; previous={previous_response}; iteration={iteration}/{max_iterations}; visit={movement_iteration}
      dir={report_dir}; report={report:said.md}; inputs={user_inputs}; braces={nobody} {cycle_count}; colour={colour}
    output_contracts: { report: [{ name: said.md }] }
    rules:
      - { condition: Ask, next: work, requires_user_input: true }
      - { condition: Done, next: COMPLETE }
";
    let project = project(piece, &[]);
    let answer = |outcome: &str| json!({"step": "work", "output": {"outcome": outcome, "response": "I {task}", "reports": {"said.md": "# {iteration}"}}});
    let (code, status) = run(&project, &json!([answer("Ask"), answer("Done")]), &["--set", "colour={green}"]);
    assert_eq!((code, &status["waiting"]["kind"]), (3, &json!("person")));
    assert_eq!(project.run(&["answer", "last", "use {report_dir}"]).code, 0);
    let prompts = project.prompts();
    let run = status["run"].as_str().unwrap();
    let dir = project.path().join(".cuegate/runs").join(run).join("reports");
    let dir = dir.display();
    let first = format!(
        "task=Paint the door; previous=; iteration=1/8; visit=1\ndir={dir}; report=(no report yet: said.md); inputs=; \
         braces={{nobody}} {{cycle_count}}; colour={{green}}\n"
    );
    assert!(prompts[0].contains(&first), "{}", prompts[0]);
    assert!(!prompts[0].contains("# Task"), "it stands in the instruction");
    // Inserted values are not expanded again.
    let second = &prompts[1];
    assert!(
        second.contains("iteration=2/8; visit=2") && second.contains("inputs=use {report_dir};"),
        "{second}"
    );
    assert!(second.contains("I {task}") && second.contains("# {iteration}"), "{second}");
    assert_eq!(project.read(&format!(".cuegate/runs/{run}/reports/said.md")), "# {iteration}");
}

const LOOP: &str = "
name: round
max_iterations: 20
initial_movement: fix
personas: { judge: You judge loops. }
movements:
  - name: fix
    edit: false
    instruction_template: Fix.
    rules: [{ condition: Fixed, next: look }]
  - name: look
    edit: false
    instruction_template: Look.
    rules: [{ condition: Bad, next: fix }, { condition: Good, next: COMPLETE }, { condition: Elsewhere, next: other }]
  - name: other
    edit: false
    instruction_template: Other.
    rules: [{ condition: Back, next: fix }]
loop_monitors:
  - cycle: [fix, look]
    threshold: 2
    judge:
      persona: judge
      instruction_template: It is round {cycle_count} of {task}.
      rules:
        - { condition: Healthy, next: fix }
        - { condition: Stuck, next: other }
        - { condition: Hopeless, next: ABORT }
";

/// Rounds as answers.
fn rounds(last: &[&str]) -> Vec<Value> {
    last.iter().flat_map(|outcome| [said("fix", "Fixed"), said("look", outcome)]).collect()
}

fn monitor(outcome: &str) -> Value {
    json!({"step": "monitor:fix+look", "output": {"outcome": outcome, "reason": "so it is"}})
}

#[test]
fn a_loop_monitor_judges_after_its_threshold_of_rounds() {
    let project = project(LOOP, &[]);
    let steps = |status: &Value| -> String {
        visits(status)
            .iter()
            .map(|row| row["step"].as_str().unwrap().replace("monitor:fix+look", "!"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    // Two rounds, then the judge, who leads elsewhere; the counter restarts. The judged visit ends after the judge.
    let mut answers = rounds(&["Bad", "Bad"]);
    answers.push(monitor("Stuck"));
    answers.push(said("other", "Back"));
    answers.extend(rounds(&["Bad", "Bad"]));
    answers.push(monitor("Hopeless"));
    let (code, status) = run(&project, &json!(answers), &[]);
    assert_eq!((code, &status["state"]), (1, &json!("aborted")));
    assert_eq!(steps(&status), "fix look fix ! look other fix look fix ! look");
    assert_eq!(status["iterations"], 9, "a judge is no iteration");
    let judged: Vec<Value> =
        project.events("answered").into_iter().filter(|event| event["kind"] == "judge").collect();
    assert!(judged[0]["system_prompt"].as_str().unwrap().contains("You judge loops."));
    assert!(
        judged[0]["prompt"].as_str().unwrap().contains("It is round 2 of Paint the door."),
        "{}",
        judged[0]["prompt"]
    );
    // Another step in between resets the count; a run that leaves the loop asks no judge.
    let mut answers = rounds(&["Bad", "Elsewhere"]);
    answers.push(said("other", "Back"));
    answers.extend(rounds(&["Bad", "Good"]));
    let (code, status) = run(&project, &json!(answers), &[]);
    assert_eq!((code, steps(&status).contains('!')), (0, false), "{}", steps(&status));
    // The default threshold is three rounds.
    project.write(".takt/pieces/rows.yaml", &LOOP.replace("    threshold: 2\n", ""));
    let mut answers = rounds(&["Bad", "Bad", "Bad"]);
    answers.push(monitor("Hopeless"));
    assert_eq!(steps(&run(&project, &json!(answers), &[]).1), "fix look fix look fix ! look");
}
