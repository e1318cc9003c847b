//! Guards against quadratic run time: by counting work where possible, otherwise by sizes that would take minutes.

use crate::analysis::reachability::Reachability;
use crate::checks::resolve::resolve_draft;
use crate::checks::testing::{codes_of, draft, hand_on, name, need, schema};
use crate::model::{Draft, Flow, Selector, Target};
use serde_json::json;

/// `a` leads to one of many steps by its handoff value `kind`; those form a chain from the last to the first.
fn selecting(count: usize, last: &str) -> Draft {
    let line = |at: usize| match at {
        0 => format!("s0: next → {last}\n"),
        at => format!("s{at}: next → s{}\n", at - 1),
    };
    let lines: String = (0..count).map(line).collect();
    let mut draft = draft(&format!("a: next → z\nz: done → end\n{}", lines.trim_end()));
    hand_on(&mut draft, 0, "kind");
    let kinds: Vec<String> = (0..count).map(|at| format!("k{at}")).collect();
    schema(&mut draft, 0, json!({"required": ["kind"], "properties": {"kind": {"enum": kinds}}}));
    draft.steps[0].edges[0].to = Target::Select {
        by: Selector::Handoff("kind".into()),
        cases: kinds.iter().enumerate().map(|(at, kind)| (&**kind, at)).map(case).collect(),
        default: None,
    };
    draft
}

fn case((kind, at): (&str, usize)) -> (crate::Str, crate::model::Name) {
    (kind.into(), name(&format!("s{at}")))
}

fn live(draft: Draft) -> (Flow, Reachability) {
    let flow = resolve_draft(draft, &[], &mut Vec::new()).unwrap().flow;
    let live = Reachability::of(&flow, &[flow.entry], true);
    (flow, live)
}

#[test]
fn an_unused_value_is_not_tracked() {
    let (flow, live) = live(selecting(400, "z"));
    assert_eq!(live.ways[0].len(), 400);
    assert_eq!(live.followed, flow.steps.len());
    assert!(
        (0..flow.steps.len()).all(|at| live.carried().entered(at).is_empty()),
        "it is answered anew where it selects"
    );
}

#[test]
fn used_values_are_tracked_in_path_order() {
    let mut awaited = selecting(400, "z");
    awaited.steps[1].edges[0].to = Target::Select {
        by: Selector::Handoff("kind".into()),
        cases: vec![case(("k7", 7))],
        default: Some(name("a")),
    };
    let (flow, live) = live(awaited);
    // Each step in the chain is entered with one value more than the one before it.
    assert!(live.followed < 4 * flow.steps.len(), "{}", live.followed);
    let at_end: Vec<&str> = live.ways[1].iter().map(|way| &*flow.step(way.to).name).collect();
    assert_eq!(at_end, ["a", "s7"]);
}

#[test]
fn one_schema_of_many_values_is_analyzed_once() {
    // Each of many steps hands off one of many values of the same schema, and the next one has a case for one of them.
    let count = 3_000;
    let lines: Vec<String> = (0..count).map(|at| format!("s{at}: next → s{}", at + 1)).collect();
    let mut draft = draft(&format!("{}\ns{count}: done → end", lines.join("\n")));
    let kinds: Vec<String> = (0..count).map(|at| format!("k{at}")).collect();
    schema(&mut draft, 0, json!({"required": ["kind"], "properties": {"kind": {"enum": kinds}}}));
    let shared = match &draft.steps[0].act {
        crate::model::Act::Ask(ask) => ask.schema,
        _ => None,
    };
    for (at, kind) in kinds.iter().enumerate() {
        hand_on(&mut draft, at, "kind");
        if let crate::model::Act::Ask(ask) = &mut draft.steps[at].act {
            ask.schema = shared;
        }
        draft.steps[at].edges[0].to = Target::Select {
            by: Selector::Handoff("kind".into()),
            cases: vec![(kind.as_str().into(), name(&format!("s{}", at + 1)))],
            default: Some(name(&format!("s{}", at + 1))),
        };
    }
    let (flow, live) = live(draft);
    assert_eq!(live.followed, flow.steps.len());
    assert!(live.ways.iter().take(count).all(|ways| ways.len() == 1));
}

#[test]
fn outcomes_of_one_step_are_indexed() {
    // A pairwise comparison would take billions of operations, several times.
    let edges: Vec<String> =
        (0..60_000).map(|at| format!("o{at} → {}", if at == 0 { "end" } else { "b" })).collect();
    let draft = draft(&format!("a: {}\nb: done → a", edges.join(", ")));
    let checked = crate::checks::check_draft(draft);
    let flow = checked.flow.expect("it is sound");
    assert!(checked.diagnostics.is_empty());
    let price =
        crate::analysis::cost_bound::price_flow(&flow, &crate::analysis::cost_bound::Terms::default());
    assert!(price.asks_max().is_some());
}

#[test]
fn handoffs_between_steps_are_indexed() {
    let mut draft = draft("a: next → b\nb: done → end");
    for at in 0..40_000 {
        hand_on(&mut draft, 0, &format!("k{at}"));
        need(&mut draft, 1, "a", &format!("k{at}"));
    }
    // Its answers have no schema, which each finding reports.
    assert_eq!(codes_of(draft), vec!["maybe-unassigned"; 40_000]);
}
