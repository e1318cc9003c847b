//! `simulate`: paths with special conditions are covered; unreachable items are excluded, with the reason.

use std::{fs, sync::Arc};

use cuegate::simulate::SimulationResult;
use cuegate_flow::{
    diagnostics::Span,
    model::{FieldPath, Flow, JoinPattern, JoinRule, Name, Outcome, Role, Selector, Target, Verdict},
};
use cuegate_runner::simulation::Agent;
use cuegate_testkit::Builder;
use serde_json::{Value, json};

use crate::{simulation::simulate::walked, support::Project};

fn obedient(flow: &Arc<Flow>, seed: u64) -> SimulationResult {
    let found = walked(flow, seed, None, &[Agent::Obedient]);
    assert_eq!(found.bugs, []);
    found
}

/// What does not count, with its reason; all else is come by, whatever the seed.
fn barred(flow: &Arc<Flow>) -> Vec<(String, String)> {
    for seed in 2..5 {
        all_but_barred(&obedient(flow, seed));
    }
    all_but_barred(&obedient(flow, 1))
}

fn all_but_barred(found: &SimulationResult) -> Vec<(String, String)> {
    let left = found.coverage.items.iter().filter(|item| item.hits == 0);
    let one = |item: &cuegate_view::CoverItem| {
        let why = item.barred.clone().unwrap_or_else(|| panic!("{} is left: {:?}", item.name, item.takes));
        (item.name.clone(), why)
    };
    left.map(one).collect()
}

fn of<'a>(barred: &'a [(String, String)], name: &str) -> &'a str {
    let found = barred.iter().find(|(known, _)| known == name);
    found.map(|(_, why)| why.as_str()).unwrap_or_else(|| panic!("{name} counts: {barred:#?}"))
}

fn name(text: &str) -> Name {
    Name::new(text, Span::default())
}

fn begin(limit: u32) -> Builder {
    Builder::new("small", "registry-closing", "a").limit(limit)
}

#[test]
fn items_that_need_an_answer_that_is_not_generated_stay_uncovered() {
    let project = Project::empty();
    project.write("Makefile", "test:\n\ttrue\n");
    project.init();
    assert_eq!(project.run(&["init", "minimal"]).code, 0);
    let path = project.path().join(".agent/minimal/schemas/steps.schema.json");
    let mut schemas: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let goal = json!({"type": "string", "pattern": "^a(?!.*[a-z])[0-9]{7}$"});
    schemas["definitions"]["initial.task"]["properties"]["goal"] = goal;
    fs::write(&path, schemas.to_string()).unwrap();
    let found = project.run(&["simulate", "minimal", "--agent", "obedient", "--json"]).json();
    let left = found["uncovered"].as_array().unwrap();
    assert!(left.len() > 20, "{found:#}");
}

/// Only when a member ends without an outcome does no rule fit.
#[test]
fn a_member_ends_without_an_outcome_where_nothing_else_leads_on() {
    let any = JoinPattern::Any(vec![Outcome::Named("c0".into())]);
    let rules = vec![JoinRule { pattern: any, outcome: Outcome::Named("done".into()) }];
    let flow = Builder::new("mem", "piece", "m")
        .limit(5)
        .all("m", &["s"], 1, rules)
        .or_judge("m@judge")
        .to("done", "@completed")
        .to("broke", "@aborted")
        .ask("s", Role::Work, &["c0"])
        .ask("m@judge", Role::Judge, &["broke", "none"])
        .flow();
    let barred = barred(&flow);
    assert_eq!(barred, [("at most 5 iterations".to_owned(), "no run is longer".to_owned())]);
}

/// Counted answers are collected, or kept out of the way, whichever is wanted.
#[test]
fn a_counting_verdict_and_the_limit_are_both_covered() {
    for max in [1, 3, 5] {
        let flow = begin(20)
            .ask("a", Role::Work, &["next", "repeat"])
            .to("next", "w")
            .to("repeat", "a")
            .ask("w", Role::Work, &["next", "handoff"])
            .to("next", "a")
            .to("handoff", "c")
            .ask("c", Role::Work, &["closing", "repeat"])
            .to("closing", "@completed")
            .to("repeat", "a")
            .verdict(Verdict::Checks { max, of: vec!["c".into()] })
            .flow();
        let barred = barred(&flow);
        let expected: &[(&str, &str)] = if max == 1 { &[("c --repeat→ a", "")] } else { &[] };
        let names: Vec<&str> = barred.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.len() <= expected.len(), "{max} {barred:#?}");
    }
}

#[test]
fn the_limit_is_covered_despite_a_monitor() {
    let flow = begin(30)
        .ask("a", Role::Work, &["b", "c", "done"])
        .to("b", "b")
        .to("c", "c")
        .to("done", "@completed")
        .ask("b", Role::Work, &["back"])
        .to("back", "a")
        .ask("c", Role::Work, &["back"])
        .to("back", "a")
        .ask("watch", Role::Judge, &["stuck"])
        .to("stuck", "@aborted")
        .monitor(&["a", "b"], 1, "watch")
        .flow();
    assert_eq!(barred(&flow), []);
}

#[test]
fn what_a_monitor_forestalls_does_not_count() {
    let flow = begin(30)
        .ask("a", Role::Work, &["b", "done"])
        .to("b", "b")
        .to("done", "@completed")
        .ask("b", Role::Work, &["back"])
        .to("back", "a")
        .ask("watch", Role::Judge, &["stuck"])
        .to("stuck", "@aborted")
        .monitor(&["a", "b"], 2, "watch")
        .flow();
    assert_eq!(barred(&flow), [("at most 30 iterations".to_owned(), "no run is longer".to_owned())]);
}

/// Every value that the first step can leave has a case.
#[test]
fn a_default_that_no_value_is_left_for_does_not_count() {
    let kind = json!({"type": "object", "required": ["action", "kind"],
        "properties": {"action": {"type": "string"}, "kind": {"enum": ["x", "y"]}}});
    let cases = vec![("x".into(), name("c")), ("y".into(), name("d"))];
    let by = Selector::Handoff("kind".into());
    let flow = begin(12)
        .ask("a", Role::Work, &["next"])
        .schema(kind)
        .leaves("kind")
        .to("next", "b")
        .ask("b", Role::Work, &["next"])
        .edge("next", Target::Select { by, cases, default: Some(name("e")) }, |_| {})
        .ask("c", Role::Work, &["back"])
        .to("back", "a")
        .ask("d", Role::Work, &["done"])
        .to("done", "@completed")
        .ask("e", Role::Work, &["done"])
        .to("done", "@completed")
        .draft();
    let checked = cuegate_flow::checks::check_draft(flow);
    let flow = Arc::new(checked.flow.or(checked.unsound).unwrap());
    let barred = barred(&flow);
    assert_eq!(of(&barred, "b --next→ e"), "no answer can select it");
    assert_eq!(of(&barred, "e"), "nothing leads to the step");
}

/// A default is come by with any value that is no case, however particular the schema is about it.
#[test]
fn a_default_is_covered_by_a_value_without_a_case() {
    for (kind, cases) in [
        (json!({"type": "integer"}), ["0", "1"]),
        (json!({"type": "integer", "minimum": 0, "multipleOf": 5}), ["0", "5.0"]),
        (json!({"type": "number", "minimum": 0, "maximum": 1}), ["0", "1"]),
        (json!({"type": "string", "pattern": "^[abc]$"}), ["a", "b"]),
        (json!({"type": "string", "format": "date"}), ["2020-01-01", "none of these"]),
        (json!({"type": "string", "maxLength": 1}), ["a", "1"]),
    ] {
        let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "required": ["action", "kind"], "properties": {"action": {"type": "string"}, "kind": kind}});
        for by in [Selector::Field(FieldPath::parse("kind").unwrap()), Selector::Handoff("kind".into())] {
            let cases = cases.map(|case| (case.into(), name("c"))).to_vec();
            let flow = begin(12)
                .ask("a", Role::Work, &["next"])
                .schema(schema.clone())
                .leaves("kind")
                .edge("next", Target::Select { by, cases, default: Some(name("e")) }, |_| {})
                .ask("c", Role::Work, &["back"])
                .to("back", "a")
                .ask("e", Role::Work, &["done"])
                .to("done", "@completed")
                .draft();
            let checked = cuegate_flow::checks::check_draft(flow);
            let flow = Arc::new(checked.flow.or(checked.unsound).unwrap());
            let barred = barred(&flow);
            let of_kind: Vec<_> =
                barred.iter().filter(|(name, _)| name.contains("→ e") || name == "e").collect();
            assert_eq!(of_kind, Vec::<&(String, String)>::new(), "{kind}");
        }
    }
}

/// A target that the answer names: only those that its schema has a word for, and one always.
#[test]
fn a_jump_that_no_answer_can_name_does_not_count() {
    let named = json!({"type": "object", "required": ["action", "to"], "additionalProperties": false,
        "properties": {"action": {"type": "string"}, "to": {"enum": ["b"]}}});
    let field = FieldPath::parse("to");
    let flow = begin(12)
        .ask("a", Role::Work, &["go"])
        .schema(named)
        .edge(
            "go",
            Target::Jump { field, among: vec![name("b"), name("c")], default: Some(name("d")) },
            |_| {},
        )
        .ask("b", Role::Work, &["done"])
        .to("done", "@completed")
        .ask("c", Role::Work, &["done"])
        .to("done", "d")
        .ask("d", Role::Work, &["done"])
        .to("done", "@completed")
        .flow();
    let barred = barred(&flow);
    for edge in ["a --go→ c", "a --go→ d"] {
        assert_eq!(of(&barred, edge), "no answer can select it");
    }
    assert_eq!(of(&barred, "c"), "no run reaches it");
}

/// What needs more iterations than there may be is said with how many, and so is all that hangs on it.
#[test]
fn what_the_limit_does_not_allow_does_not_count() {
    let flow = begin(2)
        .ask("a", Role::Work, &["next", "done"])
        .to("next", "b")
        .to("done", "a@v")
        .exec("a@v", &["test: true"])
        .on(Outcome::Pass, "@completed")
        .remedy(Outcome::Fail(0), &[], "remedies", 2)
        .on(Outcome::Fail(0), "@failed")
        .ask("b", Role::Work, &["next"])
        .to("next", "c")
        .ask("c", Role::Work, &["done"])
        .to("done", "@completed")
        .flow();
    let barred = barred(&flow);
    let needs = "needs 3 iterations, and the limit is 2";
    let spent = barred.iter().find(|(name, _)| name.ends_with("more than 2 times")).unwrap();
    assert_eq!(spent.1, needs);
    assert!(barred.iter().any(|(name, why)| name.starts_with("failed: ") && why == needs), "{barred:#?}");
    for item in ["c", "c --done→ @completed", "c: done"] {
        assert_eq!(of(&barred, item), needs);
    }
}

/// A chain of three steps has no ten iterations, and no four answers.
#[test]
fn a_verdict_beyond_a_chain_does_not_count() {
    let chain = |verdict| {
        let flow = begin(12).ask("a", Role::Work, &["next"]).to("next", "b").ask("b", Role::Work, &["next"]);
        let flow = flow.to("next", "c").ask("c", Role::Work, &["done"]).to("done", "@completed");
        flow.verdict(verdict).flow()
    };
    let checks = Verdict::Checks { max: 4, of: vec!["a".into(), "b".into(), "c".into()] };
    for verdict in [Verdict::Iterations(10), checks] {
        let barred = barred(&chain(verdict.clone()));
        let why = "no run is long enough";
        assert_eq!(of(&barred, "completed by the verdict"), why, "{verdict:?}");
        assert_eq!(barred.iter().filter(|(_, reason)| reason == why).count(), 2, "{verdict:?} {barred:#?}");
    }
}

/// A verdict that is reached before a step is in its way.
#[test]
fn what_the_verdict_forestalls_does_not_count() {
    let flow = begin(12).ask("a", Role::Work, &["next"]).to("next", "b").ask("b", Role::Work, &["next"]);
    let flow = flow.to("next", "c").ask("c", Role::Work, &["done"]).to("done", "@completed");
    let barred = barred(&flow.verdict(Verdict::Iterations(2)).flow());
    assert_eq!(of(&barred, "c"), "no run reaches it");
}

/// Ways of many moves in each of many iterations are not too far for a limit that they just fit into.
#[test]
fn a_long_way_of_many_moves_is_gone() {
    let project = Project::empty();
    project.write(
        "long.yaml",
        r#"name: long
max_iterations: 139
initial_movement: a
movements:
  - {name: a, edit: true, quality_gates: [{command: "true"}], instruction: do it please, rules: [{condition: "on", next: b}]}
  - name: b
    edit: true
    quality_gates: [{command: "true"}]
    instruction: do it please
    rules: [{condition: back, next: a}, {condition: out, next: COMPLETE}]
loop_monitors:
  - {cycle: [a, b], threshold: 69, judge: {instruction_template: look, rules: [{condition: stop, next: ABORT}]}}
"#,
    );
    project.init();
    let ran = project.run(&["simulate", "long.yaml", "--agent", "obedient", "--min-coverage", "100"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

const GUARDED: &str = r#"
name: guarded
max_iterations: 2
initial_movement: both
movements:
  - name: both
    parallel:
      - name: m1
        edit: true
        instruction: "One: {task}"
        quality_gates:
          - command: "true"
        rules:
          - condition: ok
          - condition: bad
      - name: m2
        edit: true
        instruction: "Two: {task}"
        quality_gates:
          - command: "exit 1"
          - command: "true"
        rules:
          - condition: ok
          - condition: bad
    rules:
      - condition: all("ok")
        next: COMPLETE
      - condition: any("bad")
        next: ABORT
"#;

#[test]
fn gate_commands_of_members_are_covered() {
    let project = Project::empty();
    project.write(".takt/pieces/guarded.yaml", GUARDED);
    project.init();
    let simulated = |args: &[&str]| {
        let ran = project.run(&[&["simulate", "guarded", "--json"], args].concat());
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}", ran.stdout);
        ran.json()
    };
    let validators = |list: &Value| {
        let items = list.as_array().unwrap().iter().filter(|item| item["kind"] == "validator");
        items.map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    let found = simulated(&[]);
    assert_eq!(validators(&found["uncovered"]), [] as [String; 0]);
    assert_eq!(validators(&found["not_counted"]), [] as [String; 0], "each may fail");
    let one = simulated(&["--agent", "staller", "--runs", "1"]);
    let left = validators(&one["uncovered"]);
    assert!(left.iter().any(|name| name == "m2 exit 1 fails"), "what is left is named: {left:?}");
}
