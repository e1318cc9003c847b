//! The search finds the same as walking one by one.

use super::{FOLLOWED_MAX, Goal, Weights, dearest, dearest_walked, longest, most, searched, upper, walked};
use crate::analysis::cost_bound::weights::rejected;
use crate::analysis::cost_bound::{AskRole, Terms, edges::Ways, weights::Measure};
use crate::checks::{
    check,
    testing::{Dice, draft},
};
use crate::{
    Str,
    diagnostics::Span,
    model::{Draft, Edge, Flow, Name, Report, Target, Template},
};

/// A random flow with step costs, remedies, and uncounted steps that lead forward only.
fn random(dice: &mut Dice) -> Flow {
    let steps = 1 + dice.below(9);
    let mut text = String::new();
    for step in 0..steps {
        let edges: Vec<String> = (0..=dice.below(3))
            .map(|edge| match dice.below(steps + 1) {
                to if to == steps => format!("o{edge} → end"),
                to => format!("o{edge} → s{to}"),
            })
            .collect();
        text.push_str(&format!("s{step}: {}\n", edges.join(", ")));
    }
    let mut draft: Draft = draft(text.trim());
    let names: Vec<Str> = draft.steps.iter().map(|step| step.name.clone()).collect();
    for (index, step) in draft.steps.iter_mut().enumerate() {
        let place = |edge: &Edge<Name>| match &edge.to {
            Target::Step(name) => names.iter().position(|known| *known == name.text).unwrap(),
            _ => usize::MAX,
        };
        step.counts = !(dice.below(3) == 0 && step.edges.iter().all(|edge| place(edge) > index));
        if let crate::model::Act::Ask(ask) = &mut step.act {
            for at in 0..dice.below(4) {
                let request = Template::default();
                ask.reports.push(Report { name: format!("{at}.md").into(), request, span: Span::default() });
            }
        }
        if dice.below(4) == 0 {
            step.edges[0].remedy = Some(Template::default());
        }
    }
    let checked = check(draft);
    checked.flow.or(checked.unsound).expect("its names lead somewhere")
}

#[test]
fn agrees_with_walking() {
    let mut dice = Dice(11);
    let (mut compared, mut rounds) = (0, 0);
    for _ in 0..6_000 {
        let flow = random(&mut dice);
        let ways = Ways::of(&flow);
        let max = 1 + dice.below(40) as u32;
        let terms = Terms { iterations_max: max, repairs_max: dice.below(3) as u32, ..Terms::default() };
        for measure in
            [Measure::Asks, Measure::Visits, Measure::Role(AskRole::Report), Measure::Role(AskRole::Remedy)]
        {
            let weights = Weights::new((&flow, &rejected(&flow)), false, &terms, measure);
            let expected = walked(&ways, &weights, max);
            let found = searched(&ways, &weights, max, Goal::Cost).expect("a small flow is searched");
            assert_eq!(found.cost, i128::from(expected), "{max} iterations of {flow:?}");
            let upper = upper(&ways, &weights, max);
            assert!(upper >= expected, "{upper} < {expected}: {max} iterations of {flow:?}");
            compared += 1;
        }
        let weights = Weights::new((&flow, &rejected(&flow)), false, &terms, Measure::Asks);
        let expected = dearest_walked(&flow, &ways, &weights, max);
        assert_eq!(longest(&ways, max), expected.iterations, "{max} iterations of {flow:?}");
        rounds += u64::from(expected.iterations == u64::from(max));
        let Some(found) = searched(&ways, &weights, max, Goal::Longest) else {
            assert!(expected.legs.is_empty(), "no walk comes to a step that counts: {flow:?}");
            continue;
        };
        // The walk has the same cost and length, and takes only existing edges.
        let cost = |steps: &[u32]| {
            let hops = steps.windows(2).map(|hop| {
                let taken = ways.out[hop[0] as usize].iter().filter(|way| way.to == hop[1]);
                taken.map(|way| weights.of(hop[1] as usize, way.remedy)).max().expect("there is such a way")
            });
            weights.of(steps[0] as usize, false) + hops.sum::<u64>()
        };
        let counted = found.steps.iter().filter(|step| flow.steps[**step as usize].counts).count() as u64;
        assert_eq!(found.steps[0], flow.entry.0);
        assert_eq!(counted, expected.legs.iter().map(|(_, times)| times).sum::<u64>(), "{max} of {flow:?}");
        let scale = i128::from(max) + 1;
        assert_eq!(found.cost.div_euclid(scale), i128::from(cost(&found.steps)), "{max} of {flow:?}");
    }
    assert!(compared > 20_000 && rounds > 1_000, "{compared} {rounds}");
}

/// The largest possible limit: no walk can be followed that long.
#[test]
fn a_run_of_billions_of_iterations_is_bounded_quickly() {
    let checked = check(draft("a: again → a, next → b\nb: back → a, done → end"));
    let flow = checked.flow.or(checked.unsound).expect("its names lead somewhere");
    let (ways, max) = (Ways::of(&flow), u32::MAX);
    let terms = Terms { iterations_max: max, repairs_max: 1, ..Terms::default() };
    let weights = Weights::new((&flow, &rejected(&flow)), false, &terms, Measure::Asks);
    assert_eq!(most(&ways, &weights, max), 2 * u64::from(max));
    let walk = dearest(&flow, &ways, &weights, max);
    assert_eq!(walk.iterations, u64::from(max));
    assert_eq!(walk.legs.iter().map(|(_, times)| times).sum::<u64>(), u64::from(FOLLOWED_MAX));
}

#[test]
fn a_long_run_of_a_long_flow_is_searched() {
    // A line of two-step cycles, and a last step with a self-loop that must provide a report: the best pace is at the
    // far end.
    let (pairs, mut text) = (2_000, String::new());
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
    let flow = check(draft).flow.expect("it is sound");
    let found =
        crate::analysis::cost_bound::price(&flow, &Terms { iterations_max: 50_000, ..Terms::default() });
    // 4,000 iterations lead there; each later one has two asks.
    assert_eq!((found.iterations, found.asks), (50_000, 4_000 + 2 * 46_000));
    assert_eq!(found.path.last(), Some(&("z".into(), 46_000)));
}
