//! Explains why no run reaches a mark: which part of the flow prevents it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Mark, Reach};
use crate::model::{Flow, Verdict};

/// Why no run within the limit reaches some marks, if something in the flow prevents it.
pub fn reasons(reach: &Reach, unmet: &BTreeSet<Mark>, iterations_max: u32) -> BTreeMap<Mark, String> {
    let (mut found, mut later) = (BTreeMap::new(), BTreeMap::new());
    let needs = |reach: &Reach, mark: &Mark| {
        // Without exact states, the known minimum is a lower bound.
        let needs = reach.first(mark).filter(|needs| *needs > iterations_max)?;
        Some(format!("needs {needs} iterations, and the limit is {iterations_max}"))
    };
    for mark in unmet {
        found.extend(needs(reach, mark).map(|why| (mark.clone(), why)));
    }
    // Without counters and memory, those cannot be the obstacle.
    let variants = if reach.is_exact() { variants(reach.flow()) } else { Vec::new() };
    for make in variants {
        let left: Vec<&Mark> = unmet.iter().filter(|mark| !found.contains_key(mark)).collect();
        if left.is_empty() {
            break;
        }
        let Variant { flow, why, without } = make(reach.flow());
        let otherwise = match flow {
            Some(flow) => Reach::of(Arc::new(flow), reach.iterations_max()),
            None => Reach::within(reach.flow().clone(), reach.iterations_max(), 0),
        };
        let meets = |mark: &&&Mark| {
            // Without one monitor, the indices of the following ones shift.
            let there = match (mark, without) {
                (Mark::Monitor(at), Some(gone)) if *at == gone => return false,
                (Mark::Monitor(at), Some(gone)) if *at > gone => Mark::Monitor(at - 1),
                _ => (**mark).clone(),
            };
            let first = otherwise.first(&there).is_some_and(|first| first <= iterations_max);
            first && (otherwise.is_exact() || is_long_enough(&otherwise, mark))
        };
        let why = match reach.is_cut() && !otherwise.is_exact() {
            true => format!("needs more than {iterations_max} iterations, and that is the limit"),
            false => why,
        };
        // If a mark is still too far then, that is the reason.
        later.extend(left.iter().filter_map(|mark| Some(((*mark).clone(), needs(&otherwise, mark)?))));
        // A mark that is too far without one obstacle is too far without all of them.
        let is_far = |mark: &Mark| !otherwise.is_exact() && later.contains_key(mark);
        let met: Vec<Mark> =
            left.iter().filter(meets).filter(|mark| !is_far(mark)).map(|mark| (*mark).clone()).collect();
        found.extend(met.into_iter().map(|mark| (mark, why.clone())));
    }
    for (mark, why) in later {
        found.entry(mark).or_insert(why);
    }
    found
}

/// The most monitors that are left out one by one: each needs a new exploration. With more, the reason only says that
/// it is one of them.
const MONITORS_MAX: usize = 32;

/// Builds the flow without one obstacle, and last without all counters (`None`), with the reason to report if that
/// makes the difference. Flows may be large, so each is built on demand.
type Make = Box<dyn Fn(&Flow) -> Variant>;

fn variants(flow: &Flow) -> Vec<Make> {
    let mut found: Vec<Make> = Vec::new();
    if flow.verdict.can_fire() {
        found.push(Box::new(|flow| {
            let flow = Flow { verdict: Verdict::Flow, ..flow.clone() };
            Variant { flow: Some(flow), why: "the verdict ends the run first".to_owned(), without: None }
        }));
    }
    for index in 0..flow.monitors.len().min(MONITORS_MAX) {
        found.push(Box::new(move |flow| {
            let mut without = flow.clone();
            let monitor = without.monitors.remove(index);
            let why = format!("the monitor `{}` acts first", monitor.name);
            Variant { flow: Some(without), why, without: Some(index) }
        }));
    }
    if flow.monitors.len() > 1 {
        found.push(Box::new(|flow| {
            let flow = Flow { monitors: Vec::new(), ..flow.clone() };
            Variant { flow: Some(flow), why: "monitors act first".to_owned(), without: None }
        }));
    }
    found.push(Box::new(|flow| {
        let bounded = flow.steps.iter().flat_map(|step| &step.edges).any(|edge| edge.bound.is_some());
        let why = match bounded {
            true => "bounds of ways come first, or what else is counted or was left before",
            false => "what is counted on the way, or was left before, comes first",
        };
        Variant { flow: None, why: why.to_owned(), without: None }
    }));
    found
}

/// A flow without one obstacle.
struct Variant {
    /// The flow; `None` stands for the one without counters.
    flow: Option<Flow>,
    /// The reason to report if it makes the difference.
    why: String,
    /// The index of the monitor that it lacks.
    without: Option<usize>,
}

/// Whether runs are as long as a part of the verdict needs, without counters.
fn is_long_enough(reach: &Reach, mark: &Mark) -> bool {
    let wants = |part: &Verdict| match part {
        Verdict::Iterations(max) | Verdict::Checks { max, .. } => reach.exceeds(max.saturating_sub(1)),
        _ => true,
    };
    let flow = reach.flow();
    let verdict = &flow.verdict;
    // If nothing prevents further answers, there are no more.
    let bounded = flow.steps.iter().flat_map(|step| &step.edges).any(|edge| edge.bound.is_some());
    let is_free = !bounded && flow.monitors.is_empty();
    let checks = |part: &Verdict| is_free && matches!(part, Verdict::Checks { .. });
    match mark {
        Mark::Verdict(place) => verdict.at(place).is_none_or(|part| wants(part) && !checks(part)),
        Mark::Completed => verdict.places().into_iter().all(|(_, part)| wants(part) && !checks(part)),
        _ => true,
    }
}
