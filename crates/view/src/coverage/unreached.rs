//! Decides which items are unreachable and why, and what others need.

use cuegate_flow::{
    analysis::state_graph::{Mark, StateGraph},
    model::{StepId, Target},
};

use super::items::{CoverItem, ItemKey, describe_end};

const BEYOND: &str = "takes more iterations than the simulated runs have; give `--max-iterations`";
const UNDECIDED: &str = "may be unreachable: the flow has too many states to decide it";

/// Sets the reason of unreachable items, and what is needed for hard ones.
pub(super) fn explain_unreached_items(reach: &StateGraph, items: &mut [CoverItem]) {
    let own_iterations_max = reach.iterations_max().max(reach.flow().limits.iterations_max);
    let mut unmet = Vec::new();
    for item in items.iter_mut().filter(|item| item.barred.is_none()) {
        match first_iteration_of_item(reach, &item.key) {
            Some(first) if first <= reach.iterations_max() => {
                if !reach.is_exact() && item.takes.is_none() {
                    item.takes = Some(UNDECIDED.to_owned());
                }
            }
            Some(first) if first <= own_iterations_max => item.takes = Some(BEYOND.to_owned()),
            Some(first) => {
                item.barred =
                    Some(format!("needs {first} iterations, and the limit is {own_iterations_max}"));
            }
            None => unmet.push(item),
        }
    }
    // Without counters, more is reachable: what is not even then is unreachable.
    let is_cut = reach.looked() < own_iterations_max;
    let loose = is_cut.then(|| reach.loosely());
    for item in unmet {
        let may = loose.as_ref().and_then(|loose| first_iteration_of_item(loose, &item.key));
        match may.filter(|first| *first <= own_iterations_max) {
            Some(_) => {
                item.takes =
                    Some(format!("needs more than {} iterations, if any run reaches it", reach.looked()))
            }
            None => item.barred = Some(reason_of_item_kind(&item.key).to_owned()),
        }
    }
}

/// The reason by the kind of item.
fn reason_of_item_kind(key: &ItemKey) -> &'static str {
    match key {
        ItemKey::Mark(Mark::Edge(_, _, Some(_))) => "no answer can select it",
        ItemKey::Mark(Mark::Monitor(_)) => "no run repeats its cycle as often",
        ItemKey::Mark(Mark::Exhausted) => "no run is longer",
        ItemKey::Mark(Mark::Verdict(_) | Mark::Completed) => "no run is long enough",
        ItemKey::Mark(Mark::Spent(..)) => "no run returns as often",
        ItemKey::Mark(Mark::Fallback(_)) => "an unusable answer has no target",
        _ => "no run reaches it",
    }
}

/// The marks that cover an item; one of them is enough.
fn marks_of_item(reach: &StateGraph, key: &ItemKey) -> Vec<Mark> {
    match key {
        ItemKey::Mark(mark) => vec![mark.clone()],
        ItemKey::End(words) => {
            let ids = (0..).map(StepId).zip(&reach.flow().steps);
            ids.flat_map(|(id, step)| step.edges.iter().enumerate().map(move |edge| (id, edge)))
                .filter(|(_, (_, edge))| matches!(&edge.to, Target::End(ending) if describe_end(ending) == *words))
                .map(|(id, (index, _))| Mark::Edge(id, index, None))
                .collect()
        }
    }
}

/// The first iteration in which runs can cover an item.
fn first_iteration_of_item(reach: &StateGraph, key: &ItemKey) -> Option<u32> {
    marks_of_item(reach, key).iter().filter_map(|mark| reach.first(mark)).min()
}
