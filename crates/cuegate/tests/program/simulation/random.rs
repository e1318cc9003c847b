//! Simulation of random flows of each format: obedient agents cover every reachable item.

use std::sync::Arc;

use cuegate_flow::{
    checks::check_draft,
    model::{Flow, Limits, Verdict},
};
use cuegate_runner::simulation::Agent;
use cuegate_testkit::{
    random::{Dialect, draft},
    world::roll,
};

use crate::simulation::simulate::walked;

/// The default number of flows per format.
const FLOWS: u64 = 60;

/// A flow without errors, with a limit and sometimes a verdict.
fn flow(dialect: Dialect, seed: u64) -> Option<Arc<Flow>> {
    let mut wired = draft(dialect, seed);
    let pick = |what: &str, below: u64| roll(seed, what) % below;
    let max = [2, 4, 9, 20, 40][pick("limit", 5) as usize];
    wired.limits = Limits::new(max);
    let times = 1 + pick("times", 6) as u32;
    let (word, count) = (Verdict::Keyword("ALL DONE".into()), Verdict::Iterations(times));
    let of = wired.steps[pick("of", wired.steps.len() as u64) as usize].name.clone();
    let checks = Verdict::Checks { max: times, of: vec![of] };
    wired.verdict = match pick("verdict", 12) {
        0 => word,
        1 => count,
        2 | 3 => checks,
        4 => Verdict::Every(vec![count, word]),
        5 => Verdict::Any(vec![checks, word]),
        6 => Verdict::First(vec![checks, count]),
        _ => Verdict::Flow,
    };
    let checked = check_draft(wired);
    checked.flow.map(Arc::new)
}

/// The reachable items that were not covered.
fn left(flow: &Arc<Flow>, seed: u64) -> Vec<String> {
    let found = walked(flow, seed, None, &[Agent::Obedient]);
    assert_eq!(found.bugs, [], "{} {seed}", flow.dialect);
    let items = found.coverage.items.iter();
    // Fallbacks need a disobedient agent, and reachability is not decided for every item.
    let is_told = |why: &&str| why.contains("cannot be used") || why.contains("was not decided");
    let left = items
        .filter(|item| item.hits == 0 && item.barred.is_none())
        .filter(|item| item.takes.as_deref().filter(is_told).is_none());
    let known = found.coverage.items.iter().filter(|item| item.hits > 0 && item.barred.is_some());
    left.map(|item| format!("{} {} ({:?})", item.kind.as_str(), item.name, item.takes))
        .chain(
            known.map(|item| format!("{} {} is not to be: {:?}", item.kind.as_str(), item.name, item.barred)),
        )
        .collect()
}

fn compare(dialect: Dialect) {
    covered(|seed| flow(dialect, seed));
}

fn covered(flow: impl Fn(u64) -> Option<Arc<Flow>>) {
    let flows = std::env::var("CUEGATE_FLOWS").ok().and_then(|text| text.parse().ok()).unwrap_or(FLOWS);
    let (mut seed, mut compared, mut wrong) = (0, 0, Vec::new());
    while compared < flows {
        seed += 1;
        let Some(flow) = flow(seed) else { continue };
        compared += 1;
        let left = left(&flow, seed);
        if !left.is_empty() {
            let max = flow.limits.iterations_max;
            wrong.push(format!("{seed}, {max} iterations, {:?}: {left:#?}", flow.verdict));
        }
    }
    assert!(wrong.is_empty(), "{} of {flows}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn simulation_covers_random_closing_registries() {
    compare(Dialect::Closing);
}

#[test]
fn simulation_covers_random_complete_registries() {
    compare(Dialect::Complete);
}

#[test]
fn simulation_covers_random_check_flows() {
    compare(Dialect::Check);
}

#[test]
fn simulation_covers_random_pieces() {
    compare(Dialect::Piece);
}

/// Remedies, parallel steps, fallbacks, persons and monitors together.
#[test]
fn simulation_covers_random_mixed_flows() {
    covered(crate::simulation::simulate::random);
}
