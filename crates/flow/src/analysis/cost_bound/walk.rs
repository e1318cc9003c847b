//! The worst walk, iteration by iteration.

use super::edges::PlaceGraph;
use super::weights::Weights;
use crate::analysis::components::Components;
use crate::{Str, model::Flow};

/// A worst walk.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Its number of iterations.
    pub(super) iterations: u64,
    /// Its steps, with the number of consecutive repetitions.
    pub(super) legs: Vec<(Str, u64)>,
}

impl Walk {
    /// Appends a step, or repeats the last one.
    fn go(&mut self, flow: &Flow, ways: &PlaceGraph, place: u32) {
        let name = &ways.step(flow, place).name;
        match self.legs.last_mut() {
            Some((last, times)) if last == name => *times += 1,
            _ => self.legs.push((name.clone(), 1)),
        }
    }
}

/// The most places that are stored; the reported walk ends there.
pub(super) const PLACES_MAX: usize = 20_000_000;

/// The most hops (iterations × edges) of a walk, about a tenth of a second of work. For more the result is an upper
/// bound, and the reported walk has as many iterations as the hops allow.
const HOPS_MAX: u64 = 20_000_000;
/// The most iterations that are followed.
const FOLLOWED_MAX: u32 = 100_000;

/// The most iterations of the graph that are followed one by one.
pub(super) fn followed_max(ways: &PlaceGraph) -> u32 {
    let hops: usize = ways.out.iter().map(Vec::len).sum();
    u32::try_from(HOPS_MAX / (hops as u64).max(1)).unwrap_or(u32::MAX).clamp(1, FOLLOWED_MAX)
}

/// The maximum cost of a walk to each step; `None` if no walk gets there.
type Costs = Vec<Option<u64>>;

/// The maximum cost of a walk of at most `max` iterations.
pub(super) fn maximize_walk_cost(ways: &PlaceGraph, weights: &Weights, max: u32) -> u64 {
    if weights.dearest() == 0 {
        return 0;
    }
    let followed = followed_max(ways);
    if max > followed {
        let rest = dearest_iteration(ways, weights).saturating_mul(u64::from(max - followed));
        return maximize_followed_cost(ways, weights, followed).saturating_add(rest);
    }
    maximize_followed_cost(ways, weights, max)
}

/// The maximum cost of one iteration: a counted step, and a path of uncounted ones.
fn dearest_iteration(ways: &PlaceGraph, weights: &Weights) -> u64 {
    let mut costs: Vec<u64> =
        (0..ways.steps.len()).map(|step| weights.of(step, false).max(weights.of(step, true))).collect();
    let further = |step: u32, costs: &[u64]| {
        let out = ways.out[step as usize].iter().filter(|way| !ways.counts[way.to as usize]);
        out.map(|way| costs[way.to as usize]).max().unwrap_or(0)
    };
    for step in ways.uncounted.iter().rev() {
        costs[*step as usize] = costs[*step as usize].saturating_add(further(*step, &costs));
    }
    let counted = (0..ways.steps.len() as u32).filter(|step| ways.counts(*step));
    counted.map(|step| costs[step as usize].saturating_add(further(step, &costs))).max().unwrap_or(0)
}

/// The maximum cost, walked one by one.
fn maximize_followed_cost(ways: &PlaceGraph, weights: &Weights, max: u32) -> u64 {
    let mut most = 0;
    walk_iterations(ways, weights, max, |_, costs, _| {
        most = costs.iter().flatten().copied().fold(most, u64::max);
        true
    });
    most
}

/// The longest of the walks with the maximum cost.
pub(super) fn find_worst_walk(flow: &Flow, ways: &PlaceGraph, weights: &Weights, max: u32) -> Walk {
    let (longest, found) = track_worst_walk(ways, weights, max.min(followed_max(ways)), WalkGoal::Longest);
    // Memory and hops limit the walk that is followed, but not its length.
    let iterations = if ways.endless.is_empty() { longest_of(ways, max) } else { u64::from(longest) };
    let mut walk = Walk { iterations, legs: Vec::new() };
    let (_, places) = found.unwrap_or_default();
    places.into_iter().filter(|place| ways.counts(*place)).for_each(|place| walk.go(flow, ways, place));
    walk
}

/// The places of a worst walk, and its cost; `None` if that is too expensive to compute.
pub(super) fn find_worst_places(ways: &PlaceGraph, weights: &Weights, max: u32) -> Option<(u64, Vec<u32>)> {
    (max <= followed_max(ways)).then(|| track_worst_walk(ways, weights, max, WalkGoal::Cost).1)?
}

/// The length of the walks, and the worst one as far as memory allows, walked one by one.
fn track_worst_walk(
    ways: &PlaceGraph,
    weights: &Weights,
    max: u32,
    goal: WalkGoal,
) -> (u32, Option<(u64, Vec<u32>)>) {
    let mut came: Vec<Vec<u32>> = Vec::new();
    let mut best: Option<(u64, usize, u32)> = None;
    let mut longest = 0;
    walk_iterations(ways, weights, max, |iteration, costs, from| {
        longest = iteration;
        for (place, cost) in costs.iter().enumerate() {
            if let Some(cost) = cost
                && (goal == WalkGoal::Cost || ways.counts[place])
                && best.is_none_or(|(most, ..)| *cost >= most)
            {
                best = Some((*cost, came.len(), place as u32));
            }
        }
        came.push(from.to_vec());
        came.len() * ways.steps.len() < PLACES_MAX
    });
    let Some((cost, mut level, mut place)) = best else { return (longest, None) };
    let mut places = vec![place];
    loop {
        let from = came[level][place as usize];
        if from == u32::MAX || (level == 0 && ways.counts(place)) {
            break;
        }
        level -= usize::from(ways.counts(place));
        place = from;
        places.push(place);
    }
    places.reverse();
    (longest, Some((cost, places)))
}

/// The components of the reachable steps.
fn find_components(ways: &PlaceGraph, entry: u32) -> Components {
    Components::of(&ways.out, |way| Some(way.to), [entry])
}

/// The kind of walk to find.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkGoal {
    /// One with the maximum cost, wherever it ends.
    Cost,
    /// One with the maximum cost at a counting step, the longest of those.
    Longest,
}

/// The iterations of the longest walk, at most `max`.
fn longest_of(ways: &PlaceGraph, max: u32) -> u64 {
    let components = ways.components.get_or_init(|| find_components(ways, ways.entry));
    let mut longest = vec![0_u64; ways.steps.len()];
    for members in components.iter() {
        for step in members {
            let after = ways.out[*step as usize].iter().map(|way| match way.to {
                // In a cycle there is always another iteration.
                to if components.of[to as usize] == components.of[*step as usize] => u64::from(max),
                to => longest[to as usize].saturating_add(u64::from(ways.counts(to))),
            });
            longest[*step as usize] = after.max().unwrap_or(0);
        }
        let most = members.iter().map(|step| longest[*step as usize]).max().unwrap_or(0);
        members.iter().for_each(|step| longest[*step as usize] = most);
    }
    // The first step of a walk is in the first iteration, whether it counts or not.
    longest[ways.entry as usize].saturating_add(1).min(u64::from(max))
}

/// Calls `each` for every iteration with the maximum cost and the predecessor of each step, until it returns false.
fn walk_iterations(
    ways: &PlaceGraph,
    weights: &Weights,
    max: u32,
    mut each: impl FnMut(u32, &[Option<u64>], &[u32]) -> bool,
) {
    let steps = ways.steps.len();
    let mut costs: Costs = vec![None; steps];
    let mut from = vec![u32::MAX; steps];
    let entry = ways.entry as usize;
    costs[entry] = Some(weights.of(entry, false));
    for iteration in 1..=max {
        let mut next: Costs = vec![None; steps];
        let mut next_from = vec![u32::MAX; steps];
        let counted = (0..steps as u32).filter(|step| ways.counts(*step));
        for step in counted.chain(ways.uncounted.iter().copied()) {
            let Some(cost) = costs[step as usize] else { continue };
            for way in &ways.out[step as usize] {
                let to = way.to as usize;
                let there = cost.saturating_add(weights.hop(way));
                let (costs, from) =
                    if ways.counts[to] { (&mut next, &mut next_from) } else { (&mut costs, &mut from) };
                if costs[to].is_none_or(|known| known < there) {
                    costs[to] = Some(there);
                    from[to] = step;
                }
            }
        }
        if !each(iteration, &costs, &from) || next.iter().all(Option::is_none) {
            return;
        }
        (costs, from) = (next, next_from);
    }
}

#[cfg(test)]
mod tests;
