//! The dearest walk, iteration by iteration.

use super::graph::Ways;
use super::weights::Weights;
use crate::{Flow, Str};

/// A dearest walk.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// How many iterations it has.
    pub(super) iterations: u64,
    /// Its steps, and how often each is done back to back.
    pub(super) legs: Vec<(Str, u64)>,
}

/// More places than this are not remembered: the walk is then told up to where memory ends.
const PLACES_MAX: usize = 20_000_000;

/// What the most that walks to each step cost; `None` where none comes.
type Costs = Vec<Option<u64>>;

/// The most that a walk of at most `max` iterations costs.
pub(super) fn most(flow: &Flow, ways: &Ways, weights: &Weights, max: u32) -> u64 {
    let mut most = 0;
    walk(flow, ways, weights, max, |_, costs, _| {
        most = costs.iter().flatten().copied().fold(most, u64::max);
        true
    });
    most
}

/// A walk that costs the most, the longest of those.
pub(super) fn dearest(flow: &Flow, ways: &Ways, weights: &Weights, max: u32) -> Walk {
    let mut came: Vec<Vec<u32>> = Vec::new();
    let mut best: Option<(u64, usize, u32)> = None;
    let mut longest = 0;
    walk(flow, ways, weights, max, |iteration, costs, from| {
        longest = iteration;
        for (step, cost) in costs.iter().enumerate() {
            if let Some(cost) = cost
                && flow.steps[step].counts
                && best.is_none_or(|(most, ..)| *cost >= most)
            {
                best = Some((*cost, came.len(), step as u32));
            }
        }
        came.push(from.to_vec());
        came.len() * flow.steps.len() < PLACES_MAX
    });
    let mut walk = Walk { iterations: u64::from(longest), legs: Vec::new() };
    let Some((_, mut level, mut step)) = best else { return walk };
    loop {
        if flow.steps[step as usize].counts {
            let name = flow.steps[step as usize].name.clone();
            match walk.legs.last_mut() {
                Some((last, times)) if *last == name => *times += 1,
                _ => walk.legs.push((name, 1)),
            }
        }
        let from = came[level][step as usize];
        if from == u32::MAX {
            break;
        }
        if flow.steps[step as usize].counts {
            if level == 0 {
                break;
            }
            level -= 1;
        }
        step = from;
    }
    walk.legs.reverse();
    walk
}

/// Calls `each` for every iteration with what the most to each step costs and whence it came, until it says no.
fn walk(
    flow: &Flow,
    ways: &Ways,
    weights: &Weights,
    max: u32,
    mut each: impl FnMut(u32, &[Option<u64>], &[u32]) -> bool,
) {
    let steps = flow.steps.len();
    let mut costs: Costs = vec![None; steps];
    let mut from = vec![u32::MAX; steps];
    let entry = flow.entry.0 as usize;
    costs[entry] = Some(weights.of(entry, false));
    for iteration in 1..=max {
        let mut next: Costs = vec![None; steps];
        let mut next_from = vec![u32::MAX; steps];
        let counted = (0..steps as u32).filter(|step| flow.steps[*step as usize].counts);
        for step in counted.chain(ways.uncounted.iter().copied()) {
            let Some(cost) = costs[step as usize] else { continue };
            for way in &ways.out[step as usize] {
                let to = way.to as usize;
                let there = cost.saturating_add(weights.of(to, way.remedy));
                let (costs, from) =
                    if flow.steps[to].counts { (&mut next, &mut next_from) } else { (&mut costs, &mut from) };
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
