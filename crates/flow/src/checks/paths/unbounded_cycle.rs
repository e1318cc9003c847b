use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::paths::{ControlGraph, Hop, id_of_step};
use crate::analysis::reachability::Reachability;
use crate::checks::Code;
use crate::{
    analysis::components::Components,
    diagnostics::Diagnostic,
    model::{Act, CounterId, Flow, Monitor, StepId},
};

pub(in crate::checks) const CODE: Code = code!("unbounded-cycle");

/// How many steps a finding names.
const NAMED_MAX: usize = 5;
/// How often the search removes bounds and repeats: once per nesting level of bounds.
const DEPTH_MAX: usize = 32;
/// How many searches look for a cycle that no monitor watches.
const SEARCHES_MAX: usize = 64;

pub(in crate::checks) fn check_cycles(
    flow: &Flow,
    live: &Reachability,
    walks: &ControlGraph<'_>,
    found: &mut Vec<Diagnostic>,
) {
    // A verdict that does not wait for an end also ends cycles.
    if flow.verdict.can_fire() || flow.limits.ends_cycles {
        return;
    }
    let Some(rounds) = Rounds::of(walks) else { return };
    let monitors = flow.monitors.iter().zip(&live.monitors).filter(|(_, acts)| **acts);
    let watched: Vec<&Monitor<StepId>> = monitors.map(|(monitor, _)| monitor).collect();
    let mut alone: Vec<(usize, Vec<Hop>)> = Vec::new();
    for steps in rounds.groups() {
        let next = rounds.next_of(&steps);
        let mut budget = SEARCHES_MAX;
        match find_unwatched_cycle(&next, &watched, &mut BTreeSet::new(), &mut budget) {
            Some(cycle) => found.push(build_cycle_finding(walks, &next, &cycle)),
            // A step that repeats itself does its work; a step that is sent back is not done.
            None => alone.extend(steps.iter().filter_map(|step| {
                let hops = next[step].get(step).filter(|hops| hops.len() > 1)?;
                Some((*step, hops.clone()))
            })),
        }
    }
    if let Some((first, hops)) = alone.first() {
        let names: Vec<&str> = alone.iter().map(|(step, _)| &*flow.steps[*step].name).collect();
        let are = if names.len() == 1 { "is" } else { "are" };
        let message =
            format!("{} how often {} {are} done over again", describe_sole_limit(flow), quote_names(&names));
        let span = hops.last().map_or(flow.steps[*first].span, |hop| span_of_hop(flow, hop));
        found.push(
            Diagnostic::note(CODE.name, span, message)
                .step(&flow.steps[*first].name)
                .hint("see that the limit is what you want: nothing else bounds it")
                .trace(walks.tell(hops, *first)),
        );
    }
}

fn build_cycle_finding(walks: &ControlGraph<'_>, next: &CountedHops, cycle: &[usize]) -> Diagnostic {
    let flow = walks.flow;
    // The cycle is described from the step that a run reaches first.
    let first = (0..cycle.len()).min_by_key(|at| (walks.far[cycle[*at]], cycle[*at])).unwrap_or_default();
    let cycle: Vec<usize> = cycle[first..].iter().chain(&cycle[..first]).copied().collect();
    let pairs = cycle.iter().zip(cycle.iter().cycle().skip(1));
    let hops: Vec<Hop> = pairs.flat_map(|(from, to)| next[from][to].clone()).collect();
    let names: Vec<&str> = cycle.iter().map(|step| &*flow.steps[*step].name).collect();
    let span = hops.last().map_or(flow.steps[cycle[0]].span, |hop| span_of_hop(flow, hop));
    Diagnostic::note(
        CODE.name,
        span,
        format!("{} the cycle of {}", describe_sole_limit(flow), quote_names(&names)),
    )
    .step(names[0])
    .hint("add a loop monitor, a retry limit or a question to a person; or keep the iteration limit")
    .trace(walks.tell(&hops, cycle[0]))
}

fn describe_sole_limit(flow: &Flow) -> String {
    format!("nothing but the limit of {} iterations ends", flow.limits.iterations_max)
}

fn quote_names(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(NAMED_MAX) {
        0 => quoted.join(", "),
        more => format!("{} and {more} more", quoted.join(", ")),
    }
}

/// The span of a hop, otherwise of its step.
fn span_of_hop(flow: &Flow, hop: &Hop) -> crate::diagnostics::Span {
    let step = &flow.steps[hop.from];
    hop.edge.map_or(step.span, |edge| step.edges[edge].span)
}

/// Finds cycles that no bounded transition ends.
struct Rounds<'w, 'f> {
    walks: &'w ControlGraph<'f>,
    component: Vec<usize>,
    closed: BTreeSet<(usize, usize)>,
}

/// By counted step, the counted steps that can follow it, each with the hops to it.
type CountedHops = BTreeMap<usize, BTreeMap<usize, Vec<Hop>>>;

impl<'w, 'f> Rounds<'w, 'f> {
    /// Removes bounded transitions whose counter is not reset inside their cycle, until none is left: the remaining
    /// cycles are unbounded. `None` if bounds are nested too deeply.
    fn of(walks: &'w ControlGraph<'f>) -> Option<Rounds<'w, 'f>> {
        let mut rounds = Rounds { walks, component: Vec::new(), closed: BTreeSet::new() };
        for _ in 0..DEPTH_MAX {
            rounds.component = walks.components(|hop| rounds.is_open(hop));
            let mut resets: BTreeSet<(usize, CounterId)> = BTreeSet::new();
            let mut bounded = Vec::new();
            for (hop, edge) in rounds.hops() {
                let component = rounds.component[hop.from];
                resets.extend(edge.resets.iter().map(|counter| (component, *counter)));
                bounded.extend(edge.bound.map(|bound| (hop, (component, bound.counter))));
            }
            bounded.retain(|(_, counter)| !resets.contains(counter));
            if bounded.is_empty() {
                return Some(rounds);
            }
            rounds.closed.extend(bounded.iter().filter_map(|(hop, _)| Some((hop.from, hop.edge?))));
        }
        None
    }

    /// A person who is asked bounds a cycle, and so does a monitor that acts.
    fn is_open(&self, hop: &Hop) -> bool {
        let asks = |step: usize| matches!(self.walks.flow.steps[step].act, Act::Person { .. });
        let Some(edge) = hop.edge else { return false };
        !asks(hop.from) && !asks(hop.to) && !self.closed.contains(&(hop.from, edge))
    }

    /// The hops on cycles, each with its edge.
    fn hops(&self) -> impl Iterator<Item = (Hop, &'f crate::model::Edge<StepId>)> {
        let hops = self.walks.out.iter().flatten();
        hops.filter(|hop| self.is_open(hop) && self.component[hop.from] == self.component[hop.to])
            .filter_map(|hop| Some((*hop, &self.walks.flow.steps[hop.from].edges[hop.edge?])))
    }

    /// The counted steps of each component.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (hop, _) in self.hops() {
            groups.entry(self.component[hop.from]).or_default().extend([hop.from, hop.to]);
        }
        let counts = |step: &usize| self.walks.flow.step(id_of_step(*step)).counts;
        let mut groups: Vec<Vec<usize>> =
            groups.into_values().map(|steps| steps.into_iter().filter(counts).collect()).collect();
        groups.retain(|steps: &Vec<usize>| !steps.is_empty());
        groups.sort_by_key(|steps| steps[0]);
        groups
    }

    /// The successors within a group. Bounded transitions are left out if every step has a successor without them.
    fn next_of(&self, steps: &[usize]) -> CountedHops {
        let plain = |hop: &Hop| {
            let edge = hop.edge.map(|edge| &self.walks.flow.steps[hop.from].edges[edge]);
            edge.is_some_and(|edge| edge.bound.is_none())
        };
        let next: CountedHops = steps.iter().map(|step| (*step, self.follow(*step, plain))).collect();
        let goes_round = |next: &CountedHops| steps.iter().all(|step| !next[step].is_empty());
        if goes_round(&next) {
            next
        } else {
            steps.iter().map(|step| (*step, self.follow(*step, |_| true))).collect()
        }
    }

    fn follow(&self, from: usize, may: impl Fn(&Hop) -> bool) -> BTreeMap<usize, Vec<Hop>> {
        let component = self.component[from];
        let (mut next, mut seen) = (BTreeMap::new(), BTreeSet::from([from]));
        let mut queue = std::collections::VecDeque::from([(from, Vec::new())]);
        while let Some((at, hops)) = queue.pop_front() {
            for hop in self.walks.out[at].iter().filter(|hop| self.is_open(hop) && may(hop)) {
                if self.component[hop.to] != component {
                    continue;
                }
                let there: Vec<Hop> = hops.iter().chain([hop]).copied().collect();
                if self.walks.flow.steps[hop.to].counts {
                    next.entry(hop.to).or_insert(there);
                } else if seen.insert(hop.to) {
                    queue.push_back((hop.to, there));
                }
            }
        }
        next
    }
}

/// A shortest cycle of at least two steps that no monitor watches. Such a cycle lacks at least one hop of each watched
/// cycle, so the search leaves out each hop in turn.
fn find_unwatched_cycle(
    next: &CountedHops,
    watched: &[&Monitor<StepId>],
    without: &mut BTreeSet<(usize, usize)>,
    searches: &mut usize,
) -> Option<Vec<usize>> {
    *searches = searches.checked_sub(1)?;
    let cycle = find_shortest_cycle(next, without)?;
    if !watched.iter().any(|monitor| is_watched(monitor, &cycle)) {
        return Some(cycle);
    }
    let mut best: Option<Vec<usize>> = None;
    for (from, to) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
        if !without.insert((*from, *to)) {
            continue;
        }
        let other = find_unwatched_cycle(next, watched, without, searches);
        without.remove(&(*from, *to));
        if let Some(other) = other.filter(|other| best.as_ref().is_none_or(|best| other.len() < best.len())) {
            best = Some(other);
        }
    }
    best
}

/// Whether each time round a cycle is a round of a monitor.
fn is_watched(monitor: &Monitor<StepId>, cycle: &[usize]) -> bool {
    let length = monitor.cycle.len();
    let ends = |at: usize| {
        let steps = cycle[at..].iter().chain(&cycle[..at]).map(|step| StepId(*step as u32));
        let stages = steps.fold(0, |progress, step| monitor.advance(progress, &step));
        stages as usize == length
    };
    // A monitor of many rounds sees the first of them.
    (0..cycle.len()).any(|at| monitor.begins_with(&StepId(cycle[at] as u32)) && ends(at))
}

/// A shortest cycle of at least two steps.
fn find_shortest_cycle(next: &CountedHops, without: &BTreeSet<(usize, usize)>) -> Option<Vec<usize>> {
    let mut best: Option<Vec<usize>> = None;
    let round = find_cycle_steps(next, without);
    // The search goes no farther than the best cycle so far and has a work limit.
    let mut work = 200_000_usize;
    for start in &round {
        let longest = best.as_ref().map_or(usize::MAX, |best| best.len() - 1);
        if longest < 2 || work == 0 {
            break;
        }
        let mut came: BTreeMap<usize, usize> = BTreeMap::new();
        let mut queue = std::collections::VecDeque::from([(*start, 1)]);
        'search: while let Some((at, length)) = queue.pop_front() {
            let on = |to: &&usize| **to != at && !without.contains(&(at, **to)) && round.contains(to);
            for to in next[&at].keys().filter(on) {
                work = work.saturating_sub(1);
                if to == start {
                    let mut cycle = vec![at];
                    while let Some(from) = came.get(cycle.last().unwrap_or(start)) {
                        cycle.push(*from);
                    }
                    cycle.reverse();
                    best = Some(cycle);
                    break 'search;
                }
                if length < longest && !came.contains_key(to) {
                    came.insert(*to, at);
                    queue.push_back((*to, length + 1));
                }
            }
        }
    }
    best
}

/// The steps on cycles other than a hop to themselves.
fn find_cycle_steps(next: &CountedHops, without: &BTreeSet<(usize, usize)>) -> BTreeSet<usize> {
    let steps: Vec<usize> = next.keys().copied().collect();
    let place = |step: &usize| steps.binary_search(step).ok().map(|at| at as u32);
    let out: Vec<Vec<(usize, usize)>> =
        next.iter().map(|(from, to)| to.keys().map(|to| (*from, *to)).collect()).collect();
    let to = |hop: &(usize, usize)| if without.contains(hop) { None } else { place(&hop.1) };
    let found = Components::of(&out, to, 0..steps.len() as u32);
    let many = found.iter().filter(|steps| steps.len() > 1).flatten();
    many.map(|at| steps[*at as usize]).collect()
}

#[cfg(test)]
mod tests {
    use crate::checks::{
        check_draft,
        testing::{draft, name},
    };
    use crate::{
        diagnostics::Span,
        model::{Counter, CounterId, Draft, EdgeBound, Monitor, Verdict},
    };

    fn said(draft: Draft) -> Vec<String> {
        let mut found = check_draft(draft).diagnostics;
        found.retain(|found| found.code == super::CODE.name);
        found.iter().map(|found| format!("{} ({})", found.message, found.trace.join(" "))).collect()
    }

    #[test]
    fn a_cycle_is_told_from_where_runs_come_to_it() {
        assert_eq!(
            said(draft("a: next → c, back → a\nb: next → c\nc: next → b, done → end")),
            ["nothing but the limit of 20 iterations ends the cycle of `c`, `b` (c --next→ b --next→ c)"]
        );
    }

    #[test]
    fn one_for_all_that_are_sent_back() {
        let text = "a: on → v\nv: bad → a, ok → b\nb: on → w\nw: bad → b, ok → end";
        let mut sent = draft(text);
        sent.steps[1].counts = false;
        sent.steps[3].counts = false;
        assert_eq!(
            said(sent),
            [
                "nothing but the limit of 20 iterations ends how often `a`, `b` are done over again (a --on→ v --bad→ a)"
            ]
        );
        assert!(said(draft("a: again → a, done → end")).is_empty());
    }

    #[test]
    fn a_limit_that_was_written_to_end_cycles_is_not_reported() {
        let mut limited = draft("a: next → b\nb: back → a, done → end");
        assert_eq!(said(limited.clone()).len(), 1);
        limited.limits.ends_cycles = true;
        assert!(said(limited).is_empty());
    }

    #[test]
    fn a_bound_ends_it_unless_it_is_reset_on_the_way() {
        let mut bounded = draft("a: next → b\nb: back → a, back → c\nc: done → end");
        bounded.counters.push(Counter { name: "rounds".into() });
        bounded.steps[1].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max: 2 });
        assert!(said(bounded.clone()).is_empty());
        bounded.steps[0].edges[0].resets.push(CounterId(0));
        assert_eq!(said(bounded).len(), 1);
    }

    #[test]
    fn a_verdict_that_fires_ends_it() {
        let mut counted = draft("a: next → b, done → end\nb: back → a");
        assert_eq!(said(counted.clone()).len(), 1);
        counted.verdict = Verdict::Keyword("DONE".into());
        assert!(said(counted).is_empty());
    }

    #[test]
    fn a_monitor_watches_its_own_cycle_only() {
        let watched = |text: &str| {
            let mut draft = draft(&format!("{text}\nw: on → a, stop → end"));
            draft.steps.last_mut().unwrap().counts = false;
            draft.monitors.push(Monitor {
                name: "watch".into(),
                cycle: vec![vec![name("a")], vec![name("b")]],
                ignored: Vec::new(),
                threshold: 2,
                judge: name("w"),
                span: Span::default(),
            });
            said(draft)
        };
        assert!(watched("a: next → b, done → end\nb: back → a").is_empty());
        let other = watched("a: next → b, done → end\nb: back → a, on → c\nc: next → a");
        assert_eq!(other.len(), 1);
        assert!(other[0].contains("(a --next→ b --on→ c --next→ a)"), "{other:?}");
    }

    #[test]
    fn what_does_not_go_round_is_not_searched() {
        let hop = |from: usize, to: usize| (to, vec![super::Hop { from, edge: Some(0), to }]);
        let next: super::CountedHops =
            (0..9).map(|at| (at, [hop(at, (at + 1) % 9), hop(at, at)].into())).collect();
        assert_eq!(super::find_cycle_steps(&next, &[].into()).len(), 9);
        assert!(
            super::find_cycle_steps(&next, &[(3, 4)].into()).is_empty(),
            "a step that leads to itself is not done with it"
        );
    }
}
