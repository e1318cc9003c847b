//! Judges of pieces, each of them asked by the real program: over `ai(…)` conditions and over texts, for a movement, for
//! members, and for the movement that they are members of. And agents that nothing holds to a schema.

use cuegate_testkit::standin::{Reply, Scenario, Standin};
use serde_json::{Value, json};

use crate::support::{Project, Ran, visits};

const PIECE: &str = r#"
name: judged
max_iterations: 12
initial_movement: work
movements:
  - name: work
    edit: false
    instruction_template: Do it.
    rules:
      - condition: Done
        next: review
      - condition: ai("there was nothing to do")
        next: COMPLETE
      - condition: Not done
        next: ABORT
  - name: review
    parallel:
      - name: style
        edit: false
        instruction_template: Review the style.
        rules:
          - condition: approved
          - condition: needs_fix
          - condition: ai("the style is a matter of taste")
      - name: tests
        edit: false
        instruction_template: Review the tests.
        rules:
          - condition: approved
          - condition: ai("there are no tests")
    rules:
      - condition: all("approved")
        next: COMPLETE
      - condition: ai("the reviewers contradict each other")
        next: work
      - condition: Somebody wants changes
        next: work
"#;

fn project() -> Project {
    let project = Project::empty();
    project.write(".takt/pieces/judged.yaml", PIECE);
    project.write(".gitignore", "/script*\n");
    project.init();
    project
}

fn plain(step: &str) -> Value {
    json!({"step": step, "kind": "work", "text": format!("{step} has said something.")})
}

fn judge(step: &str, outcome: &str) -> Value {
    json!({"step": step, "kind": "judge", "output": {"outcome": outcome, "reason": "so it is"}})
}

fn rows(status: &Value) -> String {
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
        format!("{}: {} → {} ({})", text("step"), text("outcome"), text("target"), row["asks"])
    };
    visits(status).iter().map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_judge_decides() {
    let project = project();
    project.script(
        "script.json",
        &json!([
            // Texts decide for the movement; a text and an `ai` condition for members; `ai` for their parent.
            plain("work"), judge("work@ai", "none"), judge("work@judge", "Done"),
            plain("style"), judge("style@ai", "none"), judge("style@judge", "approved"),
            plain("tests"), judge("tests@ai", "there are no tests"),
            judge("review@ai", "the reviewers contradict each other"),
            // A fused answer that says `none` is judged too; a text decides for the parent.
            {"step": "work", "kind": "work", "output": {"outcome": "none", "response": "it did"}},
            judge("work@ai", "none"), judge("work@judge", "Done"),
            plain("style"), judge("style@ai", "the style is a matter of taste"),
            plain("tests"), judge("tests@ai", "none"), judge("tests@judge", "approved"),
            judge("review@ai", "none"), judge("review@judge", "Somebody wants changes"),
            // `ai` decides for the movement.
            plain("work"), judge("work@ai", "there was nothing to do"),
        ]),
    );
    let ran = project.run(&["run", "judged", "A task", "--script", "script.json", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let status = ran.json();
    insta::assert_snapshot!(rows(&status), @r#"
    work: Done → review (3)
    style: approved → - (3)
    tests: ai("there are no tests") → - (2)
    review: ai("the reviewers contradict each other") → work (1)
    work: Done → review (3)
    style: ai("the style is a matter of taste") → - (2)
    tests: approved → - (3)
    review: Somebody wants changes → work (2)
    work: ai("there was nothing to do") → @completed (2)
    "#);
    assert_eq!((&status["asks"]["work"], &status["asks"]["judge"]), (&json!(7), &json!(14)));
    let judged = project.events("answered").into_iter().filter(|event| event["kind"] == "judge");
    let prompts: Vec<String> = judged.map(|event| event["prompt"].as_str().unwrap().to_owned()).collect();
    let says = |what: &str| prompts.iter().any(|prompt| prompt.contains(what));
    assert!(
        says("1. there was nothing to do") && says("1. the reviewers contradict each other"),
        "{prompts:#?}"
    );
    assert!(says("style has said something.") && says("3. Somebody wants changes"), "{prompts:#?}");
}

/// The failure names the member outcomes if no rule matches.
#[test]
fn a_run_without_a_matching_rule_fails_with_the_member_outcomes() {
    let project = project();
    project.script(
        "script.json",
        &json!([
            {"step": "work", "output": {"outcome": "Done", "response": "did"}},
            {"step": "style", "output": {"outcome": "needs_fix", "response": "no"}},
            {"step": "tests", "output": {"outcome": "approved", "response": "yes"}},
            judge("review@ai", "none"), judge("review@judge", "none"),
        ]),
    );
    let ran = project.run(&["run", "judged", "A task", "--script", "script.json", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let status = ran.json();
    insta::assert_snapshot!(format!("{}: {}", status["state"], status["reason"]), @r#""failed": "no rule of `review` matched: `style` needs_fix, `tests` approved""#);
}

/// Without schemas the prompt describes the answer, and plain text is parsed; the run notes it before and after.
#[test]
fn without_schemas_plain_text_answers_are_reported() {
    let project = project();
    let piece = PIECE.split("  - name: review\n").next().unwrap().replace("next: review", "next: COMPLETE");
    let owed =
        "    instruction_template: Do it.\n    output_contracts:\n      report:\n        - name: said.md\n";
    project.write(".takt/pieces/judged.yaml", &piece.replace("    instruction_template: Do it.\n", owed));
    let scenario = Scenario::new()
        .reply(Reply::any().text("I did all of it."))
        .reply(Reply::any().text("# What I did"))
        .reply(
            Reply::any()
                .text("It is none of these: {\"outcome\": \"none\", \"reason\": \"it did something\"}"),
        )
        .reply(Reply::any().text("The first one holds. [WORK:1]"));
    let standin = Standin::start(scenario);
    let toml = format!(
        "[providers.openai]\nbase_url = \"{}\"\nmodel = \"small\"\nkey_env = \"STANDIN_KEY\"\nschema = \"none\"\n",
        standin.openai_base()
    );
    project.write("cuegate.toml", &toml);
    let run = ["run", "judged", "A task", "--provider", "openai", "--repairs", "0"];
    let ran = Ran::of(
        project.command(&run).env("STANDIN_KEY", "none").env("NO_PROXY", "127.0.0.1").output().unwrap(),
    );
    assert_eq!(ran.code, 0, "{}\n{:?}", ran.stderr, standin.unmatched());
    let told =
        "openai cannot enforce the schema of `work`, `work@ai`, `work@judge`: the prompt contains it instead";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let status = project.run(&["status", "last"]).stdout;
    assert!(status.contains("used a schema in the prompt"), "{status}");
    let result = project.status();
    let prompts = project.prompts();
    assert!(prompts[0].contains("\"outcome\"") && !prompts[1].contains("\"outcome\""), "{prompts:#?}");
    assert_eq!(rows(&result), "work: Done → @completed (4)");
    assert_eq!((&result["asks"]["report"], &result["asks"]["judge"]), (&json!(1), &json!(2)));
    assert_eq!(project.read(result["reports"][0]["path"].as_str().unwrap()), "# What I did");
}
