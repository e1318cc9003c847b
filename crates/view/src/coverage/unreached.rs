//! Decides which items are unreachable and why, and what others need.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::{
    analysis::{
        state_graph,
        state_graph::{Choice, Mark, Reach},
    },
    model::{StepId, Target},
};

use super::items::{Item, Key, end};

const BEYOND: &str = "takes more iterations than the simulated runs have; give `--max-iterations`";
const UNDECIDED: &str =
    "whether runs can come by it was not decided: there are too many situations that they can be in";

/// Sets the reason of unreachable items, and what is needed for hard ones.
pub(super) fn decide(reach: &Reach, items: &mut [Item]) {
    let own_iterations_max = reach.iterations_max().max(reach.flow().limits.iterations_max);
    let mut unmet = BTreeSet::new();
    for item in items.iter_mut().filter(|item| item.barred.is_none()) {
        let first = first(reach, &item.key, |mark| reach.first(mark));
        match first {
            Some(first) if first <= reach.iterations_max() => {
                if !reach.is_exact() && item.takes.is_none() {
                    item.takes = Some(UNDECIDED.to_owned());
                }
            }
            Some(first) if first <= own_iterations_max => item.takes = Some(BEYOND.to_owned()),
            _ => unmet.extend(marks(reach, &item.key)),
        }
        // A specific reason is searched below.
        if first.is_none_or(|first| first > own_iterations_max) {
            item.barred = Some(usual(&item.key).to_owned());
        }
    }
    if reach.looked() < own_iterations_max {
        undecided(reach, items, own_iterations_max, &mut unmet);
    }
    let found = state_graph::reasons(reach, &unmet, own_iterations_max);
    for item in items.iter_mut().filter(|item| item.barred.as_deref() == Some(usual(&item.key))) {
        let why = marks(reach, &item.key).iter().find_map(|mark| found.get(mark).cloned());
        item.barred = why.or(item.barred.take());
    }
}

/// Handles a state graph that was not explored up to the iteration limit. An item is unreachable only if it is so
/// without counters; for others the result is unknown.
fn undecided(reach: &Reach, items: &mut [Item], own_iterations_max: u32, unmet: &mut BTreeSet<Mark>) {
    let loose = reach.loosely();
    for item in items.iter_mut().filter(|item| item.barred.as_deref() == Some(usual(&item.key))) {
        let may = first(&loose, &item.key, |mark| loose.first(mark))
            .is_some_and(|first| first <= own_iterations_max);
        if may {
            marks(reach, &item.key).iter().for_each(|mark| {
                unmet.remove(mark);
            });
            item.barred = None;
            let looked = reach.looked();
            item.takes = Some(format!("needs more than {looked} iterations, if runs can come by it at all"));
        }
    }
}

/// The reason when there is no specific one.
fn usual(key: &Key) -> &'static str {
    match key {
        Key::Mark(Mark::Edge(_, _, Some(_))) => "no answer can select it",
        Key::Mark(Mark::Monitor(_)) => "no run goes round its cycle as often",
        Key::Mark(Mark::Exhausted) => "no way through the flow is longer",
        Key::Mark(Mark::Verdict(_) | Mark::Completed) => "no way through the flow comes so far",
        Key::Mark(Mark::Spent(..)) => "no run comes back as often",
        Key::Mark(Mark::Fallback(_)) => "after an answer that cannot be used nothing says where to go on",
        _ => "no run comes to it",
    }
}

/// The marks that cover an item; one of them is enough.
fn marks(reach: &Reach, key: &Key) -> Vec<Mark> {
    match key {
        Key::Mark(mark) => vec![mark.clone()],
        Key::End(words) => {
            let ids = (0..).map(StepId).zip(&reach.flow().steps);
            ids.flat_map(|(id, step)| step.edges.iter().enumerate().map(move |edge| (id, edge)))
                .filter(|(_, (_, edge))| matches!(&edge.to, Target::End(ending) if end(ending) == *words))
                .map(|(id, (index, _))| Mark::Edge(id, index, None))
                .collect()
        }
    }
}

/// The first iteration in which runs can cover an item.
fn first(reach: &Reach, key: &Key, of: impl Fn(&Mark) -> Option<u32>) -> Option<u32> {
    marks(reach, key).iter().filter_map(of).min()
}

/// Sets the reason of uncovered items that have no valid answer.
pub(super) fn unsaid(reach: &Reach, items: &mut [Item], unsaid: &BTreeSet<(StepId, StepId, Choice)>) {
    let mut by_step: BTreeMap<StepId, BTreeSet<(StepId, Choice)>> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for (of, at, choice) in unsaid {
        by_step.entry(*of).or_default().insert((*at, choice.clone()));
        all.insert((*at, choice.clone()));
    }
    let name = |step: &StepId| format!("`{}`", reach.flow().step(*step).name);
    let mut causes: Vec<(String, BTreeSet<(StepId, Choice)>)> =
        by_step.iter().map(|(step, choices)| (name(step), choices.clone())).collect();
    if causes.len() > 1 {
        causes.push((by_step.keys().map(name).collect::<Vec<_>>().join(", "), all));
    }
    for (names, choices) in causes {
        let firsts = reach.firsts_without(&choices);
        let left = items.iter_mut().filter(|item| item.hits == 0 && item.barred.is_none());
        for item in left.filter(|item| item.takes.is_none()) {
            let still = first(reach, &item.key, |mark| firsts.get(mark).copied());
            let exhausted = item.key == Key::Mark(Mark::Exhausted);
            if !exhausted && still.is_none_or(|first| first > reach.iterations_max()) {
                item.takes = Some(format!("no answer was found that fits the schema of {names}"));
            }
        }
    }
}
