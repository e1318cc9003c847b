use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::paths::{ControlGraph, FAR, Hop, SearchBudget, SearchResult, id_of_step};
use crate::analysis::{earliest_completion::checked_after, reachability::Reachability};
use crate::checks::Code;
use crate::{
    diagnostics::{Diagnostic, Trace},
    model::{CounterId, Flow, LimitTarget, Monitor, StepId, Verdict},
};

pub(in crate::checks) const CODE: Code = code!("bound-never-hit");

/// How many findings show a path.
const TRACES_MAX: usize = 16;

/// `by_limit`: whether to compare rounds with the limit. If no run ends within the limit, `limit-too-low` reports
/// that, and this finding would only follow from it.
pub(in crate::checks) fn check_bounds(
    flow: &Flow,
    live: &Reachability,
    walks: &ControlGraph<'_>,
    by_limit: bool,
    found: &mut Vec<Diagnostic>,
) {
    let component = walks.components(|_| true);
    let limit = if by_limit { flow.limits.iterations_max } else { FAR };
    let (mut work, mut traces) = (walks.work(), 0);
    for (counter, uses) in collect_counter_uses(walks) {
        let Some(round) = find_shortest_round(walks, &component, counter, &uses, &mut work) else { break };
        // Generated parts of one step share its bound, which is one number in the definition.
        let mut said: BTreeSet<(&str, bool)> = BTreeSet::new();
        for hop in &uses.last_of_each() {
            let Some((finding, hops)) = diagnose_edge_bound(walks, hop, &round, limit) else { continue };
            let name = &walks.flow.step(id_of_step(hop.from)).name;
            if owner_of_step(name).is_some_and(|owner| !said.insert((owner, round.length == FAR))) {
                continue;
            }
            traces += 1;
            let trace = if traces > TRACES_MAX { Trace::default() } else { trace_round(walks, hop, &hops) };
            found.push(finding.trace(trace));
        }
    }
    for (at, monitor) in flow.monitors.iter().enumerate().filter(|(at, _)| by_limit && live.monitors[*at]) {
        let (done, rounds) = (rounds_done(walks, monitor), monitor.threshold);
        if done > limit {
            let message = format!(
                "`{}` never acts: {rounds} rounds of {} steps are done after {done} iterations, and the limit is {limit}",
                monitor.name,
                monitor.cycle.len()
            );
            let span = flow.written(LimitTarget::Monitor(at as u32)).unwrap_or(monitor.span);
            found.push(
                Diagnostic::warning(CODE.name, span, message)
                    .hint("lower its threshold, or raise the limit of the run"),
            );
        }
    }
}

/// The same for verdicts that count more answers than fit into the limit. Called only if a run can complete.
pub(in crate::checks) fn check_verdict(flow: &Flow, walks: &ControlGraph<'_>, found: &mut Vec<Diagnostic>) {
    let limit = flow.limits.iterations_max;
    for (_, part) in flow.verdict.places() {
        let Verdict::Checks { max, of } = part else { continue };
        let after = checked_after(walks, *max, of);
        if after == FAR || after <= limit {
            continue;
        }
        let checks = if *max == 1 { "check" } else { "checks" };
        let message = format!(
            "the verdict never counts {max} {checks}: that takes {after} iterations at least, and the limit is {limit}"
        );
        let span = flow.written(LimitTarget::Iterations).unwrap_or(flow.step(flow.entry).span);
        found.push(
            Diagnostic::warning(CODE.name, span, message)
                .hint("lower what it counts to, or raise the limit of the run"),
        );
    }
}

/// After how many iterations all rounds of a monitor can be done, at the earliest.
pub(in crate::checks) fn rounds_done(walks: &ControlGraph<'_>, monitor: &Monitor<StepId>) -> u32 {
    let first = monitor.cycle.first().into_iter().flatten().map(|step| walks.far[step.0 as usize]).min();
    let first = first.unwrap_or(FAR);
    let rounds = monitor.threshold.saturating_mul(monitor.cycle.len() as u32);
    if first == FAR { FAR } else { first.saturating_sub(1).saturating_add(rounds) }
}

/// The paths of a run that raise a counter.
struct CounterUses(Vec<Hop>);

impl CounterUses {
    /// One hop for each edge.
    fn last_of_each(&self) -> Vec<Hop> {
        let by_edge: BTreeMap<(usize, Option<usize>), Hop> =
            self.0.iter().map(|hop| ((hop.from, hop.edge), *hop)).collect();
        by_edge.into_values().collect()
    }
}

fn collect_counter_uses(walks: &ControlGraph<'_>) -> BTreeMap<CounterId, CounterUses> {
    let mut uses: BTreeMap<CounterId, CounterUses> = BTreeMap::new();
    for hop in walks.out.iter().flatten().filter(|hop| walks.far[hop.from] != FAR) {
        let edge = hop.edge.map(|edge| &walks.flow.steps[hop.from].edges[edge]);
        // An edge that resets its own counter is not meant to be bounded by it.
        if let Some((edge, bound)) = edge.and_then(|edge| Some((edge, edge.bound?)))
            && !edge.resets.contains(&bound.counter)
        {
            uses.entry(bound.counter).or_insert_with(|| CounterUses(Vec::new())).0.push(*hop);
        }
    }
    uses
}

/// The shortest path from an increment of a counter to the next one.
struct Round {
    /// The least number of iterations it takes; [`FAR`] if there is no such path.
    length: u32,
    /// The earliest iteration in which a run gets there.
    begins: u32,
    hops: Vec<Hop>,
}

/// `None` if the search was too large.
fn find_shortest_round(
    walks: &ControlGraph<'_>,
    component: &[usize],
    counter: CounterId,
    uses: &CounterUses,
    work: &mut SearchBudget,
) -> Option<Round> {
    let sources: BTreeSet<usize> = uses.0.iter().map(|hop| hop.from).collect();
    let begins = sources.iter().map(|step| walks.far[*step]).min().unwrap_or(FAR);
    let targets: Vec<usize> = uses.0.iter().map(|hop| hop.to).collect();
    // With a single increment, a path back to it stays within its component.
    let only = sources.first().filter(|_| sources.len() == 1).map(|step| component[*step]);
    let may = |hop: &Hop| {
        let edge = hop.edge.map(|edge| &walks.flow.steps[hop.from].edges[edge]);
        only.is_none_or(|only| component[hop.to] == only)
            && edge.is_none_or(|edge| !edge.resets.contains(&counter))
    };
    let search: SearchResult = walks.search(&targets, may, |step| sources.contains(&step));
    if !work.spend(search.work) {
        return None;
    }
    let found = search.found;
    Some(Round {
        length: found.map_or(FAR, |step| search.distance(step)),
        begins,
        hops: found.map(|step| search.walk(step)).unwrap_or_default(),
    })
}

/// A finding, and the rest of the round after the hop.
fn diagnose_edge_bound(
    walks: &ControlGraph<'_>,
    hop: &Hop,
    round: &Round,
    limit: u32,
) -> Option<(Diagnostic, Vec<Hop>)> {
    let step = walks.flow.step(id_of_step(hop.from));
    let edge = &step.edges[hop.edge?];
    let max = edge.bound?.max;
    let times = if max == 1 { "1 retry".to_owned() } else { format!("{max} retries") };
    let (why, hint, rest) = if round.length == FAR {
        let hint = "remove the limit and its fallback, or add a transition back";
        let to = &walks.flow.step(id_of_step(hop.to)).name;
        (format!("no path leads back from `{}`", owner_of_step(to).unwrap_or(to)), hint, Vec::new())
    } else {
        let needed = round.length.saturating_mul(max).saturating_add(round.begins);
        if needed <= limit {
            return None;
        }
        let continues = round.hops.first().is_some_and(|first| first.from == hop.to);
        let rest = if continues { round.hops.clone() } else { Vec::new() };
        let hint = "lower this limit, or raise the iteration limit";
        (format!("that takes {needed} iterations at least, and the limit is {limit}"), hint, rest)
    };
    let message = match owner_of_step(&step.name) {
        Some(owner) => {
            format!("`{owner}` never reaches its limit of {times}: {why}")
        }
        None => format!("`{}` on `{}` never reaches its limit of {times}: {why}", step.name, edge.on),
    };
    let named = owner_of_step(&step.name).unwrap_or(&step.name);
    let span = walks.flow.written(LimitTarget::Counter(edge.bound?.counter)).unwrap_or(edge.span);
    Some((Diagnostic::warning(CODE.name, span, message).step(named).hint(hint), rest))
}

/// The step of the definition that a step of checks belongs to.
fn owner_of_step(name: &str) -> Option<&str> {
    name.split_once('@').map(|(owner, _)| owner)
}

/// The path to the edge, the edge itself, and the round back.
fn trace_round(walks: &ControlGraph<'_>, hop: &Hop, rest: &[Hop]) -> Trace {
    let mut hops = walks.to(hop.from, |_| true).unwrap_or_default();
    hops.push(*hop);
    hops.extend(rest);
    let end = hops.last().map_or(hop.to, |last| last.to);
    walks.tell(&hops, end)
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{draft, findings_of, name};
    use crate::{
        diagnostics::Span,
        model::{
            Counter, CounterId, Draft, EdgeBound, LimitKey, LimitTarget, Limits, Monitor, Target, Verdict,
        },
    };

    /// The first edge of `b` may be taken a number of times.
    fn said(text: &str, max: u32, limit: u32) -> Vec<String> {
        let mut bounded = draft(text);
        bounded.counters.push(Counter { name: "rounds".into() });
        bounded.steps[1].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max });
        of(bounded, limit)
    }

    fn of(mut draft: Draft, limit: u32) -> Vec<String> {
        draft.limits = Limits::new(limit);
        let mut found = findings_of(draft);
        found.retain(|found| found.code == "bound-never-hit");
        found.iter().map(|found| format!("{} ({})", found.message, found.trace.join(" "))).collect()
    }

    const ROUND: &str = "a: next → b\nb: bad → a, bad → c, ok → c\nc: done → end";

    #[test]
    fn rounds_are_held_against_the_limit() {
        // 2 iterations to come to `b`, and 2 more for each round.
        assert!(said(ROUND, 3, 8).is_empty());
        assert_eq!(
            said(ROUND, 3, 7),
            [
                "`b` on `bad` never reaches its limit of 3 retries: that takes 8 iterations at least, and the limit \
              is 7 (a --next→ b --bad→ a --next→ b)"
            ]
        );
    }

    #[test]
    fn it_is_shown_where_the_number_is_written() {
        let mut bounded = draft(ROUND);
        bounded.counters.push(Counter { name: "rounds".into() });
        bounded.steps[1].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max: 3 });
        let span = Span { start: 70, end: 71, ..bounded.steps[1].span };
        bounded.keys.push(LimitKey::new("max", span, 3, 0, LimitTarget::Counter(CounterId(0))));
        bounded.limits = Limits::new(7);
        let mut found = findings_of(bounded);
        found.retain(|found| found.code == "bound-never-hit");
        assert_eq!(found.iter().map(|found| found.span).collect::<Vec<_>>(), [span]);
    }

    #[test]
    fn answers_that_a_verdict_counts_are_held_against_the_limit() {
        let mut counted = draft("a: next → b\nb: again → b, done → end");
        counted.verdict = Verdict::Checks { max: 4, of: vec!["b".into()] };
        assert!(of(counted.clone(), 5).is_empty());
        assert_eq!(
            of(counted, 4),
            ["the verdict never counts 4 checks: that takes 5 iterations at least, and the limit is 4 ()"]
        );
    }

    /// A remedy leads back to who handed off, and from there it is a visit more to where it is counted.
    #[test]
    fn remedies_go_back_to_who_handed_off() {
        let mut bounded = draft(
            "a: next → b\nb: next → c\nc: done → c@check\nc@check: bad → c, bad → d, ok → end\nd: done → end",
        );
        bounded.counters.push(Counter { name: "attempts".into() });
        bounded.steps[1].edges[0].hands_off = true;
        bounded.steps[3].counts = false;
        bounded.steps[3].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max: 7 });
        bounded.steps[3].edges[0].to = Target::Origin { among: vec![name("b")] };
        assert!(of(bounded.clone(), 17).is_empty());
        let found = of(bounded, 16);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("takes 17 iterations") && found[0].contains("c@check --bad→ b"),
            "{found:?}"
        );
    }

    #[test]
    fn nothing_leads_back() {
        let text = "a: next → b\nb: bad → c, bad → d\nc: done → end\nd: done → end";
        assert_eq!(
            said(text, 1, 20),
            [
                "`b` on `bad` never reaches its limit of 1 retry: no path leads back from `c` (a --next→ b --bad→ c)"
            ]
        );
    }

    #[test]
    fn a_way_back_that_starts_the_counter_anew_is_none() {
        let mut bounded = draft(ROUND);
        bounded.counters.push(Counter { name: "rounds".into() });
        bounded.steps[1].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max: 1 });
        bounded.steps[0].edges[0].resets.push(CounterId(0));
        assert_eq!(of(bounded, 20).len(), 1);
    }

    /// Checks behind each outcome of a step are several steps, which its definition does not name, with one bound.
    #[test]
    fn checks_of_one_step_are_one() {
        let text = "a: next → w\nw: good → w@1, fine → w@2\nw@1: bad → w, bad → c, ok → c\n\
                    w@2: bad → w, bad → c, ok → c\nc: done → end";
        let mut bounded = draft(text);
        bounded.counters.push(Counter { name: "mends".into() });
        for step in [2, 3] {
            bounded.steps[step].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max: 3 });
        }
        let found = of(bounded, 6);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("`w` never reaches its limit of 3 retries: that"));
    }

    #[test]
    fn what_is_too_low_for_any_end_is_said_once() {
        assert!(said("a: next → b\nb: bad → a, bad → c\nc: next → d\nd: done → end", 9, 3).is_empty());
    }

    #[test]
    fn rounds_of_a_monitor() {
        let mut watched = draft("e: next → a\na: next → b, done → end\nb: back → a\nw: stop → end, on → a");
        watched.steps[3].counts = false;
        watched.monitors.push(Monitor {
            name: "watch".into(),
            cycle: vec![vec![name("a")], vec![name("b")]],
            ignored: Vec::new(),
            threshold: 3,
            judge: name("w"),
            span: Span::default(),
        });
        assert!(of(watched.clone(), 7).is_empty());
        assert_eq!(
            of(watched, 6),
            ["`watch` never acts: 3 rounds of 2 steps are done after 7 iterations, and the limit is 6 ()"]
        );
    }
}
