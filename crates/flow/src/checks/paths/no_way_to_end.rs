use std::collections::VecDeque;

use crate::analysis::reachability::Reachability;
use crate::checks::Code;
use crate::checks::misread::MisreadSteps;
use crate::{
    diagnostics::{Diagnostic, Severity},
    model::{Ending, Flow, Step, StepId, Target, Verdict},
};

pub(in crate::checks) const CODE: Code = code!("no-way-to-end");

pub(in crate::checks) fn check_traps(
    flow: &Flow,
    live: &Reachability,
    misread: &MisreadSteps,
    found: &mut Vec<Diagnostic>,
) {
    if flow.limits.is_endless {
        return;
    }
    let is_end = |to: &Target<StepId>| matches!(to, Target::End(Ending::Completed | Ending::Aborted));
    let ends = can_come_to(flow, live, |id| misread.has(id), is_end);
    let far = measure_entry_distances(flow, live);
    let trapped = |id: &StepId| live.steps[id.0 as usize] && !ends[id.0 as usize];
    let all: Vec<StepId> = list_step_ids(flow).filter(trapped).collect();
    // One finding names a whole trap, as its steps share the cause.
    for trap in group_trapped_steps(flow, live, &all) {
        let named: Vec<StepId> = trap.iter().copied().filter(|id| flow.step(*id).counts).collect();
        let Some(first) = named.iter().copied().min_by_key(|id| far[id.0 as usize]) else { continue };
        // A verdict that does not wait for an end of the flow can complete a run inside the trap.
        if fires_in(&flow.verdict, flow, live, &trap) {
            continue;
        }
        let names: Vec<String> = named.iter().map(|id| format!("`{}`", flow.step(*id).name)).collect();
        let step = flow.step(first);
        let message = format!("from {} no path leads to an end", names.join(", "));
        found.push(
            Diagnostic::error(CODE.name, step.span, message)
                .step(&step.name)
                .hint("lead a transition of one of them to an end")
                .trace(live.shortest(flow, first, None).unwrap_or_default()),
        );
    }
}

/// Reports that no run completes, if no other finding could be the cause.
pub(in crate::checks) fn check_completes(flow: &Flow, live: &Reachability, found: &mut Vec<Diagnostic>) {
    let is_explained = found.iter().any(|finding| finding.severity != Severity::Note);
    if is_explained || flow.verdict.can_fire() || flow.limits.is_endless {
        return;
    }
    let is_end = |to: &Target<StepId>| matches!(to, Target::End(Ending::Completed));
    let completes = can_come_to(flow, live, |_| false, is_end);
    if !completes[flow.entry.0 as usize] {
        let entry = flow.step(flow.entry);
        let message = "no run completes: all paths end in giving up".to_owned();
        found.push(
            Diagnostic::warning(CODE.name, entry.span, message)
                .step(&entry.name)
                .hint("lead a transition to where the work is done"),
        );
    }
}

fn list_step_ids(flow: &Flow) -> impl Iterator<Item = StepId> + use<> {
    (0..flow.steps.len() as u32).map(StepId)
}

/// Trapped steps, grouped if they lead to each other or to the same steps.
fn group_trapped_steps(flow: &Flow, live: &Reachability, trapped: &[StepId]) -> Vec<Vec<StepId>> {
    let mut near: Vec<Vec<StepId>> = vec![Vec::new(); flow.steps.len()];
    let mut is_trapped = vec![false; flow.steps.len()];
    trapped.iter().for_each(|id| is_trapped[id.0 as usize] = true);
    for id in trapped {
        for way in live.ways[id.0 as usize].iter().filter(|way| is_trapped[way.to.0 as usize]) {
            near[id.0 as usize].push(way.to);
            near[way.to.0 as usize].push(*id);
        }
    }
    let mut found = Vec::new();
    for id in trapped {
        if !std::mem::replace(&mut is_trapped[id.0 as usize], false) {
            continue;
        }
        let (mut trap, mut next) = (vec![*id], 0);
        while let Some(at) = trap.get(next).copied() {
            next += 1;
            let near = near[at.0 as usize].iter();
            trap.extend(near.filter(|to| std::mem::replace(&mut is_trapped[to.0 as usize], false)));
        }
        trap.sort_unstable();
        found.push(trap);
    }
    found
}

/// The number of hops from the entries to each step.
fn measure_entry_distances(flow: &Flow, live: &Reachability) -> Vec<usize> {
    let mut far = vec![usize::MAX; flow.steps.len()];
    let mut queue = VecDeque::from([flow.entry]);
    far[flow.entry.0 as usize] = 0;
    while let Some(at) = queue.pop_front() {
        for way in &live.ways[at.0 as usize] {
            if far[way.to.0 as usize] == usize::MAX {
                far[way.to.0 as usize] = far[at.0 as usize] + 1;
                queue.push_back(way.to);
            }
        }
    }
    far
}

/// Whether a verdict can complete a run that stays among these steps and that it has not completed before.
fn fires_in(verdict: &Verdict, flow: &Flow, live: &Reachability, trap: &[StepId]) -> bool {
    match verdict {
        Verdict::Checks { of, .. } => trap.iter().any(|id| of.contains(&flow.step(*id).name)),
        Verdict::Any(parts) | Verdict::First(parts) => {
            parts.iter().any(|part| fires_in(part, flow, live, trap))
        }
        // The other verdicts may have held before.
        Verdict::Every(parts) => {
            let live: Vec<StepId> = list_step_ids(flow).filter(|id| live.steps[id.0 as usize]).collect();
            parts.iter().all(|part| holds_somewhere(part, flow, &live))
                && parts.iter().any(|part| holds_somewhere(part, flow, trap))
        }
        other => other.can_fire(),
    }
}

fn holds_somewhere(verdict: &Verdict, flow: &Flow, among: &[StepId]) -> bool {
    match verdict {
        Verdict::Checks { of, .. } => among.iter().any(|id| of.contains(&flow.step(*id).name)),
        Verdict::Any(parts) | Verdict::First(parts) => {
            parts.iter().any(|part| holds_somewhere(part, flow, among))
        }
        Verdict::Every(parts) => {
            !parts.is_empty() && parts.iter().all(|part| holds_somewhere(part, flow, among))
        }
        other => other.can_fire(),
    }
}

/// Which steps have a path to an end of some kind over transitions that the author wrote. `may` marks steps for which
/// it is not known.
fn can_come_to(
    flow: &Flow,
    live: &Reachability,
    may: impl Fn(StepId) -> bool,
    is_goal: impl Fn(&Target<StepId>) -> bool,
) -> Vec<bool> {
    let meant = |step: &Step<StepId>, edge: usize| !step.edges[edge].implied;
    let mut ends: Vec<bool> = (0..flow.steps.len() as u32)
        .map(|id| {
            let step = flow.step(StepId(id));
            let mut ends = live.ends(StepId(id)).iter();
            may(StepId(id)) || ends.any(|edge| meant(step, *edge) && is_goal(&step.edges[*edge].to))
        })
        .collect();
    // Which steps reach an end if this step does.
    let mut from = vec![Vec::new(); flow.steps.len()];
    for (index, ways) in live.ways.iter().enumerate() {
        let step = &flow.steps[index];
        for way in ways {
            match way.edge {
                // Members and judges hand their outcome to the step that entered them, so they end when that does.
                None if way.inner => from[index].push(way.to.0 as usize),
                Some(edge) if !meant(step, edge) => {}
                _ => from[way.to.0 as usize].push(index),
            }
        }
    }
    let mut queue: Vec<usize> = (0..ends.len()).filter(|id| ends[*id]).collect();
    while let Some(id) = queue.pop() {
        for next in &from[id] {
            if !std::mem::replace(&mut ends[*next], true) {
                queue.push(*next);
            }
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{codes_of, draft, findings_of};
    use crate::{diagnostics::Severity, model::Verdict};

    #[test]
    fn found_with_a_trace() {
        let found = findings_of(draft("a: next → b, done → end\nb: next → c\nc: back → b"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].message, "from `b`, `c` no path leads to an end");
        assert_eq!(found[0].trace, ["a --next→", "b"]);
    }

    #[test]
    fn the_nearest_step_of_a_trap_is_named_and_traps_apart_from_each_other_are_two() {
        let found = findings_of(draft("a: x → near, y → end\nfar: x → mid\nmid: x → far\nnear: x → mid"));
        assert_eq!((found.len(), &found[0].trace[..]), (1, &["a --x→".to_owned(), "near".to_owned()][..]));
        let two = "a: x → b, y → c, z → end\nb: x → b2\nb2: x → b\nc: x → c2\nc2: x → c";
        let said: Vec<String> = findings_of(draft(two)).iter().map(|found| found.message.clone()).collect();
        assert_eq!(
            said,
            ["from `b`, `b2` no path leads to an end", "from `c`, `c2` no path leads to an end"]
        );
    }

    #[test]
    fn a_verdict_that_counts_elsewhere_does_not_mend_it() {
        let checks = |of: &str| Verdict::Checks { max: 3, of: vec![of.into()] };
        for (verdict, is_found) in [
            (checks("b"), false),
            (checks("a"), true),
            (Verdict::Every(vec![checks("a"), Verdict::Iterations(9)]), false),
            (Verdict::Any(vec![checks("a"), checks("b")]), false),
            (Verdict::Every(vec![checks("a"), checks("a")]), true),
        ] {
            let mut trapping = draft("a: next → b, done → end\nb: back → b");
            trapping.verdict = verdict.clone();
            assert_eq!(codes_of(trapping).contains(&"no-way-to-end"), is_found, "{verdict:?}");
        }
    }

    #[test]
    fn where_all_give_up_no_run_completes() {
        let mut given_up = draft("a: next → a, over → end");
        given_up.steps[0].edges[1].to = crate::model::Target::End(crate::model::Ending::Aborted);
        let found = findings_of(given_up);
        assert_eq!((found.len(), found[0].code, found[0].severity), (1, "no-way-to-end", Severity::Warning));
    }

    #[test]
    fn mended_by_an_edge_or_by_a_verdict() {
        assert!(codes_of(draft("a: next → b\nb: next → c\nc: back → b, done → end")).is_empty());
        let mut counted = draft("a: next → a");
        counted.verdict = Verdict::Iterations(3);
        assert!(codes_of(counted).is_empty());
    }

    #[test]
    fn not_mended_by_a_verdict_that_waits_for_an_end() {
        for verdict in [
            Verdict::Every(vec![Verdict::Flow, Verdict::Iterations(3)]),
            Verdict::Any(vec![Verdict::Flow]),
            Verdict::Checks { max: 1, of: Vec::new() },
        ] {
            let mut waiting = draft("a: next → a");
            waiting.verdict = verdict;
            assert_eq!(codes_of(waiting), ["no-way-to-end"]);
        }
    }
}
