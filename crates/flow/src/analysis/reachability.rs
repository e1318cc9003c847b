//! What can be: the steps that some run comes to, and the ways that some run takes.
//!
#![doc = include_str!("exactness.md")]

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::bit_set::Row;
use super::dominators::postorder;
use super::graph::{fallback, judges, outcomes_of_readers, takeable, targets};
use super::handoff_values::{Carried, Newest, Uncovered, join};
use super::join_rules::Members;
use super::newest_values;
use crate::{
    Str,
    diagnostics::{Span, Trace},
    model::{Act, Flow, Gate, Outcome, Selector, Step, StepId, Target},
};

/// Of so many ways out of a step it is looked one by one whether a way is among them.
const FEW: usize = 16;

/// A way that some run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Way {
    /// The edge, by its place in its step; `None` for a member, a judge, or a monitor's judge.
    pub(crate) edge: Option<usize>,
    /// Where to.
    pub(crate) to: StepId,
    /// Whether the other step hands its outcome back to this one, which then goes on.
    pub(crate) inner: bool,
}

/// What can be.
#[derive(Debug)]
pub(crate) struct Live {
    /// Where walks begin.
    entries: Vec<StepId>,
    /// By step: whether a run comes to it.
    pub(crate) steps: Vec<bool>,
    /// By step: the ways out of it that some run takes.
    pub(crate) ways: Vec<Vec<Way>>,
    /// By step: the edges of it that some run takes and that end the run.
    ends: Vec<Vec<usize>>,
    /// By step: from which steps ways lead to it.
    before: Vec<Vec<usize>>,
    /// By monitor: whether it can act.
    pub(crate) monitors: Vec<bool>,
    /// The ways out of steps that have many.
    many: HashMap<usize, HashSet<Way>>,
    /// What the newest values that select can be.
    carried: Carried,
    /// By step and edge: where an answer of its own leads, where that selects.
    selected: HashMap<(usize, usize), Arc<[StepId]>>,
    /// By step: the edges that can be taken.
    open: Vec<Vec<usize>>,
    /// How often a walk to a step was looked for, and a step was followed.
    #[cfg(test)]
    pub(crate) searches: std::sync::atomic::AtomicUsize,
    #[cfg(test)]
    pub(crate) followed: usize,
}

/// The steps that are still to be followed. Where what follows depends on values, those that others lead to come after
/// them, so that each is followed once as far as nothing goes round.
struct Queue {
    /// By step: its place.
    ranks: Vec<u32>,
    /// By step: whether it is in the queue.
    waiting: Vec<bool>,
    steps: BinaryHeap<Reverse<(u32, usize, StepId)>>,
    /// How many have been put in.
    count: usize,
}

impl Queue {
    fn of(flow: &Flow, live: &Live) -> Queue {
        let count = flow.steps.len();
        let mut ranks = vec![0; count];
        if !live.carried.is_empty() {
            let leads = |(at, step): (usize, &Step<StepId>)| {
                let edges = live.open[at].iter().flat_map(|edge| targets(&step.edges[*edge].to));
                edges.chain(judges(&step.gate)).map(|to| to.0).collect()
            };
            let ways: Vec<Vec<u32>> = flow.steps.iter().enumerate().map(leads).collect();
            let entries: Vec<u32> = live.entries.iter().map(|entry| entry.0).collect();
            (0..)
                .zip(postorder(&ways, &entries).into_iter().rev())
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

impl Live {
    /// What can be in runs that begin at one of some steps. Where a definition has faults (`!strict`) every edge counts:
    /// what an outcome lacks there may be what could not be read.
    pub(crate) fn of(flow: &Flow, entries: &[StepId], strict: bool) -> Live {
        Live::where_yields(flow, &Yields::of(flow), entries, strict)
    }

    /// The same, where it is known what gates can yield.
    pub(crate) fn where_yields(flow: &Flow, yields: &Yields, entries: &[StepId], strict: bool) -> Live {
        let (count, open) = (flow.steps.len(), open_edges(flow, yields, strict));
        let mut live = Live {
            entries: entries.to_vec(),
            steps: vec![false; count],
            ways: vec![Vec::new(); count],
            ends: vec![Vec::new(); count],
            before: vec![Vec::new(); count],
            monitors: vec![false; flow.monitors.len()],
            many: HashMap::new(),
            carried: Carried::of(flow, &open, entries),
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

    /// Goes a way with such values. What is new at its end has to be followed.
    fn go(&mut self, from: usize, way: Way, values: &Newest, queue: &mut Queue) {
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

    fn is_new(&mut self, from: usize, way: Way) -> bool {
        let known = &self.ways[from];
        if known.len() < FEW {
            return !known.contains(&way);
        }
        self.many.entry(from).or_insert_with(|| known.iter().copied().collect()).insert(way)
    }

    /// Follows the ways out of a step.
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
        for to in members.iter().copied().chain(judges(&step.gate)) {
            self.go(at, Way { edge: None, to, inner: true }, &entered, queue);
        }
        let own = self.carried.leaving(flow, at);
        let fallback = fallback(step, self.entries.contains(&id));
        for index in self.open[at].clone() {
            let way = |to: StepId| Way { edge: Some(index), to, inner: false };
            let mut left = own.clone();
            // Who goes on by a fallback leaves nothing, so that what was there stays.
            let fallen = fallback.as_ref().filter(|fallback| *fallback.outcome == step.edges[index].on);
            if let Some(fallback) = fallen {
                fall_back(&mut left, &entered, fallback.first);
            }
            match &step.edges[index].to {
                Target::Step(to) => self.go(at, way(*to), &left, queue),
                // Edges are looked at in their order, each time.
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

    /// Where an edge leads that selects by its step's own answer.
    fn selected(&mut self, flow: &Flow, at: usize, index: usize) -> Arc<[StepId]> {
        let find = || match &flow.steps[at].edges[index].to {
            Target::Select { by: Selector::Field(path), cases, default } => {
                let schema = newest_values::schema_of(flow, &flow.steps[at]);
                let values = newest_values::answered(schema, path);
                // Of what no list names an answer has what its schema takes.
                let can = |case: &Str| schema.is_none_or(|schema| schema.can_read(path, case));
                let is_open = values.contains(&newest_values::Value::Other);
                let takes = |(case, _): &&(Str, StepId)| !is_open || can(case);
                let cases: Vec<(Str, StepId)> = cases.iter().filter(takes).cloned().collect();
                newest_values::select(&values, &cases, *default).into()
            }
            _ => [].into(),
        };
        self.selected.entry((at, index)).or_insert_with(find).clone()
    }

    /// The edges of a step that can be taken.
    pub(crate) fn open_edges(&self, id: StepId) -> &[usize] {
        &self.open[id.0 as usize]
    }

    /// The values that an edge has no case for, of those that there can be when its step is left. It selects by what is
    /// handed on.
    pub(crate) fn without_case(&self, flow: &Flow, id: StepId, edge: usize) -> Uncovered {
        self.carried.without_case(flow, (id.0 as usize, edge))
    }

    /// What the newest values can be, for those that select.
    pub(crate) fn carried(&self) -> &Carried {
        &self.carried
    }

    /// Follows the ways back to who handed off.
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
                    self.go(at, Way { edge: Some(index), to, inner: false }, &left, queue);
                }
            }
        }
    }

    /// Who can have handed off to the visit that a step belongs to; else that visit's step itself.
    fn origins(&self, flow: &Flow, id: StepId, among: &[StepId]) -> Vec<StepId> {
        let hands = |from: &StepId| {
            let edges = &flow.step(*from).edges;
            self.ways[from.0 as usize].iter().any(|way| way.edge.is_some_and(|edge| edges[edge].hands_off))
        };
        let mut found: Vec<StepId> = among.iter().filter(|from| hands(from)).copied().collect();
        found.extend(self.visited_by(flow, id));
        found
    }

    /// The steps that count to whose visits a step belongs.
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

    /// Follows the ways to the judges of monitors whose cycles can be walked.
    fn watch(&mut self, flow: &Flow, queue: &mut Queue) {
        let mut followers = Followers::default();
        for (at, monitor) in flow.monitors.iter().enumerate() {
            let Some(last) = monitor.cycle.last() else { continue };
            if followers.unfollowed(flow, self, &monitor.cycle).is_none() {
                self.monitors[at] = true;
                let left = self.carried.leaving(flow, last.0 as usize);
                self.go(last.0 as usize, Way { edge: None, to: monitor.judge, inner: false }, &left, queue);
            }
        }
    }

    /// The edges of a step that end runs.
    pub(crate) fn ends(&self, id: StepId) -> &[usize] {
        &self.ends[id.0 as usize]
    }

    /// A shortest walk to a step that passes no step of `avoid` before it, one hop an entry.
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
                    hops.push(hop(flow.step(previous), edge));
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

    /// The ways out of a step that walks to a step go. Going back to who handed off comes to nothing new: the walk has
    /// been there.
    pub(crate) fn walks<'l>(&'l self, flow: &'l Flow, id: StepId) -> impl Iterator<Item = &'l Way> {
        let edges = &flow.step(id).edges;
        let goes_back =
            |way: &&Way| way.edge.is_some_and(|edge| matches!(edges[edge].to, Target::Origin { .. }));
        self.ways[id.0 as usize].iter().filter(move |way| !goes_back(way))
    }

    /// Where walks begin.
    pub(crate) fn entries(&self) -> &[StepId] {
        &self.entries
    }
}

/// Who goes on by a fallback leaves nothing: what was there stays, or there is nothing yet.
fn fall_back(left: &mut Newest, entered: &Newest, first: bool) {
    let nothing = Arc::new(Row::one(super::handoff_values::ABSENT));
    for (key, left) in left {
        let before = entered.binary_search_by_key(key, |(key, _)| *key).map(|at| &entered[at].1);
        let stays = if first { Ok(&nothing) } else { before };
        _ = stays.map(|stays| join(left, stays));
    }
}

/// Which steps that count can follow which, with nothing but uncounted ones between them; found once for each step.
#[derive(Default)]
pub(crate) struct Followers(HashMap<StepId, HashSet<StepId>>);

impl Followers {
    /// The first step of a cycle that the next one cannot follow, with that one.
    pub(crate) fn unfollowed(
        &mut self,
        flow: &Flow,
        live: &Live,
        cycle: &[StepId],
    ) -> Option<(StepId, StepId)> {
        let mut pairs = cycle.iter().zip(cycle.iter().cycle().skip(1));
        let missing = pairs.find(|(from, to)| {
            !self.0.entry(**from).or_insert_with(|| followers(flow, live, **from)).contains(to)
        });
        missing.map(|(from, to)| (*from, *to))
    }
}

fn followers(flow: &Flow, live: &Live, from: StepId) -> HashSet<StepId> {
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

/// A hop from a step for people, and where it is written; without an edge somebody else is asked there.
pub(crate) fn hop(from: &Step<StepId>, edge: Option<usize>) -> (String, Span) {
    match edge.map(|edge| &from.edges[edge]) {
        Some(edge) => {
            // A way that nobody wrote belongs to its step.
            let span = if edge.span == Span::default() { from.span } else { edge.span };
            (format!("{} --{}→", from.name, edge.on), span)
        }
        None => (format!("{} →", from.name), from.span),
    }
}

/// By step the edges that can be taken: of each outcome that its gate can yield those before one that is always open, and
/// that.
fn open_edges(flow: &Flow, yields: &Yields, strict: bool) -> Vec<Vec<usize>> {
    let open = |(at, step): (usize, &Step<StepId>)| {
        let outcomes = yields.of_step(StepId(at as u32));
        let yielded = |edge: usize| !strict || outcomes.contains(&step.edges[edge].on);
        takeable(step).into_iter().filter(|edge| yielded(*edge)).collect()
    };
    flow.steps.iter().enumerate().map(open).collect()
}

/// Every outcome that each step of a flow can come to.
pub(crate) struct Yields(Vec<BTreeSet<Outcome>>);

impl Yields {
    /// What the steps of a flow can come to.
    pub(crate) fn of(flow: &Flow) -> Yields {
        Yields(flow.steps.iter().map(|step| outcomes(flow, step)).collect())
    }

    /// What a step can come to.
    pub(crate) fn of_step(&self, id: StepId) -> &BTreeSet<Outcome> {
        &self.0[id.0 as usize]
    }

    /// What each of some members can come to.
    pub(crate) fn of_members(&self, members: &[StepId]) -> Vec<BTreeSet<Outcome>> {
        members.iter().map(|member| self.of_step(*member).clone()).collect()
    }
}

/// Every outcome that a step can come to.
pub(crate) fn outcomes(flow: &Flow, step: &Step<StepId>) -> BTreeSet<Outcome> {
    let mut found: BTreeSet<Outcome> = match (&step.gate, &step.act) {
        (Gate::Always(outcome), _) => BTreeSet::from([outcome.clone()]),
        (Gate::Join { rules, .. }, Act::All { members, .. }) => {
            let sets: Vec<BTreeSet<Outcome>> =
                members.iter().map(|member| outcomes(flow, flow.step(*member))).collect();
            let firing = Members::of(&sets).firing(rules);
            rules
                .iter()
                .zip(firing)
                .filter(|(_, fires)| *fires)
                .map(|(rule, _)| rule.outcome.clone())
                .collect()
        }
        (Gate::Join { .. }, _) => BTreeSet::new(),
        (Gate::Exit, Act::Exec { commands }) => {
            let fails = (0..commands.len()).map(|index| Outcome::Fail(index as u16));
            std::iter::once(Outcome::Pass).chain(fails).collect()
        }
        (Gate::Exit, _) => BTreeSet::from([Outcome::Pass]),
        (Gate::Readers(readers), _) => outcomes_of_readers(readers).into_iter().collect(),
    };
    for judge in judges(&step.gate) {
        // A judge that finds nothing leaves it to what comes next.
        found
            .extend(outcomes(flow, flow.step(judge)).into_iter().filter(|outcome| *outcome != Outcome::None));
    }
    found
}
