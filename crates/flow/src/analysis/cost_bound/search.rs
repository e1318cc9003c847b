//! The worst walk of a long run in a large flow, without walking iteration by iteration.
//!
//! The best pace is the maximum cost per iteration of any cycle of the flow. Relative to it, a cycle at the best pace
//! costs nothing, so the most that a walk from a step can still gain on the pace is a shortest-path problem. A walk
//! that keeps the pace and gains that much is a worst walk. Otherwise, the search follows walks iteration by iteration,
//! but only those that may still exceed the best known walk.
//!
//! As exact as [`super::walk`]; the test `agrees_with_walking` compares them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::edges::Ways;
use crate::analysis::components::{Components, NONE};

/// The search problem.
pub(super) struct Question<'q> {
    pub(super) ways: &'q Ways,
    pub(super) components: &'q Components,
    /// By step: whether it is an iteration.
    pub(super) counts: &'q [bool],
    /// By step: its cost, regular and with a remedy.
    pub(super) costs: &'q [[i128; 2]],
    /// The start of walks.
    pub(super) entry: u32,
    /// The most iterations, at least 1.
    pub(super) iterations: u32,
    /// Whether walks end only at counted steps.
    pub(super) ends_counted: bool,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The cost of the worst walk.
    pub(super) cost: i128,
    /// Its steps.
    pub(super) steps: Vec<u32>,
}

/// The cost of impossible walks: low enough that additions keep it below all others.
const NOWHERE: i128 = i128::MIN / 4;
/// The most pace improvements; each finds a better cycle.
const RAISES_MAX: usize = 200;
/// How many iterations before the end a walk may leave its cycle.
const LEAVING_MAX: usize = 256;

/// A pace: a cost per number of iterations.
#[derive(Debug, Clone, Copy)]
struct Pace {
    cost: i128,
    iterations: i128,
}

/// By step, the maximum gain on the pace of a walk from there, and the first edge of such a walk.
struct Gains {
    most: Vec<i128>,
    next: Vec<u32>,
}

/// The worst walk; `None` if this method cannot find it. Uncounted steps must not form a cycle.
pub(super) fn search(question: &Question<'_>) -> Option<Answer> {
    let all = vec![false; question.counts.len()];
    let (pace, gains) = question.pace(&all)?;
    if gains.most[question.entry as usize] <= NOWHERE / 2 {
        return None;
    }
    let entry = question.entry;
    let (cost, steps) = question.walk_out(entry, question.cost(entry, false), 1, &gains);
    let mut best = Answer { cost, steps };
    let core = question.core(pace, &gains);
    let begin = |step: u32| if core[step as usize] == NONE { NOWHERE } else { gains.most[step as usize] };
    let to_core = question.gains(pace, begin, &all).ok()?;
    if let Some(round) = question.round(&gains, &core, &to_core).filter(|round| round.cost > best.cost) {
        best = round;
    }
    // The best pace of all walks that never reach a core.
    let is_core: Vec<bool> = core.iter().map(|next| *next != NONE).collect();
    let hopes = [(pace, to_core), question.pace(&is_core)?];
    // Within few iterations, perhaps no walk reaches a valid end.
    question.follow(&hopes, best).filter(|found| found.cost > NOWHERE / 2)
}

/// An upper bound of the cost of any walk, from the best pace and the gain on it. It can slightly exceed the worst
/// walk. `None` if no pace is found.
pub(super) fn upper(question: &Question<'_>) -> Option<i128> {
    let (pace, gains) = question.pace(&vec![false; question.counts.len()])?;
    let (entry, left) = (question.entry, i128::from(question.iterations - 1));
    let most = gains.most[entry as usize].max(0) + pace.cost * left;
    Some(question.cost(entry, false) + most.div_euclid(pace.iterations))
}

/// The visit marks of the cycle search.
struct Seen {
    when: Vec<u32>,
    now: u32,
}

/// A cycle of first edges: it gains on the pace.
fn round_of(members: &[u32], gains: &Gains, seen: &mut Seen) -> Option<Vec<u32>> {
    let before = seen.now;
    for begin in members {
        seen.now += 1;
        let mut step = *begin;
        while step != NONE && seen.when[step as usize] <= before {
            seen.when[step as usize] = seen.now;
            step = gains.next[step as usize];
        }
        if step != NONE && seen.when[step as usize] == seen.now {
            let mut round = vec![step];
            let mut at = gains.next[step as usize];
            while at != step {
                round.push(at);
                at = gains.next[at as usize];
            }
            return Some(round);
        }
    }
    None
}

impl Question<'_> {
    fn cost(&self, step: u32, remedy: bool) -> i128 {
        self.costs[step as usize][usize::from(remedy)]
    }

    fn counts(&self, step: u32) -> bool {
        self.counts[step as usize]
    }

    /// The gain of an edge on the pace, scaled by the pace's iterations.
    fn gain(&self, pace: Pace, to: u32, remedy: bool) -> i128 {
        pace.iterations * self.cost(to, remedy) - if self.counts(to) { pace.cost } else { 0 }
    }

    fn may_end(&self, step: u32) -> bool {
        !self.ends_counted || self.counts(step)
    }

    /// The best pace of all cycles that avoid `without`, and the gains on it.
    fn pace(&self, without: &[bool]) -> Option<(Pace, Gains)> {
        // Self-loops are detected directly.
        let kept = self.components.steps.iter().filter(|step| !without[**step as usize]);
        let own = kept.flat_map(|step| {
            let ways = self.ways.out[*step as usize].iter().filter(move |way| way.to == *step);
            ways.map(move |way| self.cost(way.to, way.remedy))
        });
        let mut pace = Pace { cost: own.max().unwrap_or(0), iterations: 1 };
        for _ in 0..RAISES_MAX {
            match self.gains(pace, |step| if self.may_end(step) { 0 } else { NOWHERE }, without) {
                Ok(gains) => return Some((pace, gains)),
                Err(round) => pace = round,
            }
        }
        None
    }

    /// The maximum gains on a pace if ending gains `end`; or a better pace if one exists.
    fn gains(&self, pace: Pace, end: impl Fn(u32) -> i128, without: &[bool]) -> Result<Gains, Pace> {
        let count = self.counts.len();
        let mut gains = Gains { most: vec![NOWHERE; count], next: vec![NONE; count] };
        let mut seen = Seen { when: vec![0; count], now: 0 };
        for members in self.components.iter() {
            let kept = || members.iter().filter(|step| !without[**step as usize]);
            kept().for_each(|step| gains.most[*step as usize] = end(*step));
            let is_round = members.len() > 1;
            loop {
                let mut changed = false;
                for step in kept() {
                    let at = *step as usize;
                    for way in &self.ways.out[at] {
                        let there = gains.most[way.to as usize];
                        let through = there + self.gain(pace, way.to, way.remedy);
                        if there > NOWHERE / 2 && through > gains.most[at] {
                            (gains.most[at], gains.next[at], changed) = (through, way.to, true);
                            if way.to == *step {
                                return Err(self.pace_of(&[*step]));
                            }
                        }
                    }
                }
                if !changed || !is_round {
                    break;
                }
                if let Some(round) = round_of(members, &gains, &mut seen) {
                    return Err(self.pace_of(&round));
                }
            }
        }
        Ok(gains)
    }

    /// The pace of a cycle.
    fn pace_of(&self, round: &[u32]) -> Pace {
        let mut pace = Pace { cost: 0, iterations: 0 };
        for (at, step) in round.iter().enumerate() {
            let to = round[(at + 1) % round.len()];
            pace.cost += self.cost_of(*step, to);
            pace.iterations += i128::from(self.counts(to));
        }
        pace
    }

    /// The steps from which a walk can keep the pace forever without loss, with such an edge for each.
    fn core(&self, pace: Pace, gains: &Gains) -> Vec<u32> {
        let count = self.counts.len();
        let part = |step: u32| self.components.of[step as usize];
        let tight = |step: u32, to: u32, remedy: bool| {
            part(step) == part(to)
                && gains.most[step as usize] > NOWHERE / 2
                && gains.most[to as usize] + self.gain(pace, to, remedy) == gains.most[step as usize]
        };
        // Removes steps without an edge that keeps the pace within their component, and then the steps that lead only
        // to those.
        let mut hops: Vec<(u32, u32)> = Vec::new();
        let mut ways = vec![0_u32; count];
        for step in &self.components.steps {
            for way in self.ways.out[*step as usize].iter().filter(|way| tight(*step, way.to, way.remedy)) {
                hops.push((way.to, *step));
                ways[*step as usize] += 1;
            }
        }
        hops.sort_unstable();
        let mut gone: Vec<u32> =
            self.components.steps.iter().copied().filter(|step| ways[*step as usize] == 0).collect();
        while let Some(step) = gone.pop() {
            let first = hops.partition_point(|(to, _)| *to < step);
            for (_, from) in hops[first..].iter().take_while(|(to, _)| *to == step) {
                ways[*from as usize] -= 1;
                if ways[*from as usize] == 0 {
                    gone.push(*from);
                }
            }
        }
        let kept = |step: u32| ways[step as usize] > 0;
        let mut core = vec![NONE; count];
        for step in self.components.steps.iter().copied().filter(|step| kept(*step)) {
            let keeps = |way: &&super::edges::Way| kept(way.to) && tight(step, way.to, way.remedy);
            let way = self.ways.out[step as usize].iter().find(keeps);
            core[step as usize] = way.map_or(NONE, |way| way.to);
        }
        core
    }

    /// The best walk that enters a core optimally, cycles there, and leaves in time to gain the most at the end.
    fn round(&self, gains: &Gains, core: &[u32], to_core: &Gains) -> Option<Answer> {
        if to_core.most[self.entry as usize] <= NOWHERE / 2 {
            return None;
        }
        let (mut steps, mut at, mut iteration) = (vec![self.entry], self.entry, 1);
        let mut cost = self.cost(self.entry, false);
        // Step count, iteration and cost so far.
        let mut places = VecDeque::from([(1, iteration, cost)]);
        loop {
            let next = if core[at as usize] == NONE { to_core.next[at as usize] } else { core[at as usize] };
            if next == NONE || iteration + u32::from(self.counts(next)) > self.iterations {
                break;
            }
            iteration += u32::from(self.counts(next));
            cost += self.cost_of(at, next);
            steps.push(next);
            places.push_back((steps.len(), iteration, cost));
            if places.len() > LEAVING_MAX {
                places.pop_front();
            }
            at = next;
        }
        let leaving = places.iter().map(|(length, iteration, cost)| {
            let (cost, after) = self.walk_out(steps[length - 1], *cost, *iteration, gains);
            (cost, *length, after)
        });
        let (cost, length, after) = leaving.max_by_key(|(cost, ..)| *cost)?;
        steps.truncate(length - 1);
        steps.extend(after);
        Some(Answer { cost, steps })
    }

    /// The cost of a walk that has cost `spent` and gains the most from a step on, within the remaining iterations; and
    /// the step with its successors.
    fn walk_out(&self, from: u32, spent: i128, mut iteration: u32, gains: &Gains) -> (i128, Vec<u32>) {
        let (mut steps, mut at, mut cost) = (vec![from], from, spent);
        let mut ended = (if self.may_end(from) { cost } else { NOWHERE }, 1);
        loop {
            let next = gains.next[at as usize];
            if next == NONE || iteration + u32::from(self.counts(next)) > self.iterations {
                break;
            }
            iteration += u32::from(self.counts(next));
            cost += self.cost_of(at, next);
            steps.push(next);
            at = next;
            if self.may_end(next) {
                ended = (cost, steps.len());
            }
        }
        let (cost, length) = ended;
        steps.truncate(length);
        (cost, steps)
    }

    /// The maximum cost of an edge between two steps.
    fn cost_of(&self, step: u32, to: u32) -> i128 {
        let ways = self.ways.out[step as usize].iter().filter(|way| way.to == to);
        ways.map(|way| self.cost(to, way.remedy)).max().unwrap_or(0)
    }

    /// Follows all walks that may exceed the best known one.
    fn follow(&self, hopes: &[(Pace, Gains)], mut best: Answer) -> Option<Answer> {
        let mut rank = vec![0; self.counts.len()];
        self.ways.uncounted.iter().enumerate().for_each(|(at, step)| rank[*step as usize] = at);
        // Whether a walk at a step with this cost may still exceed the best, by the pace that it can keep.
        let hopeful = |step: u32, cost: i128, iteration: u32, best: i128| {
            let left = i128::from(self.iterations - iteration);
            hopes.iter().any(|(pace, gains)| {
                let most = cost * pace.iterations + gains.most[step as usize] + pace.cost * left;
                gains.most[step as usize] > NOWHERE / 2 && most.div_euclid(pace.iterations) > best
            })
        };
        // By iteration: the reached steps with their cost and predecessor.
        let mut levels: Vec<BTreeMap<u32, (i128, u32)>> = Vec::new();
        let mut better: Option<(usize, u32)> = None;
        let mut level = BTreeMap::new();
        let first = self.cost(self.entry, false);
        if hopeful(self.entry, first, 1, best.cost) {
            level.insert(self.entry, (first, NONE));
        }
        let mut kept = 0;
        for iteration in 1..=self.iterations {
            if level.is_empty() {
                break;
            }
            let mut next_level: BTreeMap<u32, (i128, u32)> = BTreeMap::new();
            let mut uncounted: BTreeSet<(usize, u32)> = BTreeSet::new();
            let mut counted: Vec<u32> = Vec::new();
            for step in level.keys() {
                match self.counts(*step) {
                    true => counted.push(*step),
                    false => _ = uncounted.insert((rank[*step as usize], *step)),
                }
            }
            let mut counted = counted.into_iter();
            while let Some(step) = counted.next().or_else(|| uncounted.pop_first().map(|(_, step)| step)) {
                let (cost, _) = level[&step];
                if cost > best.cost && self.may_end(step) {
                    best.cost = cost;
                    better = Some((levels.len(), step));
                }
                for way in &self.ways.out[step as usize] {
                    let is_next = self.counts(way.to);
                    if is_next && iteration == self.iterations {
                        continue;
                    }
                    let there = cost + self.cost(way.to, way.remedy);
                    if !hopeful(way.to, there, iteration + u32::from(is_next), best.cost) {
                        continue;
                    }
                    let known = if is_next { &mut next_level } else { &mut level };
                    if known.get(&way.to).is_none_or(|(known, _)| *known < there) {
                        known.insert(way.to, (there, step));
                        if !is_next {
                            uncounted.insert((rank[way.to as usize], way.to));
                        }
                    }
                }
            }
            kept += level.len();
            if kept > super::walk::PLACES_MAX / 4 {
                return None;
            }
            levels.push(level);
            level = next_level;
        }
        if let Some((mut at, mut step)) = better {
            best.steps.clear();
            loop {
                best.steps.push(step);
                let (_, from) = levels[at][&step];
                if from == NONE {
                    break;
                }
                at -= usize::from(self.counts(step));
                step = from;
            }
            best.steps.reverse();
        }
        Some(best)
    }
}
