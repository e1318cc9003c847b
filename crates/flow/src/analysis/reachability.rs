//! Reachability: the steps and transitions that some run can reach.
//!
#![doc = include_str!("exactness.md")]

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::bit_set::BitSet;
use super::dominators::list_steps_in_postorder;
use super::graph::{
    fallback_of_step, judges_of_gate, outcomes_of_readers, steps_of_target, takeable_edges_of_step,
};
use super::handoff_values::{HandoffValues, Newest, UncoveredValues, merge_values};
use super::join_rules::Members;
use super::newest_values;
use crate::{
    Str,
    diagnostics::{Span, Trace},
    model::{Act, Flow, Gate, Monitor, Outcome, Selector, Step, StepId, Target},
};

/// Up to this many outgoing ways, a linear search is used.
const FEW: usize = 16;

/// A way that some run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Transition {
    /// The index of the edge in its step; `None` for a member, a judge, or a monitor's judge.
    pub(crate) edge: Option<usize>,
    /// The target.
    pub(crate) to: StepId,
    /// Whether the target returns its outcome to this step, which then continues.
    pub(crate) inner: bool,
}

/// The reachable part of a flow.
#[derive(Debug)]
pub(crate) struct Reachability {
    /// Where walks begin.
    entries: Vec<StepId>,
    /// By step: whether it is reachable.
    pub(crate) steps: Vec<bool>,
    /// By step: the outgoing ways that some run takes.
    pub(crate) ways: Vec<Vec<Transition>>,
    /// By step: the taken edges that end the run.
    ends: Vec<Vec<usize>>,
    /// By step: its predecessors.
    before: Vec<Vec<usize>>,
    /// By monitor: whether it can act.
    pub(crate) monitors: Vec<bool>,
    /// Hash sets of ways for steps that have many.
    many: HashMap<usize, HashSet<Transition>>,
    /// The possible newest values of selecting handoffs.
    carried: HandoffValues,
    /// By step and edge: the targets that the step's own answer selects.
    selected: HashMap<(usize, usize), Arc<[StepId]>>,
    /// By step: the edges that can be taken.
    open: Vec<Vec<usize>>,
    /// The number of path searches and of processed steps, for tests.
    #[cfg(test)]
    pub(crate) searches: std::sync::atomic::AtomicUsize,
    #[cfg(test)]
    pub(crate) followed: usize,
}

/// The worklist. Where values matter, steps are processed after their predecessors, so that each acyclic part is
/// processed once.
struct Queue {
    /// By step: its rank.
    ranks: Vec<u32>,
    /// By step: whether it is in the queue.
    waiting: Vec<bool>,
    steps: BinaryHeap<Reverse<(u32, usize, StepId)>>,
    /// The number of insertions.
    count: usize,
}

impl Queue {
    fn of(flow: &Flow, live: &Reachability) -> Queue {
        let count = flow.steps.len();
        let mut ranks = vec![0; count];
        if !live.carried.is_empty() {
            let leads = |(at, step): (usize, &Step<StepId>)| {
                let edges = live.open[at].iter().flat_map(|edge| steps_of_target(&step.edges[*edge].to));
                edges
                    .chain(judges_of_gate(&step.gate))
                    .chain(step.selectors.iter().copied())
                    .map(|to| to.0)
                    .collect()
            };
            let ways: Vec<Vec<u32>> = flow.steps.iter().enumerate().map(leads).collect();
            let entries: Vec<u32> = live.entries.iter().map(|entry| entry.0).collect();
            (0..)
                .zip(list_steps_in_postorder(&ways, &entries).into_iter().rev())
                .for_each(|(rank, at)| ranks[at as usize] = rank);
        }
        Queue { ranks, waiting: vec![false; count], steps: BinaryHeap::new(), count: 0 }
    }

    fn push(&mut self, id: StepId) {
        let at = id.0 as usize;
        if !std::mem::replace(&mut self.waiting[at], true) {
            self.count += 1;
            self.steps.push(Reverse((self.ranks[at], self.count, id)));
        }
    }

    fn pop(&mut self) -> Option<StepId> {
        let Reverse((.., id)) = self.steps.pop()?;
        self.waiting[id.0 as usize] = false;
        Some(id)
    }
}

impl Reachability {
    /// The part of a flow that runs from `entries` can reach. With errors in the definition (`!strict`) every edge
    /// counts, because an entry that failed to parse may supply the missing outcome.
    pub(crate) fn of(flow: &Flow, entries: &[StepId], strict: bool) -> Reachability {
        Reachability::where_yields(flow, &StepOutcomes::of(flow), entries, strict)
    }

    /// As [`Reachability::of`], with precomputed outcomes.
    pub(crate) fn where_yields(
        flow: &Flow,
        yields: &StepOutcomes,
        entries: &[StepId],
        strict: bool,
    ) -> Reachability {
        let (count, open) = (flow.steps.len(), open_edges(flow, yields, strict));
        let mut live = Reachability {
            entries: entries.to_vec(),
            steps: vec![false; count],
            ways: vec![Vec::new(); count],
            ends: vec![Vec::new(); count],
            before: vec![Vec::new(); count],
            monitors: vec![false; flow.monitors.len()],
            many: HashMap::new(),
            carried: HandoffValues::new(flow, &open, entries),
            selected: HashMap::new(),
            open,
            #[cfg(test)]
            searches: std::sync::atomic::AtomicUsize::default(),
            #[cfg(test)]
            followed: 0,
        };
        let mut queue = Queue::of(flow, &live);
        for entry in entries {
            let at = entry.0 as usize;
            let is_new = !std::mem::replace(&mut live.steps[at], true);
            if live.carried.begin(at) || is_new {
                queue.push(*entry);
            }
        }
        loop {
            while let Some(id) = queue.pop() {
                live.leave(flow, id, &mut queue);
            }
            live.go_back(flow, &mut queue);
            live.watch(flow, &mut queue);
            if queue.steps.is_empty() {
                return live;
            }
        }
    }

    /// Takes a way with some values and queues its target if anything there is new.
    fn go(&mut self, from: usize, way: Transition, values: &Newest, queue: &mut Queue) {
        if self.is_new(from, way) {
            self.ways[from].push(way);
            self.before[way.to.0 as usize].push(from);
        }
        let to = way.to.0 as usize;
        let is_new = !std::mem::replace(&mut self.steps[to], true);
        if self.carried.come(to, values) || is_new {
            queue.push(way.to);
        }
    }

    fn is_new(&mut self, from: usize, way: Transition) -> bool {
        let known = &self.ways[from];
        if known.len() < FEW {
            return !known.contains(&way);
        }
        self.many.entry(from).or_insert_with(|| known.iter().copied().collect()).insert(way)
    }

    /// Takes the outgoing ways of a step.
    fn leave(&mut self, flow: &Flow, id: StepId, queue: &mut Queue) {
        #[cfg(test)]
        {
            self.followed += 1;
        }
        let (at, step) = (id.0 as usize, flow.step(id));
        let entered = self.carried.entered(at);
        let members = match &step.act {
            Act::All { members, .. } => members.as_slice(),
            _ => &[],
        };
        for to in
            members.iter().copied().chain(judges_of_gate(&step.gate)).chain(step.selectors.iter().copied())
        {
            self.go(at, Transition { edge: None, to, inner: true }, &entered, queue);
        }
        let own = self.carried.leaving(flow, at);
        let fallback = fallback_of_step(step, self.entries.contains(&id));
        for index in self.open[at].clone() {
            let way = |to: StepId| Transition { edge: Some(index), to, inner: false };
            let mut left = own.clone();
            // A fallback transition writes no handoff values; earlier values survive.
            let fallen = fallback.as_ref().filter(|fallback| *fallback.outcome == step.edges[index].on);
            if let Some(fallback) = fallen {
                fall_back(&mut left, &entered, fallback.first);
            }
            match &step.edges[index].to {
                Target::Step(to) => self.go(at, way(*to), &left, queue),
                // The edges are visited in the same order each time.
                Target::End(_) if self.ends[at].last().is_none_or(|last| *last < index) => {
                    self.ends[at].push(index);
                }
                Target::End(_) | Target::Origin { .. } => {}
                Target::Jump { among, default, .. } => {
                    among.iter().for_each(|to| self.go(at, way(*to), &own, queue));
                    default.iter().for_each(|to| self.go(at, way(*to), &left, queue));
                }
                Target::Select { by: Selector::Field(_), default, .. } => {
                    if let (Some(_), Some(default)) = (fallen, default) {
                        self.go(at, way(*default), &left, queue);
                        left.clone_from(&own);
                    }
                    let chosen = self.selected(flow, at, index);
                    chosen.iter().for_each(|to| self.go(at, way(*to), &left, queue));
                }
                Target::Select { by: Selector::Handoff(_), .. } => {
                    for (to, left) in self.carried.select((at, index), &left) {
                        self.go(at, way(to), &left, queue);
                    }
                }
            }
        }
    }

    /// The targets of an edge that selects by its step's own answer.
    fn selected(&mut self, flow: &Flow, at: usize, index: usize) -> Arc<[StepId]> {
        let find = || match &flow.steps[at].edges[index].to {
            Target::Select { by: Selector::Field(path), cases, default } => {
                let schema = newest_values::schema_of(flow, &flow.steps[at]);
                let values = newest_values::values_of_answer(schema, path);
                // If no list constrains the answer, its schema decides.
                let can = |case: &Str| schema.is_none_or(|schema| schema.can_read(path, case));
                let is_open = values.contains(&newest_values::PossibleValue::Other);
                let takes = |(case, _): &&(Str, StepId)| !is_open || can(case);
                let cases: Vec<(Str, StepId)> = cases.iter().filter(takes).cloned().collect();
                newest_values::select_targets(&values, &cases, *default).into()
            }
            _ => [].into(),
        };
        self.selected.entry((at, index)).or_insert_with(find).clone()
    }

    /// The edges of a step that can be taken.
    pub(crate) fn open_edges(&self, id: StepId) -> &[usize] {
        &self.open[id.0 as usize]
    }

    /// The possible values of a step for which an edge that selects by handoff values has no case.
    pub(crate) fn without_case(&self, flow: &Flow, id: StepId, edge: usize) -> UncoveredValues {
        self.carried.without_case(flow, (id.0 as usize, edge))
    }

    /// The possible newest values of selecting handoffs.
    pub(crate) fn carried(&self) -> &HandoffValues {
        &self.carried
    }

    /// Takes the returns to the origin.
    fn go_back(&mut self, flow: &Flow, queue: &mut Queue) {
        for at in 0..flow.steps.len() {
            let step = &flow.steps[at];
            let returns = step.edges.iter().any(|edge| matches!(edge.to, Target::Origin { .. }));
            if !self.steps[at] || !returns {
                continue;
            }
            for index in self.open[at].clone() {
                let Target::Origin { among } = &step.edges[index].to else { continue };
                let left = self.carried.leaving(flow, at);
                for to in self.origins(flow, StepId(at as u32), among) {
                    self.go(at, Transition { edge: Some(index), to, inner: false }, &left, queue);
                }
            }
        }
    }

    /// The possible origins of the visit that a step belongs to; without any, that visit's step itself.
    fn origins(&self, flow: &Flow, id: StepId, among: &[StepId]) -> Vec<StepId> {
        let hands = |from: &StepId| {
            let edges = &flow.step(*from).edges;
            self.ways[from.0 as usize].iter().any(|way| way.edge.is_some_and(|edge| edges[edge].hands_off))
        };
        let mut found: Vec<StepId> = among.iter().filter(|from| hands(from)).copied().collect();
        found.extend(self.visited_by(flow, id));
        found
    }

    /// The counting steps to whose visits a step belongs.
    fn visited_by(&self, flow: &Flow, id: StepId) -> Vec<StepId> {
        let (mut found, mut seen, mut queue) = (Vec::new(), BTreeSet::from([id]), vec![id]);
        while let Some(at) = queue.pop() {
            if flow.step(at).counts {
                found.push(at);
                continue;
            }
            let before = self.before[at.0 as usize].iter().map(|from| StepId(*from as u32));
            queue.extend(before.filter(|from| seen.insert(*from)));
        }
        found
    }

    /// Takes the ways to the judges of monitors whose cycles are reachable.
    fn watch(&mut self, flow: &Flow, queue: &mut Queue) {
        let mut followers = Followers::default();
        for (at, monitor) in flow.monitors.iter().enumerate() {
            if followers.unfollowed(flow, self, monitor).is_none() {
                self.monitors[at] = true;
                for last in monitor.ends_with() {
                    // The judge is asked where the next round would begin.
                    let first = monitor.cycle.first().map_or(&[][..], Vec::as_slice);
                    if !self.steps[last.0 as usize] || !followers.leads(flow, self, *last, first) {
                        continue;
                    }
                    let left = self.carried.leaving(flow, last.0 as usize);
                    let way = Transition { edge: None, to: monitor.judge, inner: false };
                    self.go(last.0 as usize, way, &left, queue);
                }
            }
        }
    }

    /// The edges of a step that end runs.
    pub(crate) fn ends(&self, id: StepId) -> &[usize] {
        &self.ends[id.0 as usize]
    }

    /// A shortest walk to a step that avoids another step, one entry per hop.
    pub(crate) fn shortest(&self, flow: &Flow, to: StepId, avoid: Option<StepId>) -> Option<Trace> {
        #[cfg(test)]
        self.searches.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut came_from: Vec<Option<(StepId, Option<usize>)>> = vec![None; flow.steps.len()];
        let mut seen = vec![false; flow.steps.len()];
        let mut queue: VecDeque<StepId> = self.entries.iter().copied().collect();
        queue.iter().for_each(|entry| seen[entry.0 as usize] = true);
        while let Some(at) = queue.pop_front() {
            if at == to {
                let mut hops = Vec::new();
                let mut step = at;
                while let Some((previous, edge)) = came_from[step.0 as usize].take() {
                    hops.push(describe_hop(flow.step(previous), edge));
                    step = previous;
                }
                let mut trace = Trace::default();
                hops.into_iter().rev().for_each(|(words, span)| trace.push(words, span));
                trace.push(&*flow.step(at).name, flow.step(at).span);
                return Some(trace);
            }
            if Some(at) == avoid {
                continue;
            }
            for way in self.walks(flow, at) {
                if !std::mem::replace(&mut seen[way.to.0 as usize], true) {
                    came_from[way.to.0 as usize] = Some((at, way.edge));
                    queue.push_back(way.to);
                }
            }
        }
        None
    }

    /// The outgoing ways of a step that searches follow. Returns to the origin are left out: the walk has already been
    /// there.
    pub(crate) fn walks<'l>(&'l self, flow: &'l Flow, id: StepId) -> impl Iterator<Item = &'l Transition> {
        let edges = &flow.step(id).edges;
        let goes_back =
            |way: &&Transition| way.edge.is_some_and(|edge| matches!(edges[edge].to, Target::Origin { .. }));
        self.ways[id.0 as usize].iter().filter(move |way| !goes_back(way))
    }

    /// Where walks begin.
    pub(crate) fn entries(&self) -> &[StepId] {
        &self.entries
    }
}

/// A fallback transition writes no handoff values: earlier values survive, or there is none yet.
fn fall_back(left: &mut Newest, entered: &Newest, first: bool) {
    let nothing = Arc::new(BitSet::one(super::handoff_values::ABSENT));
    for (key, left) in left {
        let before = entered.binary_search_by_key(key, |(key, _)| *key).map(|at| &entered[at].1);
        let stays = if first { Ok(&nothing) } else { before };
        _ = stays.map(|stays| merge_values(left, stays));
    }
}

/// Which counting steps can follow which, with only uncounted steps between them; computed once per step.
#[derive(Default)]
pub(crate) struct Followers(HashMap<StepId, HashSet<StepId>>);

impl Followers {
    /// The first stage of a monitor that the next one cannot follow, with that next one; each by its first step. Between two
    /// stages a run passes only steps of the first one, and ignored steps.
    pub(crate) fn unfollowed(
        &mut self,
        flow: &Flow,
        live: &Reachability,
        monitor: &Monitor<StepId>,
    ) -> Option<(StepId, StepId)> {
        let stages = &monitor.cycle;
        let mut at = stages.first().cloned().unwrap_or_default();
        // A round may leave fewer steps to begin the next one with.
        for _ in 0..monitor.threshold {
            let begins = at.clone();
            for (from, to) in stages.iter().zip(stages.iter().cycle().skip(1)) {
                at = self.reached(flow, live, &at, (from, &monitor.ignored), to);
                if at.is_empty() {
                    return Some((*from.first()?, *to.first()?));
                }
            }
            if at == begins {
                break;
            }
        }
        None
    }

    /// Whether one of some steps can follow a step.
    fn leads(&mut self, flow: &Flow, live: &Reachability, from: StepId, to: &[StepId]) -> bool {
        let after = self.0.entry(from).or_insert_with(|| find_followers(flow, live, from));
        to.iter().any(|step| after.contains(step))
    }

    /// The steps of the next stage that can follow some steps of a stage.
    fn reached(
        &mut self,
        flow: &Flow,
        live: &Reachability,
        from: &[StepId],
        (stage, ignored): (&[StepId], &[StepId]),
        to: &[StepId],
    ) -> Vec<StepId> {
        let mut seen: HashSet<StepId> = from.iter().copied().collect();
        let (mut queue, mut found) = (from.to_vec(), BTreeSet::new());
        while let Some(at) = queue.pop() {
            for next in self.0.entry(at).or_insert_with(|| find_followers(flow, live, at)).iter() {
                if to.contains(next) {
                    found.insert(*next);
                }
                let passes = ignored.contains(next) || stage.len() > 1 && stage.contains(next);
                if passes && seen.insert(*next) {
                    queue.push(*next);
                }
            }
        }
        found.into_iter().collect()
    }
}

fn find_followers(flow: &Flow, live: &Reachability, from: StepId) -> HashSet<StepId> {
    let (mut found, mut seen, mut queue) = (HashSet::new(), BTreeSet::new(), vec![from]);
    while let Some(at) = queue.pop() {
        for way in live.ways[at.0 as usize].iter().filter(|way| !way.inner) {
            found.insert(way.to);
            if !flow.step(way.to).counts && seen.insert(way.to) {
                queue.push(way.to);
            }
        }
    }
    found
}

/// A readable hop from a step, with its position; without an edge, another step is asked there.
pub(crate) fn describe_hop(from: &Step<StepId>, edge: Option<usize>) -> (String, Span) {
    match edge.map(|edge| &from.edges[edge]) {
        Some(edge) => {
            // A transition without a source position belongs to its step.
            let span = if edge.span == Span::default() { from.span } else { edge.span };
            (format!("{} --{}→", from.name, edge.on), span)
        }
        None => (format!("{} →", from.name), from.span),
    }
}

/// By step, the edges that can be taken: for each possible outcome, the edges up to and including the first that is
/// always open.
fn open_edges(flow: &Flow, yields: &StepOutcomes, strict: bool) -> Vec<Vec<usize>> {
    let open = |(at, step): (usize, &Step<StepId>)| {
        let outcomes = yields.of_step(StepId(at as u32));
        let yielded = |edge: usize| !strict || outcomes.contains(&step.edges[edge].on);
        takeable_edges_of_step(step).into_iter().filter(|edge| yielded(*edge)).collect()
    };
    flow.steps.iter().enumerate().map(open).collect()
}

/// The possible outcomes of all steps of a flow.
pub(crate) struct StepOutcomes(Vec<BTreeSet<Outcome>>);

impl StepOutcomes {
    /// Computes the possible outcomes of all steps.
    pub(crate) fn of(flow: &Flow) -> StepOutcomes {
        StepOutcomes(flow.steps.iter().map(|step| outcomes_of_step(flow, step)).collect())
    }

    /// The possible outcomes of a step.
    pub(crate) fn of_step(&self, id: StepId) -> &BTreeSet<Outcome> {
        &self.0[id.0 as usize]
    }

    /// The possible outcomes of each of some members.
    pub(crate) fn of_members(&self, members: &[StepId]) -> Vec<BTreeSet<Outcome>> {
        members.iter().map(|member| self.of_step(*member).clone()).collect()
    }
}

/// By member: whether it can be skipped.
pub(crate) fn mark_optional_members(flow: &Flow, members: &[StepId]) -> Vec<bool> {
    members.iter().map(|member| flow.step(*member).when.is_some()).collect()
}

/// Every possible outcome of a step.
pub(crate) fn outcomes_of_step(flow: &Flow, step: &Step<StepId>) -> BTreeSet<Outcome> {
    let mut found: BTreeSet<Outcome> = match (&step.gate, &step.act) {
        (Gate::Always(outcome), _) => BTreeSet::from([outcome.clone()]),
        (Gate::Join { rules, .. }, Act::All { members, .. }) => {
            let sets: Vec<BTreeSet<Outcome>> =
                members.iter().map(|member| outcomes_of_step(flow, flow.step(*member))).collect();
            let firing = Members::of(&sets, &mark_optional_members(flow, members)).firing(rules);
            rules
                .iter()
                .zip(firing)
                .filter(|(_, fires)| *fires)
                .map(|(rule, _)| rule.outcome.clone())
                .collect()
        }
        (Gate::Join { .. }, _) => BTreeSet::new(),
        (Gate::Cases(cases), _) => cases.iter().map(|case| case.outcome.clone()).collect(),
        (Gate::Exit, Act::Exec { commands }) => {
            let fails = (0..commands.len()).map(|index| Outcome::Fail(index as u16));
            std::iter::once(Outcome::Pass).chain(fails).collect()
        }
        (Gate::Exit, _) => BTreeSet::from([Outcome::Pass]),
        (Gate::Readers(readers), _) => outcomes_of_readers(readers).into_iter().collect(),
    };
    for judge in judges_of_gate(&step.gate) {
        // A judge that finds nothing defers to the next reader.
        found.extend(
            outcomes_of_step(flow, flow.step(judge)).into_iter().filter(|outcome| *outcome != Outcome::None),
        );
    }
    found
}
