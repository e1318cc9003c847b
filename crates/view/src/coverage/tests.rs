use std::sync::Arc;

use cuegate_flow::{
    analysis::{
        cost_bound::{Terms, price_flow},
        state_graph::StateGraph,
    },
    diagnostics::{FileId, Sources, Span},
    model::{CounterId, EdgeBound, FieldPath, Flow, Gate, OutcomeReader, Schema, StepId, Target, Verdict},
};
use serde_json::json;

use super::{AgentRow, BugRow, CoverKind, Coverage, FinishedSimulation, ObservedCounts};
use crate::testing::{Scene, piece, registry};

fn coverage(flow: Flow) -> Coverage {
    let max = flow.limits.iterations_max;
    Coverage::new(Arc::new(StateGraph::explore(Arc::new(flow), max)))
}

fn follow(scene: &Scene) -> Coverage {
    let mut coverage = coverage(scene.flow.clone());
    assert!(coverage.follow(scene.records.iter().map(|record| record.events.as_slice())));
    coverage
}

/// All items, one per line, with their hits.
fn list(coverage: &Coverage) -> String {
    let line = |item: &super::CoverItem| {
        let barred = item.barred.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{} {} {}{barred}", item.hits, item.kind.as_str(), item.name)
    };
    coverage.items.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_registry_that_was_mended_once() {
    insta::assert_snapshot!(list(&follow(&Scene::remedied())));
}

#[test]
fn a_piece_that_was_reviewed() {
    insta::assert_snapshot!(list(&follow(&Scene::reviewed())));
}

#[test]
fn what_no_run_can_come_by_does_not_count() {
    let mut flow = registry();
    // The schema has no word for an outcome, and a bound is 0.
    flow.schemas = vec![Schema::new(json!({"properties": {"action": {"enum": ["next", "abort"]}}})).unwrap()];
    let last = flow.steps.len() - 1;
    flow.steps[last].edges[1].bound = Some(EdgeBound { counter: CounterId(0), max: 0 });
    let found = coverage(flow.clone());
    let barred: Vec<String> =
        list(&found).lines().filter(|line| line.ends_with(')')).map(str::to_owned).collect();
    insta::assert_snapshot!(barred.join("\n"), @"
    0 edge initial.fix --repeat→ initial.fix (the schema has no word for the outcome)
    0 gate initial.fix: repeat (the schema has no word for the outcome)
    0 edge closure.fix/validators --tests fails→ the step that handed off (continuation.fix, closure.fix) (its bound is 0)
    0 edge closure.fix/validators --tests fails→ @failed (validators of `closure.fix` failed)
    0 edge closure.fix/validators --clean fails→ the step that handed off (continuation.fix, closure.fix)
    0 edge closure.fix/validators --clean fails→ @failed (validators of `closure.fix` failed)
    ");
    assert_eq!(found.all().covered, 0);
    let edges = found.kind(CoverKind::Edge).of;

    // The items of a step without incoming edges are unreachable too.
    let next = flow.find("continuation.fix").unwrap();
    flow.steps[0].edges.retain(|edge| !matches!(edge.to, Target::Step(to) if to == next));
    let found = coverage(flow);
    assert!(found.kind(CoverKind::Edge).of < edges);
    let steps = found.items.iter().filter(|item| item.kind == CoverKind::Step && item.barred.is_some());
    assert_eq!(
        steps.map(|item| item.name.as_str()).collect::<Vec<_>>(),
        ["continuation.fix", "closure.fix", "closure.fix/validators"]
    );
}

/// A limit is reached where one more iteration would begin, not where the last one does.
#[test]
fn a_limit_that_no_run_passes_does_not_count() {
    let mut flow = registry();
    // initial → continuation → closure, without a loop.
    for step in &mut flow.steps {
        step.edges.retain(|edge| !matches!(edge.to, Target::Origin { .. } | Target::Select { .. }));
    }
    flow.steps[0].edges.retain(|edge| edge.on.to_string() != "repeat");
    let barred = |max| {
        let mut flow = flow.clone();
        flow.limits.iterations_max = max;
        let found = coverage(flow);
        let limit = found.items.iter().find(|item| item.name == format!("at most {max} iterations"));
        limit.unwrap().barred.is_some()
    };
    assert_eq!([2, 3, 4].map(barred), [false, true, true]);
}

#[test]
fn what_was_done_beyond_a_bound_is_told() {
    let scene = Scene::remedied();
    let did = ObservedCounts::new(&scene.flow, scene.records.iter().map(|record| record.events.as_slice()));
    let bound = |iterations_max| {
        price_flow(&scene.flow, &Terms { iterations_max, repairs_max: 1, ..Terms::default() })
    };
    assert_eq!(did.beyond(&bound(8)), Vec::<String>::new());
    let beyond = did.beyond(&bound(2));
    assert_eq!(
        beyond,
        [
            "5 visits, at most 2",
            "5 iterations, at most 2",
            "6 asks, at most 4",
            "1 remedy, at most 0",
            "4 work, at most 2"
        ]
    );
    // Members of a parallel step count as visits.
    let scene = Scene::reviewed();
    let did = ObservedCounts::new(&scene.flow, scene.records.iter().map(|record| record.events.as_slice()));
    assert!(did.visits > did.iterations, "{did:?}");
    let mut most = ObservedCounts::default();
    most.most(&did);
    assert_eq!(most, did);
}

#[test]
fn pages() {
    let mut flow = piece();
    let mut sources = Sources::default();
    let file = sources.add("pieces/review.yaml", "name: review\nmovements:\n  - name: plan\n");
    for step in &mut flow.steps {
        step.span = Span { file, start: 24, end: 30 };
        step.edges.iter_mut().for_each(|edge| edge.span = Span { file: FileId(9), start: 0, end: 0 });
    }
    let coverage = coverage(flow.clone());
    let bound = price_flow(&flow, &Terms { iterations_max: 12, repairs_max: 1, ..Terms::default() });
    let (made_up, observed) =
        ([("issue".to_owned(), "1\u{1b}[2J".to_owned())].into(), ObservedCounts::default());
    let agents = [AgentRow { agent: "liar", runs: 2, ends: [("failed", 2)].into(), covered: 0 }];
    let bugs = [BugRow { agent: "liar", run: 2, what: "9 asks, at most 8".to_owned() }];
    let result = FinishedSimulation {
        flow: &flow.name,
        dialect: flow.dialect,
        seed: 7,
        iterations_max: 12,
        own_iterations_max: 30,
        made_up: &made_up,
        agents: &agents,
        coverage: &coverage,
        sources: &sources,
        bound: &bound,
        observed: &observed,
        bugs: &bugs,
        min_coverage: Some(50.0),
        stopped: &["random"],
    };
    assert!(!result.is_enough());
    let text = result.text();
    assert!(!text.contains('\u{1b}'));
    insta::assert_snapshot!(text.lines().take(26).collect::<Vec<_>>().join("\n"), @"
    review (takt): 2 runs, seed 7
    limit       at most 12 iterations; the definition says 30
    generated   issue=1

    agent          covers  ends
    liar   2 runs       0  2 failed

    covered     0 of 31 (0%)
    steps       0 of 8
    edges       0 of 8
    gates       0 of 12
    monitors    0 of 1
    limits      0 of 1
    ends        0 of 1
    bound       at most 12 iterations, 18 visits, 45 calls
    observed    at most 0 iterations, 0 visits, 0 calls in a run
    stopped     the time limit stopped random
                their coverage is partial; `--time SECONDS` gives more time

    not covered
      pieces/review.yaml:3  step     plan
                            edge     plan --ready→ reviewers
                            edge     plan --unclear→ ask_user
      pieces/review.yaml:3  gate     plan: ready
      pieces/review.yaml:3  gate     plan: unclear
      pieces/review.yaml:3  step     reviewers
    ");
    assert!(text.ends_with("bug of cuegate: liar in run 2: 9 asks, at most 8\n"), "{text}");
    let json = result.json();
    insta::assert_snapshot!(json["uncovered"][0], @r#"{"kind":"step","name":"plan","step":"plan","file":"pieces/review.yaml","line":3,"reason":null}"#);
    insta::assert_snapshot!(json["coverage"], @r#"{"percent":0.0,"covered":0,"of":31,"min":50.0,"enough":false,"by_kind":{"step":{"covered":0,"of":8},"edge":{"covered":0,"of":8},"gate":{"covered":0,"of":12},"monitor":{"covered":0,"of":1},"limit":{"covered":0,"of":1},"end":{"covered":0,"of":1}}}"#);
    insta::assert_snapshot!(json["bugs"], @r#"[{"agent":"liar","run":2,"what":"9 asks, at most 8"}]"#);
}

/// `barred` and `takes` of the items whose names contain a word.
fn reasons(flow: &Flow, iterations_max: u32, word: &str) -> Vec<(Option<String>, Option<String>)> {
    let found = Coverage::new(Arc::new(StateGraph::explore(Arc::new(flow.clone()), iterations_max)));
    let named = found.items.iter().filter(|item| item.name.contains(word));
    named.map(|item| (item.barred.clone(), item.takes.clone())).collect()
}

#[test]
fn a_monitor_that_never_acts_does_not_count() {
    let mut flow = piece();
    assert_eq!(reasons(&flow, 12, "monitor:reviewers+fix")[0].0, None);
    let plan = flow.find("plan").unwrap();
    flow.monitors[0].cycle.insert(0, vec![plan]);
    let monitor = flow.monitors[0].name.to_string();
    let found = Coverage::new(Arc::new(StateGraph::explore(Arc::new(flow), 12)));
    let item = found.items.iter().find(|item| item.kind == CoverKind::Monitor && item.name == monitor);
    assert_eq!(item.unwrap().barred.as_deref(), Some("no run goes round its cycle"));
}

/// A fallback to a jump needs a target, which an unusable answer does not name.
#[test]
fn a_fallback_that_nobody_says_the_target_of_does_not_count() {
    let of = |default: fn(StepId) -> Option<StepId>| {
        let mut flow = registry();
        let to = flow.find("closure.fix").unwrap();
        let step = &mut flow.steps[0];
        let outcome = step.edges[0].on.clone();
        let field = FieldPath::parse("target");
        step.edges[0].to = Target::Jump { field, among: vec![to], default: default(to) };
        let Gate::Readers(readers) = &mut step.gate else { panic!("it is read") };
        readers.push(OutcomeReader::Fallback(outcome));
        reasons(&flow, 8, "falls back").remove(0).0
    };
    assert_eq!(of(|_| None).as_deref(), Some("an answer that cannot be used names no step"));
    assert_eq!(of(Some), None);
}

/// Items beyond the iteration limit of the simulation are uncovered, not unreachable.
#[test]
fn the_limit_of_the_simulation_is_not_the_definitions() {
    let mut flow = registry();
    let last = flow.steps.len() - 1;
    flow.steps[last].edges[1].bound = Some(EdgeBound { counter: CounterId(0), max: 70 });
    flow.limits.iterations_max = 500;
    let of = |flow: &Flow, max| reasons(flow, max, "more than 70 times").remove(0);
    let (barred, takes) = of(&flow, 60);
    assert_eq!(barred, None);
    assert!(takes.unwrap().contains("--max-iterations"));
    assert_eq!(of(&flow, 500), (None, None));
    flow.limits.iterations_max = 70;
    assert_eq!(of(&flow, 60).0.as_deref(), Some("needs 143 iterations, and the limit is 70"));
}

/// A verdict that counts further than the longest path ends no run.
#[test]
fn a_verdict_that_no_way_is_long_enough_for_does_not_count() {
    let mut flow = registry();
    flow.limits.iterations_max = 10;
    flow.verdict = Verdict::Iterations(10);
    let barred = |flow: &Flow| -> Vec<Option<String>> {
        let found = Coverage::new(Arc::new(StateGraph::explore(Arc::new(flow.clone()), 10)));
        let verdict =
            |item: &&super::CoverItem| item.kind == CoverKind::Verdict || item.name.contains("verdict");
        found.items.iter().filter(verdict).map(|item| item.barred.clone()).collect()
    };
    assert_eq!(barred(&flow), [None, None]);
    let limit = reasons(&flow, 10, "at most 10 iterations").remove(0).0;
    assert_eq!(limit.as_deref(), Some("no run is longer"));
    for step in &mut flow.steps {
        step.edges.retain(|edge| !matches!(edge.to, Target::Origin { .. } | Target::Select { .. }));
    }
    flow.steps[0].edges.retain(|edge| edge.on.to_string() != "repeat");
    let why = Some("no run is long enough".to_owned());
    assert_eq!(barred(&flow), [why.clone(), why]);
}
