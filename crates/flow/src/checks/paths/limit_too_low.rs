use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::rc::Rc;

use crate::analysis::earliest_completion::holds_after;
use crate::analysis::paths::{ControlGraph, FAR, Hop};
use crate::analysis::reachability::Reachability;
use crate::checks::Code;
use crate::{
    diagnostics::Diagnostic,
    model::{CounterId, Ending, Flow, LimitTarget, StepId, Target, Verdict},
};

pub(in crate::checks) const CODE: Code = code!("limit-too-low");

/// How many states the search visits; if counters make more, the path is not measured.
const SITUATIONS_MAX: usize = 20_000;

/// Whether the limit is too low.
pub(in crate::checks) fn check_iteration_limit(
    flow: &Flow,
    live: &Reachability,
    walks: &ControlGraph<'_>,
    found: &mut Vec<Diagnostic>,
) -> bool {
    let limit = flow.limits.iterations_max;
    let verdict = match &flow.verdict {
        Verdict::Iterations(max) => Some((*max).min(limit)),
        _ => None,
    };
    // The answers that a verdict counts take iterations too.
    let fires = match verdict {
        None => Some(holds_after(walks, &flow.verdict)).filter(|fires| *fires != FAR),
        Some(_) => None,
    };
    if fires.is_some_and(|fires| fires <= limit) {
        return false;
    }
    let max = verdict.unwrap_or(limit);
    // A length measured without counters is a lower bound.
    let ends = find_wanted_ends(flow, live, walks);
    let nearest = ends.iter().map(|(step, _)| walks.far[*step]).min().unwrap_or(FAR);
    let is_plain = flow.monitors.is_empty() && !flow.steps.iter().any(is_counted);
    if nearest <= max && is_plain {
        return false;
    }
    if nearest == FAR {
        return fires.is_some_and(|fires| too_few_to_hold(flow, fires, found));
    }
    let Some((least, hops, end)) = (ShortestPathSearch { flow, live, walks, ends: &ends }).least() else {
        return false;
    };
    if least <= max {
        return false;
    }
    let (step, edge) = end;
    let trace = walks.tell_end(&hops, step, edge);
    // The finding points at the number that has to change, or without one at the end that is too far.
    let counted = verdict.and_then(|_| flow.written(LimitTarget::Part(0)));
    let written = counted.or_else(|| flow.written(LimitTarget::Iterations));
    let span = written.unwrap_or(flow.steps[step].edges[edge].span);
    let message = match verdict {
        Some(max) => format!(
            "no run comes to the end at `{}`: the shortest way takes {least} iterations, and the verdict completes each \
             run after {max}",
            flow.steps[step].name
        ),
        None => {
            let fires = fires.map(|fires| format!(", the verdict holds after {fires} at the earliest"));
            let fires = fires.unwrap_or_default();
            format!(
                "no run can complete: the shortest way to an end takes {least} iterations{fires}, and the limit is {max}"
            )
        }
    };
    let hint = match verdict {
        Some(_) => format!("let the verdict count to more than {least}, or use `detect:graph`"),
        None => {
            let least = fires.map_or(least, |fires| fires.min(least));
            format!("raise the limit to {least} at least, and leave room for rounds")
        }
    };
    found.push(
        Diagnostic::warning(CODE.name, span, message).step(&flow.steps[step].name).hint(hint).trace(trace),
    );
    true
}

/// If no path leads to an end, only the verdict completes runs.
fn too_few_to_hold(flow: &Flow, fires: u32, found: &mut Vec<Diagnostic>) -> bool {
    let limit = flow.limits.iterations_max;
    let message = format!(
        "no run can complete: the verdict holds after {fires} iterations at the earliest, and the limit is {limit}"
    );
    let hint = format!("raise the limit to {fires} at least, and leave room for rounds");
    let span = flow.written(LimitTarget::Iterations).unwrap_or(flow.step(flow.entry).span);
    found.push(Diagnostic::warning(CODE.name, span, message).hint(hint));
    true
}

fn is_counted(step: &crate::model::Step<StepId>) -> bool {
    step.edges.iter().any(|edge| edge.bound.is_some())
}

/// The ends that complete a run, each with its step and edge; without any, the ends that the author wrote to give up.
fn find_wanted_ends(flow: &Flow, live: &Reachability, walks: &ControlGraph<'_>) -> Vec<(usize, usize)> {
    let of = |wanted: fn(&Ending) -> bool| {
        let mut found = Vec::new();
        for (at, step) in flow.steps.iter().enumerate().filter(|(at, _)| walks.far[*at] != FAR) {
            let meant = |edge: &&usize| match &step.edges[**edge].to {
                Target::End(ending) => wanted(ending) && !step.edges[**edge].implied,
                _ => false,
            };
            found.extend(live.ends(StepId(at as u32)).iter().filter(meant).map(|edge| (at, *edge)));
        }
        found
    };
    let completed = of(|ending| *ending == Ending::Completed);
    if completed.is_empty() { of(|ending| *ending == Ending::Aborted) } else { completed }
}

/// The values of the counters that are not 0, by id.
type Counts = Rc<Vec<(CounterId, u32)>>;

/// By state, its distance and the state that precedes it.
type VisitedStates = HashMap<(usize, Counts), (u32, Option<(usize, Hop)>)>;

/// Measures the shortest path, tracking counters.
struct ShortestPathSearch<'m, 'f> {
    flow: &'f Flow,
    live: &'m Reachability,
    walks: &'m ControlGraph<'f>,
    ends: &'m [(usize, usize)],
}

/// A path: its length, its hops, and the step and edge that end it.
type EndedPath = (u32, Vec<Hop>, (usize, usize));

impl ShortestPathSearch<'_, '_> {
    /// The shortest path; `None` if there is none or the search was too large.
    fn least(&self) -> Option<EndedPath> {
        let left = self.left();
        let entry = self.flow.entry.0 as usize;
        let highest = self.highest();
        let mut known = VisitedStates::new();
        let mut queue = BinaryHeap::new();
        // States are numbered: numbers are cheap to compare in the queue.
        let mut all: Vec<(usize, Counts)> = vec![(entry, Rc::default())];
        known.insert(all[0].clone(), (self.walks.cost(entry), None));
        queue.push(Reverse((self.walks.cost(entry).saturating_add(left[entry]), 0, self.walks.cost(entry))));
        while let Some(Reverse((_, number, length))) = queue.pop() {
            let (step, counts) = all[number].clone();
            if known[&(step, counts.clone())].0 < length {
                continue;
            }
            if let Some(end) =
                self.ends.iter().find(|end| end.0 == step && self.is_taken(step, end.1, &counts))
            {
                return Some((length, retrace_hops(&known, &all, number), *end));
            }
            if all.len() > SITUATIONS_MAX {
                return None;
            }
            for hop in &self.walks.out[step] {
                let Some(there) = self.go(hop, &counts, &highest) else { continue };
                let after = self.after(hop, length).saturating_add(self.walks.cost(hop.to));
                if left[hop.to] == FAR {
                    continue;
                }
                let situation = (hop.to, there);
                if known.get(&situation).is_none_or(|(known, _)| after < *known) {
                    known.insert(situation.clone(), (after, Some((number, *hop))));
                    all.push(situation);
                    queue.push(Reverse((after.saturating_add(left[hop.to]), all.len() - 1, after)));
                }
            }
        }
        None
    }

    /// A monitor acts only after its rounds.
    fn after(&self, hop: &Hop, length: u32) -> u32 {
        if hop.edge.is_some() {
            return length;
        }
        let acts = self.flow.monitors.iter().zip(&self.live.monitors).filter(|(monitor, acts)| {
            **acts
                && monitor.judge.0 as usize == hop.to
                && monitor.ends_with().any(|last| last.0 as usize == hop.from)
        });
        let rounds = acts.map(|(monitor, _)| super::bound_never_hit::rounds_done(self.walks, monitor));
        rounds.min().map_or(length, |done| length.max(done))
    }

    /// By step, the least remaining distance, ignoring counters.
    fn left(&self) -> Vec<u32> {
        let mut before = vec![Vec::new(); self.walks.out.len()];
        self.walks.out.iter().flatten().for_each(|hop| before[hop.to].push(hop.from));
        let mut left = vec![FAR; self.walks.out.len()];
        let mut queue: VecDeque<(usize, u32)> = self.ends.iter().map(|(step, _)| (*step, 0)).collect();
        queue.iter().for_each(|(step, _)| left[*step] = 0);
        while let Some((at, far)) = queue.pop_front() {
            if far > left[at] {
                continue;
            }
            let cost = self.walks.cost(at);
            for from in &before[at] {
                if far + cost < left[*from] {
                    left[*from] = far + cost;
                    if cost == 0 {
                        queue.push_front((*from, far));
                    } else {
                        queue.push_back((*from, far + cost));
                    }
                }
            }
        }
        left
    }

    /// By counter, the value above which it makes no difference.
    fn highest(&self) -> HashMap<CounterId, u32> {
        let mut highest = HashMap::new();
        for bound in self.flow.steps.iter().flat_map(|step| &step.edges).filter_map(|edge| edge.bound) {
            let known: &mut u32 = highest.entry(bound.counter).or_default();
            *known = (*known).max(bound.max);
        }
        highest
    }

    /// Whether an edge is the first open one on its outcome.
    fn is_taken(&self, step: usize, edge: usize, counts: &Counts) -> bool {
        let edges = &self.flow.steps[step].edges;
        let count =
            |counter| counts.iter().find(|(known, _)| *known == counter).map_or(0, |(_, count)| *count);
        let open = |edge: &crate::model::Edge<StepId>| edge.is_open(count);
        open(&edges[edge]) && !edges[..edge].iter().any(|before| before.on == edges[edge].on && open(before))
    }

    /// The counters after a hop; `None` if the hop cannot be taken now.
    fn go(&self, hop: &Hop, counts: &Counts, highest: &HashMap<CounterId, u32>) -> Option<Counts> {
        let Some(index) = hop.edge else { return Some(counts.clone()) };
        if !self.is_taken(hop.from, index, counts) {
            return None;
        }
        let edge = &self.flow.steps[hop.from].edges[index];
        if edge.bound.is_none()
            && !edge.resets.iter().any(|reset| counts.iter().any(|(known, _)| known == reset))
        {
            return Some(counts.clone());
        }
        let mut after = (**counts).clone();
        if let Some(bound) = edge.bound {
            match after.binary_search_by_key(&bound.counter, |(known, _)| *known) {
                Ok(at) => after[at].1 = (after[at].1 + 1).min(highest[&bound.counter]),
                Err(at) => after.insert(at, (bound.counter, 1)),
            }
        }
        after.retain(|(counter, _)| !edge.resets.contains(counter));
        Some(Rc::new(after))
    }
}

fn retrace_hops(known: &VisitedStates, all: &[(usize, Counts)], mut number: usize) -> Vec<Hop> {
    let mut hops = Vec::new();
    while let Some((before, hop)) = &known[&all[number]].1 {
        hops.push(*hop);
        number = *before;
    }
    hops.reverse();
    hops
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{draft, findings_of, name};
    use crate::{
        diagnostics::Span,
        model::{Counter, CounterId, Draft, EdgeBound, Limits, Monitor, Verdict},
    };

    fn said(mut draft: Draft, limit: u32) -> Vec<String> {
        draft.limits = Limits::new(limit);
        let mut found = findings_of(draft);
        found.retain(|found| found.code == "limit-too-low");
        found.iter().map(|found| format!("{} ({})", found.message, found.trace.join(" "))).collect()
    }

    #[test]
    fn the_shortest_way_is_shown() {
        let text = "a: next → b\nb: next → c, back → a\nc: done → end";
        assert_eq!(
            said(draft(text), 2),
            ["no run can complete: the shortest way to an end takes 3 iterations, and the limit is 2 \
              (a --next→ b --next→ c --done→ the end)"]
        );
        assert!(said(draft(text), 3).is_empty());
    }

    #[test]
    fn what_has_to_be_done_several_times_counts_as_often() {
        let mut counted = draft("a: done → a, done → b\nb: done → end");
        counted.counters.push(Counter { name: "first".into() });
        counted.steps[0].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max: 3 });
        assert_eq!(said(counted.clone(), 4).len(), 1);
        assert!(said(counted, 5).is_empty());
    }

    #[test]
    fn a_verdict_that_counts_may_come_before_every_end() {
        let mut counted = draft("a: next → b\nb: next → c\nc: done → end, back → a");
        counted.verdict = Verdict::Iterations(2);
        let found = said(counted.clone(), 20);
        assert!(found[0].starts_with("no run comes to the end at `c`"), "{found:?}");
        counted.verdict = Verdict::Keyword("DONE".into());
        assert!(said(counted, 2).is_empty(), "it may be said at once");
    }

    #[test]
    fn a_verdict_that_counts_answers_is_held_against_the_limit() {
        let checks = |max| Verdict::Checks { max, of: vec!["c".into()] };
        let mut counted = draft("a: next → b\nb: next → c\nc: done → end, back → a");
        counted.verdict = checks(1);
        let found = said(counted.clone(), 2);
        assert!(
            found[0].starts_with(
                "no run can complete: the shortest way to an end takes 3 iterations, the verdict holds after 3 at the \
                 earliest, and the limit is 2"
            ),
            "{found:?}"
        );
        assert!(said(counted.clone(), 3).is_empty());
        counted.verdict = Verdict::Any(vec![Verdict::Flow, checks(2), Verdict::Iterations(9)]);
        assert_eq!(said(counted.clone(), 2).len(), 1);
        counted.verdict = Verdict::Any(vec![checks(2), Verdict::Iterations(2)]);
        assert!(said(counted, 2).is_empty(), "iterations come first");
        let mut endless = draft("a: next → b\nb: next → c\nc: back → a");
        endless.verdict = checks(2);
        let found = said(endless.clone(), 5);
        assert!(
            found[0].starts_with("no run can complete: the verdict holds after 6 iterations"),
            "{found:?}"
        );
        assert!(said(endless, 6).is_empty());
    }

    #[test]
    fn a_monitor_that_ends_the_run_waits_for_its_rounds() {
        let mut watched = draft("a: next → b\nb: back → a\nw: stop → end, on → a");
        watched.steps[2].counts = false;
        watched.monitors.push(Monitor {
            name: "watch".into(),
            cycle: vec![vec![name("a")], vec![name("b")]],
            ignored: Vec::new(),
            threshold: 3,
            judge: name("w"),
            span: Span::default(),
        });
        assert_eq!(said(watched.clone(), 5).len(), 1);
        assert!(said(watched, 6).is_empty());
    }
}
