//! Bounds of small flows, counted by hand, and of random ones, counted by walking all walks.

use super::{
    AskRole, Certificate, ConfiguredModel, Rate, Terms, WalkEnd, WalkMeasure, bound_remaining_asks,
    price_any, price_flow,
};
use crate::checks::{
    check_draft,
    testing::{Dice, draft},
};
use crate::{analysis::cost_bound::*, diagnostics::*, model::*};

fn flow(text: &str, change: impl FnOnce(&mut Draft)) -> Flow {
    let mut draft = draft(text);
    change(&mut draft);
    let checked = check_draft(draft);
    checked.flow.or(checked.unsound).expect("its names lead somewhere")
}

fn terms(iterations_max: u32) -> Terms {
    Terms { iterations_max, ..Terms::default() }
}

fn lever(certificate: &Certificate) -> Option<(&str, u64, u64, u64)> {
    certificate.lever.as_ref().map(|lever| (&*lever.key, lever.from, lever.to, lever.asks))
}

fn legs(certificate: &Certificate) -> Vec<(&str, u64)> {
    certificate.path.iter().map(|(name, times)| (&**name, *times)).collect()
}

#[test]
fn a_line_ends_by_itself() {
    let found = price_flow(&flow("a: next → b\nb: done → end", |_| {}), &terms(20));
    assert_eq!((found.visits, found.iterations, found.asks), (2, 2, 2));
    assert_eq!(found.by_role, [(AskRole::Work, 2)]);
    assert_eq!((legs(&found), found.bounded_by), (vec![("a", 1), ("b", 1)], WalkEnd::Shape));
    assert_eq!(found.lever, None, "nothing to be lowered lowers it");
}

#[test]
fn a_loop_ends_at_the_limit() {
    let looping = flow("a: next → b\nb: again → b, done → c\nc: done → end", |_| {});
    let found = price_flow(&looping, &Terms { repairs_max: 1, ..terms(6) });
    assert_eq!((found.iterations, found.asks), (6, 12));
    assert_eq!(found.by_role, [(AskRole::Work, 6), (AskRole::Repair, 6)]);
    assert_eq!(found.bounded_by, WalkEnd::Iterations);
    assert_eq!(found.path.iter().map(|(_, times)| times).sum::<u64>(), 6);
    // Halving the iterations and dropping repairs have the same effect: the first key wins.
    assert_eq!(lever(&found), Some(("--max-iterations", 6, 3, 6)));
    let budgeted = price_flow(&looping, &Terms { asks: Some(4), ..terms(6) });
    assert_eq!((budgeted.asks, budgeted.bounded_by), (4, WalkEnd::Budget));
}

/// A step with a repetition limit, and one that is watched with it.
fn bounded(max: u32) -> Flow {
    flow("a: again → a, again → b\nb: back → a, done → end\nw: on → a, stop → end", |draft| {
        draft.counters.push(Counter { name: "rounds".into() });
        draft.steps[0].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max });
        draft.steps[2].counts = false;
        let name = |name: &str| Name::new(name, Span::default());
        let cycle = vec![name("a"), name("b")];
        draft.monitors.push(Monitor {
            name: "m".into(),
            cycle: cycle.into_iter().map(|step| vec![step]).collect(),
            ignored: Vec::new(),
            threshold: 2,
            judge: name("w"),
            span: Span::default(),
        });
        let span = Span { start: 7, end: 8, ..Span::default() };
        draft.keys.push(LimitKey::new("maxIterations", Span::default(), 40, 1, LimitTarget::Iterations));
        draft.keys.push(LimitKey::new("maxAttempts", span, max, 0, LimitTarget::Counter(CounterId(0))));
        draft.keys.push(LimitKey::new("threshold", span, 2, 1, LimitTarget::Monitor(0)));
    })
}

#[test]
fn the_best_key_belongs_to_the_definition() {
    // Only the counted edge leads back, and it gets used up.
    let mut line = bounded(9);
    line.steps[1].edges.remove(0);
    let found = price_flow(&line, &terms(40));
    assert_eq!((found.asks, found.bounded_by), (11, WalkEnd::Shape));
    assert_eq!(lever(&found), Some(("maxAttempts", 9, 4, 6)));
    assert_eq!(found.lever.unwrap().span.map(|span| span.start), Some(7));
    // In an endless cycle the iteration limit has more effect, and the cost halves.
    let looping = price_flow(&bounded(9), &Terms { ask_usd_micro: Some(10), ..terms(40) });
    let best = looping.lever.clone().unwrap();
    assert_eq!((lever(&looping).unwrap().0, best.to), ("maxIterations", 20));
    assert_eq!(best.usd_micro, Some(best.asks * 10 * TRIES_MAX));
    // The given limit is the one that can be lowered.
    let given = Terms { given: true, ..terms(30) };
    assert_eq!(lever(&price_flow(&bounded(9), &given)).unwrap().0, "--max-iterations");
}

#[test]
fn monitors_act_after_their_rounds() {
    let found = price_flow(&bounded(0), &terms(8));
    // Two rounds, the judge, two rounds, and the judge before the visit that exceeds the limit.
    assert_eq!((found.iterations, found.asks), (8, 10));
    // The rest of a run is bounded without its history.
    let flow = bounded(0);
    assert!(bound_remaining_asks(&flow, flow.find("b").unwrap(), &terms(4)) >= 6);
}

#[test]
fn untracked_counters_give_an_upper_bound() {
    // Counters that no run can use up do not matter; others are ignored, with an assumption.
    let said = |max, terms: &Terms| {
        let found = price_flow(&bounded(max), terms);
        (found.asks, found.assumptions.iter().any(|said| said.contains("counts of `rounds` are not tracked")))
    };
    assert!(!said(3_000, &terms(40)).1);
    let (asks, upper) = said(3_000, &terms(9_000));
    assert!(upper && asks >= 9_000, "{asks}");
    // Lower numbers may be tracked where higher ones were not, and are priced accordingly.
    let mut line = bounded(800);
    line.steps[1].edges.remove(0);
    line.monitors.clear();
    let found = price_flow(&line, &Terms { given: true, ..terms(1_500) });
    assert_eq!(found.asks, 1_500, "more than the 802 that a run comes to");
    assert_eq!(lever(&found), Some(("maxAttempts", 800, 400, 402)));
}

/// An untracked counter is untracked for every key.
#[test]
fn lowering_a_key_does_not_change_other_keys() {
    let flow = flow("a: again → a, done → end\nc: on → c, done → end", |draft| {
        let counters = ["rounds", "few"].map(|name| Counter { name: name.into() });
        draft.counters.extend(counters);
        for (step, max, to) in [(0, 3_000, "c"), (1, 8, "a")] {
            let first = &mut draft.steps[step].edges[0];
            first.bound = Some(EdgeBound { counter: CounterId(step as u32), max });
            let further =
                Edge { bound: None, to: Target::Step(Name::new(to, Span::default())), ..first.clone() };
            draft.steps[step].edges.insert(1, further);
        }
        draft.steps[1].edges[1].resets.push(CounterId(1));
        if let Act::Ask(ask) = &mut draft.steps[1].act {
            for name in ["x", "y", "z"] {
                let request = Template::default();
                ask.reports.push(Report { name: name.into(), request, span: Span::default() });
            }
        }
        draft.keys.push(LimitKey::new("few", Span::default(), 8, 1, LimitTarget::Counter(CounterId(1))));
    });
    let found = price_flow(&flow, &terms(9_000));
    assert!(found.assumptions.iter().any(|said| said.contains("counts of `rounds` are not tracked")));
    let (key, _, to, asks) = lever(&found).expect("the limit lowers it");
    assert_eq!((key, to), ("--max-iterations", 4_500));
    assert_eq!(asks, price_flow(&flow, &terms(4_500)).asks);
    assert!(asks > 9_000, "{asks}");
}

#[test]
fn a_verdict_ends_runs_earlier() {
    let text = "a: again → a, done → end";
    let of = |verdict| price_flow(&flow(text, |draft| draft.verdict = verdict), &terms(20)).asks;
    assert_eq!(of(Verdict::Iterations(3)), 3);
    assert_eq!(of(Verdict::Keyword("x".into())), 20);
    let both = || vec![Verdict::Iterations(3), Verdict::Iterations(5)];
    assert_eq!((of(Verdict::Any(both())), of(Verdict::Every(both()))), (3, 5));
    assert_eq!(of(Verdict::Every(vec![Verdict::Iterations(3), Verdict::Keyword("x".into())])), 20);
    let checks = |max| Verdict::Checks { max, of: vec!["a".into()] };
    assert_eq!((of(checks(4)), of(Verdict::Any(vec![Verdict::Iterations(3), checks(2)]))), (4, 2));
    assert_eq!(of(Verdict::Every(vec![Verdict::Iterations(3), checks(7)])), 7);
    assert_eq!(of(Verdict::Checks { max: 4, of: vec!["b".into()] }), 20, "none of its answers counts");
}

/// A step without an answer uses its fallback; the verdict does not count that.
#[test]
fn a_fallback_does_not_count_as_a_check() {
    let of = |fallback: bool| {
        let flow = flow("a: again → a, done → end", |draft| {
            draft.verdict = Verdict::Checks { max: 2, of: vec!["a".into()] };
            if let Gate::Readers(readers) = &mut draft.steps[0].gate {
                readers.extend(fallback.then(|| OutcomeReader::Fallback(Outcome::Named("again".into()))));
            }
        });
        price_flow(&flow, &terms(20)).asks
    };
    assert_eq!((of(false), of(true)), (2, 20));
}

#[test]
fn verdict_counts_can_be_lowered() {
    let flow = flow("a: again → a, done → end", |draft| {
        let checks = Verdict::Checks { max: 8, of: vec!["a".into()] };
        draft.verdict = Verdict::Any(vec![Verdict::Iterations(12), checks]);
        draft.keys.push(LimitKey::new("maxIterations", Span::default(), 40, 1, LimitTarget::Iterations));
        draft.keys.push(LimitKey::new("maxIterations", Span::default(), 12, 1, LimitTarget::Part(1)));
        draft.keys.push(LimitKey::new("maxChecks", Span::default(), 8, 1, LimitTarget::Part(2)));
    });
    assert_eq!(lever(&price_flow(&flow, &terms(40))), Some(("maxChecks", 8, 4, 4)));
    // The given limit precedes that of the definition; lowering the latter has no effect.
    let given = price_flow(&flow, &Terms { given: true, ..terms(6) });
    assert_eq!(lever(&given), Some(("--max-iterations", 6, 3, 3)));
}

/// One has more asks, the other more iterations: a run may be either.
#[test]
fn the_bound_of_two_variants_is_their_maximum() {
    let keys = |draft: &mut Draft| {
        draft.keys.push(LimitKey::new("max_iterations", Span::default(), 8, 1, LimitTarget::Iterations));
    };
    let long = flow("a: again → a, done → end", keys);
    let dear = flow("a: done → end", |draft| {
        keys(draft);
        let report =
            |name: &str| Report { name: name.into(), request: Template::default(), span: Span::default() };
        if let Act::Ask(ask) = &mut draft.steps[0].act {
            ask.reports.extend(["x", "y", "z", "u", "v"].map(report));
        }
    });
    let terms = terms(8);
    let (found, dearest) = price_any((&long, &terms), &[(&dear, &terms)]);
    assert_eq!((found.asks, found.iterations, dearest), (8, 8, 0));
    assert_eq!(found.by_role, [(AskRole::Work, 8), (AskRole::Report, 5)]);
    assert_eq!(lever(&found), Some(("max_iterations", 8, 4, 6)), "the other one still comes to that");
    let (found, dearest) = price_any((&dear, &terms), &[(&long, &terms)]);
    assert_eq!((found.asks, found.iterations, dearest), (8, 8, 1));
    assert_eq!(legs(&found), [("a", 8)]);
}

fn command() -> Validator {
    Validator {
        name: "test".into(),
        command: "true".into(),
        success: Success::ExitCode(0),
        extract: Vec::new(),
        timeout_ms: 1_000,
        values: Vec::new(),
    }
}

#[test]
fn a_remedy_comes_before_the_verdict() {
    let of = |max: Option<u32>| {
        let text = "a: done → v\nv: pass → end";
        let flow = flow(text, |draft| {
            draft.steps[1].gate = Gate::Exit;
            draft.steps[1].edges[0].on = Outcome::Pass;
            draft.verdict = Verdict::Iterations(3);
            draft.counters.push(Counter { name: "a attempts".into() });
            draft.steps[1].act = Act::Exec { commands: vec![command()] };
            draft.steps[1].counts = false;
            let target = Target::Step(Name::new("a", Span::default()));
            let mut edge = Edge::new(Outcome::Fail(0), target, Span::default());
            edge.remedy = Some(Template::default());
            edge.bound = max.map(|max| EdgeBound { counter: CounterId(0), max });
            draft.steps[1].edges.push(edge);
        });
        price_flow(&flow, &terms(20)).asks
    };
    // The remedies of a failed validator precede the verdict, up to their limit; without one, only the iteration limit
    // ends the run.
    assert_eq!((of(Some(1)), of(Some(4)), of(None)), (2, 5, 20));
}

#[test]
fn parallel_steps_judges_reports_and_remedies() {
    let work = |draft: &mut Draft, step: usize| match &mut draft.steps[step].act {
        Act::Ask(ask) => {
            let request = Template::default();
            ask.reports.push(Report { name: "r.md".into(), request, span: Span::default() });
        }
        _ => unreachable!(),
    };
    let name = |name: &str| Name::new(name, Span::default());
    let parallel =
        flow("all: done → c\nx: done → end\ny: done → end\nj: done → end\nc: done → end", |draft| {
            draft.steps[0].act = Act::All { members: vec![name("x"), name("y")], width: 2 };
            draft.steps[0].gate = Gate::Join { rules: Vec::new(), judges: vec![name("j")] };
            for member in [1, 2, 3] {
                draft.steps[member].counts = false;
            }
            work(draft, 1);
            if let Act::Ask(ask) = &mut draft.steps[3].act {
                ask.role = Role::Judge;
            }
            // The last step may be repeated with a remedy.
            let mut edge = Edge::new(Outcome::Named("bad".into()), Target::Step(name("c")), Span::default());
            edge.remedy = Some(Template::default());
            draft.steps[4].edges.push(edge);
            if let Gate::Readers(readers) = &mut draft.steps[4].gate
                && let Some(OutcomeReader::Field { words, .. }) = readers.first_mut()
            {
                words.push(("bad".into(), Outcome::Named("bad".into())));
            }
        });
    let found = price_flow(&parallel, &terms(3));
    // x, y, the report of x, the judge; c; c again with a remedy.
    assert_eq!((found.iterations, found.visits, found.asks), (3, 4, 6));
    let by_role = [(AskRole::Work, 3), (AskRole::Report, 1), (AskRole::Judge, 1), (AskRole::Remedy, 1)];
    assert_eq!(found.by_role, by_role);
}

#[test]
fn an_answer_with_an_immediate_outcome_is_not_retried() {
    let of = |change: fn(&mut Step<Name>)| {
        let flow = flow("a: again → a, done → end", |draft| {
            let step = &mut draft.steps[0];
            step.boundary.permission = Permission::AcceptEdits;
            if let Gate::Readers(readers) = &mut step.gate {
                readers.push(OutcomeReader::Otherwise(Outcome::Named("again".into())));
            }
            change(step);
        });
        let found = price_flow(&flow, &Terms { repairs_max: 2, ..terms(3) });
        (found.asks, found.by_role)
    };
    assert_eq!(of(|_| {}), (3, vec![(AskRole::Work, 3)]));
    let repaired = (9, vec![(AskRole::Work, 3), (AskRole::Repair, 6)]);
    // An unpermitted write is always retried, whatever the answer says.
    assert_eq!(of(|step| step.boundary.permission = Permission::Plan), repaired);
    // Any answer is accepted here; one that names nothing is not.
    assert_eq!(of(|step| step.gate = Gate::Always(Outcome::Named("again".into()))).0, 3);
    let first = |step: &mut Step<Name>| {
        if let Gate::Readers(readers) = &mut step.gate {
            readers.truncate(1);
        }
    };
    assert_eq!(of(first), repaired);
}

#[test]
fn answered_questions_cost_money() {
    let answered = flow("a: next → b\nb: done → end", |draft| {
        draft.conduct.auto_response = Some("go on".into());
    });
    let found = price_flow(&answered, &Terms { ask_usd_micro: Some(10), ..terms(9) });
    assert_eq!((found.asks, found.usd_micro), (12, Some(360)));
    assert_eq!(found.by_role, [(AskRole::Work, 12)], "nothing is repaired, so nobody asks in a repair");
}

#[test]
fn monitor_judges_are_counted_per_round() {
    let watched = flow("a: next → b\nb: again → a, done → end\nj: on → a, off → end", |draft| {
        let name = |name: &str| Name::new(name, Span::default());
        draft.steps[2].counts = false;
        draft.monitors.push(Monitor {
            name: "m".into(),
            cycle: vec![vec![name("a")], vec![name("b")]],
            ignored: Vec::new(),
            threshold: 3,
            judge: name("j"),
            span: Span::default(),
        });
    });
    // Of 14 iterations, a monitor acts on two groups of six.
    assert_eq!(price_flow(&watched, &terms(14)).asks, 16);
    assert_eq!(price_flow(&watched, &terms(5)).asks, 5);
}

#[test]
fn a_configured_model_precedes_the_format_default() {
    let rates = |model: &str, usd: f64| [(model.into(), Rate { input: usd, output: usd })].into();
    let priced = |rate: Option<f64>| {
        let rate = rate.map(|usd| Rate { input: usd, output: usd });
        let configured = Some(ConfiguredModel { model: "own".into(), rate });
        let terms = Terms { ask_tokens: Some(1_000), rates: rates("m", 1.0), configured, ..terms(9) };
        let found =
            price_flow(&flow("a: done → end", |draft| draft.default_model = Some("m".into())), &terms);
        (found.usd_micro, found.unbounded_because)
    };
    assert_eq!(priced(Some(2.0)).0, Some(6_000));
    let (unknown, why) = priced(None);
    assert_eq!(unknown, None);
    assert!(why[0].contains("the cost of a call of own is unknown"), "{why:?}");
}

#[test]
fn a_free_model_is_free_for_any_number_of_tokens() {
    let terms = Terms { rates: [("m".into(), Rate { input: 0.0, output: 0.0 })].into(), ..terms(9) };
    let found = price_flow(&flow("a: done → end", |draft| draft.default_model = Some("m".into())), &terms);
    assert_eq!((found.tokens, found.usd_micro), (None, Some(0)));
}

#[test]
fn a_saturated_amount_is_not_a_bound() {
    for (ask_tokens, usd) in [(u64::MAX, 0.0), (1 << 63, 1.0), (1, 1e30)] {
        let rates = [("m".into(), Rate { input: usd, output: usd })].into();
        let terms = Terms { ask_tokens: Some(ask_tokens), rates, ..terms(9) };
        let found =
            price_flow(&flow("a: done → end", |draft| draft.default_model = Some("m".into())), &terms);
        assert_eq!(found.tokens.is_none(), ask_tokens > 1, "{ask_tokens}");
        assert_eq!(found.usd_micro.is_none(), usd > 0.0, "{usd}");
        assert!(!found.unbounded_because.is_empty());
    }
}

#[test]
fn money_is_bounded_by_caps_prices_or_budgets() {
    let text = "a: next → b\nb: done → end";
    let priced = |terms: Terms| {
        let found = price_flow(&flow(text, |draft| draft.default_model = Some("m".into())), &terms);
        (found.tokens, found.usd_micro, found.unbounded_because.len())
    };
    assert_eq!(priced(terms(9)), (None, None, 2));
    assert_eq!(
        priced(Terms { ask_usd_micro: Some(500), ..terms(9) }),
        (None, Some(3_000), 1),
        "each ask three times"
    );
    let rates = [("m".into(), Rate { input: 1.0, output: 4.0 })].into();
    let by_price = Terms { ask_tokens: Some(1_000), rates, ..terms(9) };
    assert_eq!(priced(by_price.clone()), (Some(6_000), Some(24_000), 0));
    assert_eq!(priced(Terms { usd_micro: Some(7_000), ..by_price.clone() }), (Some(6_000), Some(7_000), 0));
    assert_eq!(priced(Terms { asks: Some(1), ..by_price.clone() }), (Some(1_000), Some(4_000), 0));
    // Another model for all asks has another price, or none.
    assert_eq!(priced(Terms { model: Some("x".into()), ..by_price }), (Some(6_000), None, 1));
}

#[test]
fn unbounded_amounts_have_a_reason() {
    let text = "a: done → x\nx: next → y\ny: back → x, done → end";
    let endless = flow(text, |draft| {
        draft.steps[1].counts = false;
        draft.steps[2].counts = false;
    });
    let found = price_flow(&endless, &terms(9));
    assert!(found.endless);
    assert_eq!(
        found.unbounded_because.last().map(String::as_str),
        Some("x, y lead to each other without an iteration between them: nothing counts how often")
    );
}

/// The most asks of any walk, by enumeration: each step costs as many asks as its name has letters.
fn walked(flow: &Flow, at: usize, left: u32) -> u64 {
    if flow.steps[at].counts && left == 0 {
        return 0;
    }
    let left = left - u32::from(flow.steps[at].counts);
    let further = flow.steps[at].edges.iter().filter_map(|edge| match &edge.to {
        Target::Step(to) => Some(walked(flow, to.0 as usize, left)),
        _ => None,
    });
    1 + further.max().unwrap_or(0)
}

#[test]
fn the_bound_equals_the_maximum_of_all_walks() {
    let mut dice = Dice(7);
    for _ in 0..3_000 {
        let steps = 1 + dice.below(6);
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
        // Uncounted steps lead forward only, so that every cycle has a counted step.
        let flow = flow(text.trim(), |draft| {
            let names: Vec<Str> = draft.steps.iter().map(|step| step.name.clone()).collect();
            for (index, step) in draft.steps.iter_mut().enumerate().skip(1) {
                let place = |edge: &Edge<Name>| match &edge.to {
                    Target::Step(name) => names.iter().position(|known| *known == name.text).unwrap(),
                    _ => usize::MAX,
                };
                step.counts = !(dice.below(3) == 0 && step.edges.iter().all(|edge| place(edge) > index));
            }
        });
        let max = 1 + dice.below(7) as u32;
        assert_eq!(price_flow(&flow, &terms(max)).asks, walked(&flow, 0, max), "{max} iterations of\n{text}");
    }
}

/// A short path through an expensive model, and a long one through a cheap one.
#[test]
fn money_is_maximized_where_asks_differ_in_cost() {
    let forked = flow(
        "a: dear → b, cheap → c\nb: done → end\nc: again → c, done → d\nd: done → end",
        |draft| {
            for (step, model) in draft.steps.iter_mut().zip(["small", "large", "small", "small"]) {
                if let Act::Ask(ask) = &mut step.act {
                    ask.model = Some(model.into());
                }
            }
            draft.counters.push(Counter { name: "rounds".into() });
            draft.steps[2].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max: 4 });
            draft.keys.push(LimitKey::new(
                "maxAttempts",
                Span::default(),
                4,
                0,
                LimitTarget::Counter(CounterId(0)),
            ));
        },
    );
    let rate = |usd: f64| Rate { input: usd, output: usd };
    let priced = |large: f64| {
        let rates = [("small".into(), rate(1.0)), ("large".into(), rate(large))].into();
        let terms = Terms { ask_tokens: Some(1_000_000), rates, repairs_max: 0, ..terms(20) };
        price_flow(&forked, &terms)
    };
    let long = vec![("a", 1), ("c", 5), ("d", 1)];
    let same = priced(1.0);
    assert_eq!((same.by, legs(&same), same.usd_micro), (WalkMeasure::Asks, long.clone(), Some(21_000_000)));
    assert_eq!(lever(&same), Some(("maxAttempts", 4, 2, 5)));
    let dear = priced(50.0);
    assert_eq!((dear.by, legs(&dear)), (WalkMeasure::Money, vec![("a", 1), ("b", 1)]));
    assert_eq!((dear.usd_micro, dear.asks, dear.iterations), (Some(153_000_000), 7, 7));
    assert_eq!(dear.lever, None, "rounds of what is cheap lower nothing");
    let cheap = priced(2.0);
    assert_eq!((cheap.by, legs(&cheap)), (WalkMeasure::Money, long));
    assert_eq!(lever(&cheap), Some(("maxAttempts", 4, 2, 5)));
    assert_eq!(cheap.lever.as_ref().and_then(|lever| lever.usd_micro), Some(15_000_000));
}
