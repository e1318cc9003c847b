//! Compares the reachability analysis, with the first iteration of each element, with all runs of random flows, which
//! are explored with `decide` alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cuegate_flow::analysis::state_graph::{Mark, StateGraph};
use cuegate_flow::{
    Str,
    checks::check_draft,
    model::{Act, Ending, Flow, StepId},
};

use super::explore::{Explored, explore};
use super::{describe, relaxed};
use cuegate_testkit::random::{Dialect, draft};

/// The number of flows compared per format.
const FLOWS: usize = 2_000;

/// Steps whose outcome belongs to another step: members, and judges that are not visited.
fn asked(flow: &Flow) -> BTreeSet<StepId> {
    let members = flow.steps.iter().filter_map(|step| match &step.act {
        Act::All { members, .. } => Some(members),
        _ => None,
    });
    members.flatten().copied().collect()
}

/// A reached element, as named by both sides.
fn said(flow: &Flow, reach: &StateGraph) -> BTreeMap<String, Option<u32>> {
    let (asked, name) = (asked(flow), |id: &StepId| flow.step(*id).name.clone());
    let mut found = BTreeMap::new();
    for (mark, first) in reach.marks() {
        match mark {
            Mark::Step(id) if flow.step(*id).counts || asked.contains(id) => {
                found.insert(format!("step {}", name(id)), None);
            }
            Mark::Gate(id, outcome) if !asked.contains(id) => {
                found.insert(format!("{} {outcome}", name(id)), None);
            }
            Mark::Monitor(index) => {
                found.insert(format!("monitor {}", flow.monitors[*index].name), None);
            }
            Mark::Spent(id, edge) => {
                found.insert(format!("{} {edge} used up", name(id)), Some(*first));
            }
            _ => {}
        }
    }
    let completed = reach.ends(&Ending::Completed);
    found.extend(completed.map(|first| ("completed".to_owned(), Some(first))));
    found
}

fn done(flow: &Flow, did: &Explored) -> BTreeMap<String, Option<u32>> {
    let asked: Vec<&Str> = asked(flow).iter().map(|id| &flow.step(*id).name).collect();
    let counts = |name: &&Str| asked.contains(name) || flow.step(flow.find(name).unwrap()).counts;
    let met = did.met.iter().filter(counts).map(|name| (format!("step {name}"), None));
    let decided = did.decided.iter().map(|(step, outcome)| (format!("{step} {outcome}"), None));
    let monitors = did.monitors.iter().map(|name| (format!("monitor {name}"), None));
    let used_up = did.used_up.iter();
    let used_up = used_up.map(|((step, edge), first)| (format!("{step} {edge} used up"), Some(*first)));
    let completed = did.completed.map(|first| ("completed".to_owned(), Some(first)));
    met.chain(decided).chain(monitors).chain(used_up).chain(completed).collect()
}

fn compare(dialect: Dialect) {
    let (mut seed, mut compared, mut used_up) = (0, 0, 0);
    while compared < FLOWS {
        seed += 1;
        let (wired, needs) = relaxed(draft(dialect, seed));
        let Some(flow) = check_draft(wired).flow.map(Arc::new) else { continue };
        let did = explore(&flow, &needs);
        if did.truncated {
            continue;
        }
        compared += 1;
        let reach = StateGraph::explore(flow.clone(), 1_000);
        assert!(reach.is_exact());
        let (said, done) = (said(&flow, &reach), done(&flow, &did));
        used_up += usize::from(done.keys().any(|what| what.ends_with("used up")));
        assert_eq!(said, done, "{dialect:?} {seed}: said and done\n{}", describe(&flow));
        // Loops have any number of iterations.
        assert!(!did.endless || reach.exceeds(u32::MAX - 1), "{dialect:?} {seed}\n{}", describe(&flow));
    }
    assert!(used_up >= FLOWS / 100, "{dialect:?} {used_up}");
}

#[test]
fn closing_registries_match_their_reachability() {
    compare(Dialect::Closing);
}

#[test]
fn complete_registries_match_their_reachability() {
    compare(Dialect::Complete);
}

#[test]
fn check_flows_match_their_reachability() {
    compare(Dialect::Check);
}

#[test]
fn pieces_match_their_reachability() {
    compare(Dialect::Piece);
}
