//! Why no run comes by something: what would have to be otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Mark, Reach};
use crate::{Flow, Verdict};

/// Why no run of at most so many iterations comes by things, where something in the flow forestalls them.
pub fn reasons(reach: &Reach, unmet: &BTreeSet<Mark>, iterations_max: u32) -> BTreeMap<Mark, String> {
    let (mut found, mut later) = (BTreeMap::new(), BTreeMap::new());
    let needs = |reach: &Reach, mark: &Mark| {
        // The fewest that are known where not all is followed are no more than it takes.
        let needs = reach.first(mark).filter(|needs| *needs > iterations_max)?;
        Some(format!("needs {needs} iterations, and the limit is {iterations_max}"))
    };
    for mark in unmet {
        found.extend(needs(reach, mark).map(|why| (mark.clone(), why)));
    }
    // Where nothing is counted and remembered, nothing that is can be in the way.
    let variants = if reach.is_exact() { variants(reach.flow()) } else { Vec::new() };
    for (flow, why) in variants {
        let left: Vec<&Mark> = unmet.iter().filter(|mark| !found.contains_key(mark)).collect();
        if left.is_empty() {
            break;
        }
        let otherwise = match flow {
            Some(flow) => Reach::of(Arc::new(flow), reach.iterations_max()),
            None => Reach::within(reach.flow().clone(), reach.iterations_max(), 0),
        };
        let meets = |mark: &&&Mark| {
            let first = otherwise.first(mark).is_some_and(|first| first <= iterations_max);
            first && (otherwise.is_exact() || is_long_enough(&otherwise, mark))
        };
        let why = match reach.is_cut() && !otherwise.is_exact() {
            true => format!("needs more than {iterations_max} iterations, and that is the limit"),
            false => why,
        };
        // Where it is too far even then, that is the reason.
        later.extend(left.iter().filter_map(|mark| Some(((*mark).clone(), needs(&otherwise, mark)?))));
        let met: Vec<Mark> = left.iter().filter(meets).map(|mark| (*mark).clone()).collect();
        found.extend(met.into_iter().map(|mark| (mark, why.clone())));
    }
    for (mark, why) in later {
        found.entry(mark).or_insert(why);
    }
    found
}

/// The flow without one of the things that forestall others, and at last without all that is counted (`None`); and what
/// is said where that makes the difference.
fn variants(flow: &Flow) -> Vec<(Option<Flow>, String)> {
    let mut found = Vec::new();
    if flow.verdict.can_fire() {
        let verdict = Verdict::Flow;
        let why = "the verdict ends the run first".to_owned();
        found.push((Some(Flow { verdict, ..flow.clone() }), why));
    }
    for (index, monitor) in flow.monitors.iter().enumerate() {
        let mut without = flow.clone();
        without.monitors.remove(index);
        found.push((Some(without), format!("the monitor `{}` acts first", monitor.name)));
    }
    if flow.monitors.len() > 1 {
        let why = "monitors act first".to_owned();
        found.push((Some(Flow { monitors: Vec::new(), ..flow.clone() }), why));
    }
    found.push((None, "bounds of ways come first".to_owned()));
    found
}

/// Whether runs are as long as a part of the verdict wants them, where nothing is counted on the way.
fn is_long_enough(reach: &Reach, mark: &Mark) -> bool {
    let wants = |part: &Verdict| match part {
        Verdict::Iterations(max) | Verdict::Checks { max, .. } => reach.exceeds(max.saturating_sub(1)),
        _ => true,
    };
    let verdict = &reach.flow().verdict;
    match mark {
        Mark::Verdict(place) => verdict.at(place).is_none_or(wants),
        Mark::Completed => verdict.places().into_iter().all(|(_, part)| wants(part)),
        _ => true,
    }
}
