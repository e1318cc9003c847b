//! Long runs are bounded exactly where they can be followed, and from above elsewhere.

use super::{Weights, find_worst_walk, followed_max, maximize_walk_cost};
use crate::analysis::cost_bound::weights::mark_rejectable_steps;
use crate::analysis::cost_bound::{Terms, edges::PlaceGraph, weights::Measure};
use crate::checks::{check_draft, testing::draft};
use crate::{
    diagnostics::Span,
    model::{Report, Template},
};

/// The largest possible limit: no walk can be followed that long.
#[test]
fn a_run_of_billions_of_iterations_is_bounded_quickly() {
    let checked = check_draft(draft("a: again → a, next → b\nb: back → a, done → end"));
    let flow = checked.flow.or(checked.unsound).expect("its names lead somewhere");
    let (ways, max) = (PlaceGraph::of(&flow), u32::MAX);
    let terms = Terms { iterations_max: max, repairs_max: 1, ..Terms::default() };
    let weights = Weights::new((&flow, &mark_rejectable_steps(&flow)), false, &terms, Measure::Asks);
    assert_eq!(maximize_walk_cost(&ways, &weights, max), 2 * u64::from(max));
    let walk = find_worst_walk(&flow, &ways, &weights, max);
    assert_eq!(walk.iterations, u64::from(max));
    assert_eq!(walk.legs.iter().map(|(_, times)| times).sum::<u64>(), u64::from(followed_max(&ways)));
}

#[test]
fn a_long_run_of_a_long_flow_is_followed() {
    // A line of two-step cycles, and a last step with a self-loop that owes a report: the most expensive cycle is at the
    // far end.
    let (pairs, mut text) = (200, String::new());
    for at in 0..pairs {
        let next = if at + 1 == pairs { "z".to_owned() } else { format!("a{}", at + 1) };
        text.push_str(&format!("a{at}: next → b{at}\nb{at}: back → a{at}, next → {next}\n"));
    }
    text.push_str("z: again → z, done → end");
    let mut draft = draft(&text);
    if let Some(crate::model::Act::Ask(ask)) = draft.steps.last_mut().map(|step| &mut step.act) {
        let request = Template::default();
        ask.reports.push(Report { name: "z.md".into(), request, span: Span::default() });
    }
    let flow = check_draft(draft).flow.expect("it is sound");
    let found =
        crate::analysis::cost_bound::price_flow(&flow, &Terms { iterations_max: 5_000, ..Terms::default() });
    // 400 iterations lead there; each later one has two asks.
    assert_eq!((found.iterations, found.asks), (5_000, 400 + 2 * 4_600));
    assert_eq!(found.path.last(), Some(&("z".into(), 4_600)));
}
