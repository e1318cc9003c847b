//! Pieces with the real agents: fused answers and judges, with the schemas that Claude Code and Codex send to a
//! stand-in of their services.

use cuegate_testkit::{
    offline,
    standin::{Reply, Scenario},
};
use serde_json::{Value, json};

use crate::{
    agents::Set,
    support::{Project, visits},
    takt::rows::project,
};

const PIECE: &str = "
name: real
max_iterations: 9
initial_movement: plan
personas: { planner: You plan. }
movements:
  - name: plan
    persona: planner
    edit: false
    instruction_template: Plan it.
    output_contracts:
      report:
        - { name: 00-plan.md, format: \"# The plan\" }
        - Notes: deep/メモ.md
    rules:
      - { condition: 計画ができた, next: work }
      - { condition: ai(\"the task is impossible\"), next: ABORT }
  - name: work
    edit: true
    instruction_template: Follow {report:00-plan.md}
    quality_gates: [{ command: test -f door.txt }]
    rules:
      - { condition: Done, next: reviews }
      - { condition: Hopeless, next: ABORT }
  - name: reviews
    parallel:
      - name: style
        edit: false
        instruction_template: Review the style.
        rules: &verdicts [{ condition: approved }, { condition: needs_fix }]
      - name: tests
        edit: false
        instruction_template: Review the tests.
        rules: *verdicts
    rules:
      - { condition: all(\"approved\"), next: COMPLETE }
      - { condition: any(\"needs_fix\"), next: work }
";

/// The model's answer. In a strict schema every field is present; `null` marks an absent one.
fn model(strict: bool) -> Scenario {
    let whole = |mut answer: Value, fields: &[&str]| {
        for field in fields.iter().filter(|_| strict) {
            if answer.get(field).is_none() {
                answer[*field] = Value::Null;
            }
        }
        answer
    };
    let reports = json!({"00-plan.md": "# The plan\nPaint it.", "deep/メモ.md": "# Notes"});
    let plan = json!({"outcome": "none", "response": "I have a plan.", "reports": reports});
    let plan = whole(plan, &["blocked"]);
    let judge = |outcome: &str| json!({"outcome": outcome, "reason": "so it is"});
    let work = ["outcome", "response", "blocked"];
    let done = whole(json!({"outcome": "Done", "response": "Painted."}), &work);
    let review = |outcome: &str| whole(json!({"outcome": outcome, "response": "Looked."}), &work);
    Scenario::new()
        .reply(Reply::to("- Step: plan").json(plan))
        .reply(Reply::to("1. the task is impossible").json(judge("none")))
        .reply(Reply::to("1. 計画ができた").json(judge("計画ができた")))
        .reply(Reply::to("- Step: work").json(whole(json!({"blocked": "Which colour?"}), &work)))
        .reply(Reply::to("- Step: work").write("door.txt", "green\n").json(done))
        .reply(Reply::to("- Step: style").json(review("approved")))
        .reply(Reply::to("- Step: tests").json(review("approved")))
}

/// Runs the piece: blocked, answered, completed.
fn painted_by(provider: &'static str) -> (Set, Value) {
    let set = Set::of(provider, project(PIECE, &[]), model(provider == "codex"));
    let ran = set.run(&["run", "rows", "Paint the door", "--provider", provider, "--repairs", "0", "--json"]);
    let asked = || format!("unmatched {:?}\n{}", set.standin.unmatched(), ran.stderr);
    assert_eq!((ran.code, &ran.json()["waiting"]["kind"]), (3, &json!("person")), "{}", asked());
    assert!(ran.stderr.contains("Which colour?") || ran.stdout.contains("Which colour?"), "{}", asked());
    let ran = set.run(&["answer", "last", "green", "--json"]);
    assert_eq!(ran.code, 0, "unmatched {:?}\n{}", set.standin.unmatched(), ran.stderr);
    assert_eq!(set.standin.unmatched(), [""; 0]);
    (set, ran.json())
}

fn rows(status: &Value) -> String {
    let row = |row: &Value| format!("{}: {}", row["step"], row["outcome"]).replace('"', "");
    visits(status).iter().map(row).collect::<Vec<_>>().join("\n")
}

fn is_done(project: &Project, status: &Value) {
    assert_eq!(
        rows(status),
        "plan: 計画ができた\nwork: Done\nstyle: approved\ntests: approved\nreviews: all(\\approved\\)"
    );
    assert_eq!((&status["asks"]["repair"], &status["asks"]["report"]), (&json!(0), &json!(0)));
    let read = |at: usize| project.read(status["reports"][at]["path"].as_str().unwrap());
    assert_eq!((read(0), read(1)), ("# The plan\nPaint it.".into(), "# Notes".into()));
    assert_eq!(project.read("door.txt"), "green\n");
    project.all_gone();
}

#[test]
fn claude_runs_a_piece_with_fused_answers() {
    if !offline::inside() {
        return;
    }
    let (set, status) = painted_by("claude");
    is_done(&set.project, &status);
    // Claude sends the schema as tool parameters, which allow no top-level `anyOf`.
    let tools = set.standin.answered().into_iter().flat_map(|asked| match &asked.body["tools"] {
        Value::Array(tools) => tools.clone(),
        _ => Vec::new(),
    });
    let schemas: Vec<Value> = tools
        .filter(|tool| tool["name"] == "StructuredOutput")
        .map(|tool| tool["input_schema"].clone())
        .collect();
    assert!(schemas.len() >= 6, "{schemas:#?}");
    for schema in &schemas {
        assert_eq!(schema["type"], "object", "{schema:#}");
        assert!(["anyOf", "oneOf", "allOf"].iter().all(|key| schema.get(key).is_none()), "{schema:#}");
    }
    assert!(
        schemas.iter().any(|schema| schema["else"]["required"] == json!(["outcome", "response", "reports"]))
    );
}

#[test]
fn codex_runs_a_piece_with_fused_answers() {
    if !offline::inside() {
        return;
    }
    let (set, status) = painted_by("codex");
    is_done(&set.project, &status);
    let formats: Vec<Value> =
        set.standin.answered().into_iter().map(|asked| asked.body["text"]["format"].clone()).collect();
    assert!(formats.len() >= 7, "{formats:#?}");
    for format in &formats {
        assert_eq!((&format["type"], &format["strict"]), (&json!("json_schema"), &json!(true)), "{format:#}");
        is_strict(&format["schema"]);
    }
    // Optional fields may be null; conditional requirements are checked on the answer.
    assert_eq!(
        formats[0]["schema"]["properties"]["outcome"],
        json!({"type": ["string", "null"], "enum": ["計画ができた", "none", null]})
    );
}

/// Checks that a schema uses only what OpenAI's strict mode supports.
fn is_strict(schema: &Value) {
    const KNOWN: [&str; 8] =
        ["type", "properties", "required", "additionalProperties", "enum", "items", "description", "anyOf"];
    for key in schema.as_object().unwrap().keys() {
        assert!(KNOWN.contains(&key.as_str()), "{key}: {schema:#}");
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    if kinds.contains(&json!("object")) {
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(schema["additionalProperties"], false, "{schema:#}");
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(schema["required"], json!(names), "{schema:#}");
        properties.values().for_each(is_strict);
    }
}
