//! The dearest walk of a long run in a large flow, found without walking iteration by iteration.
//!
//! What a walk costs beside its best pace is bounded from where it stands: the best pace is the most that any round of the
//! flow costs by the iteration, and a round back to where it began costs nothing beside it. So there is a most that any
//! walk from a step can still gain on that pace, which is found as shortest paths are. A walk that keeps the pace and gains
//! that much is a dearest one. Where none does, walks are followed iteration by iteration, but only those that may still
//! be dearer than the dearest known.
//!
//! Exact, as [`super::walk`] is; the test `agrees_with_walking` compares them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::edges::Ways;
use crate::analysis::components::{Components, NONE};

/// What is looked for.
pub(super) struct Question<'q> {
    pub(super) ways: &'q Ways,
    pub(super) components: &'q Components,
    /// By step: whether it is an iteration.
    pub(super) counts: &'q [bool],
    /// By step: what it costs, as usual and with a remedy.
    pub(super) costs: &'q [[i128; 2]],
    /// Where walks begin.
    pub(super) entry: u32,
    /// The most iterations, at least 1.
    pub(super) iterations: u32,
    /// Whether walks end at steps that count only.
    pub(super) ends_counted: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// What the dearest walk costs.
    pub(super) cost: i128,
    /// Its steps.
    pub(super) steps: Vec<u32>,
}

/// A cost that nothing has: small enough that adding to it stays below all others.
const NOWHERE: i128 = i128::MIN / 4;
/// How often the pace is raised at most; each time some round is better than all before.
const RAISES_MAX: usize = 200;
/// How many iterations before the end a walk may leave its round.
const LEAVING_MAX: usize = 256;

/// A pace: so much in so many iterations.
#[derive(Debug, Clone, Copy)]
struct Pace {
    cost: i128,
    iterations: i128,
}

/// The most that walks gain on the pace, from each step on, and the first way of one that does.
struct Gains {
    most: Vec<i128>,
    next: Vec<u32>,
}

/// The dearest walk; `None` when it cannot be found in this way. Uncounted steps must not lead to each other in a round.
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
    // A walk that never comes to a core has the best pace of all else.
    let is_core: Vec<bool> = core.iter().map(|next| *next != NONE).collect();
    let hopes = [(pace, to_core), question.pace(&is_core)?];
    // Within so few iterations perhaps no walk comes to where it may end.
    question.follow(&hopes, best).filter(|found| found.cost > NOWHERE / 2)
}

/// What no walk costs more than, by the best pace and what is gained on it: not followed to its end, so that it may be a
/// little more than the dearest one costs. `None` where no pace is found.
pub(super) fn upper(question: &Question<'_>) -> Option<i128> {
    let (pace, gains) = question.pace(&vec![false; question.counts.len()])?;
    let (entry, left) = (question.entry, i128::from(question.iterations - 1));
    let most = gains.most[entry as usize].max(0) + pace.cost * left;
    Some(question.cost(entry, false) + most.div_euclid(pace.iterations))
}

/// When steps were seen last on looking for rounds.
struct Seen {
    when: Vec<u32>,
    now: u32,
}

/// A round that first ways lead: it gains on the pace.
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

    /// What going a way gains on the pace, as often as the pace has iterations.
    fn gain(&self, pace: Pace, to: u32, remedy: bool) -> i128 {
        pace.iterations * self.cost(to, remedy) - if self.counts(to) { pace.cost } else { 0 }
    }

    fn may_end(&self, step: u32) -> bool {
        !self.ends_counted || self.counts(step)
    }

    /// The best pace of all rounds that pass no step `without`, and what such walks gain on it.
    fn pace(&self, without: &[bool]) -> Option<(Pace, Gains)> {
        // Steps that lead to themselves are rounds that are seen at once.
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

    /// What walks gain at most on a pace where ending gains `end`; a better pace when there is one.
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

    /// The pace of a round.
    fn pace_of(&self, round: &[u32]) -> Pace {
        let mut pace = Pace { cost: 0, iterations: 0 };
        for (at, step) in round.iter().enumerate() {
            let to = round[(at + 1) % round.len()];
            pace.cost += self.cost_of(*step, to);
            pace.iterations += i128::from(self.counts(to));
        }
        pace
    }

    /// The steps from which a walk can keep the pace for ever and lose nothing, and a way of each that does.
    fn core(&self, pace: Pace, gains: &Gains) -> Vec<u32> {
        let count = self.counts.len();
        let part = |step: u32| self.components.of[step as usize];
        let tight = |step: u32, to: u32, remedy: bool| {
            part(step) == part(to)
                && gains.most[step as usize] > NOWHERE / 2
                && gains.most[to as usize] + self.gain(pace, to, remedy) == gains.most[step as usize]
        };
        // What has no way that keeps it within its component does not keep it; what leads to such steps only neither.
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

    /// The dearest of the walks that go to a core the best way, go round there, and leave in time for what is gained at the
    /// end.
    fn round(&self, gains: &Gains, core: &[u32], to_core: &Gains) -> Option<Answer> {
        if to_core.most[self.entry as usize] <= NOWHERE / 2 {
            return None;
        }
        let (mut steps, mut at, mut iteration) = (vec![self.entry], self.entry, 1);
        let mut cost = self.cost(self.entry, false);
        // After how many steps, in which iteration, what it has cost.
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

    /// What a walk costs that has cost something already and gains the most from a step on, as far as there are iterations
    /// for it; and that step with those that follow.
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

    /// What going from a step to another one costs at most.
    fn cost_of(&self, step: u32, to: u32) -> i128 {
        let ways = self.ways.out[step as usize].iter().filter(|way| way.to == to);
        ways.map(|way| self.cost(to, way.remedy)).max().unwrap_or(0)
    }

    /// Follows all walks that may be dearer than the best one known.
    fn follow(&self, hopes: &[(Pace, Gains)], mut best: Answer) -> Option<Answer> {
        let mut rank = vec![0; self.counts.len()];
        self.ways.uncounted.iter().enumerate().for_each(|(at, step)| rank[*step as usize] = at);
        // Whether a walk that stands at a step with so much spent may cost more, by the pace that it can keep.
        let hopeful = |step: u32, cost: i128, iteration: u32, best: i128| {
            let left = i128::from(self.iterations - iteration);
            hopes.iter().any(|(pace, gains)| {
                let most = cost * pace.iterations + gains.most[step as usize] + pace.cost * left;
                gains.most[step as usize] > NOWHERE / 2 && most.div_euclid(pace.iterations) > best
            })
        };
        // By iteration, the steps that were come to: what it cost, and from where.
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
